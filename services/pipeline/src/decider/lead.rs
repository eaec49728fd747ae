//! Leading: decides inputs in order, appends, reads back, writes checkpoints.
//!
//! One append is in flight at a time, and while it commits the next inputs gather: batches size themselves. The next batch is decided as soon as the append is
//! acknowledged, from state that includes this term's own decisions that were not read back yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use futures::future::BoxFuture;
use pa_domain::log::{self, HeldInput};
use pa_domain::{AgentId, Event};
use pa_eventlog::guards::{self, Guard};
use pa_eventlog::opener::{Opened, Opener};
use pa_eventlog::reader::Item;
use pa_eventlog::{AppendError, Position, Record, Stream};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::agents::Damage;
use super::compose::{Asked, Content, Sent, sent};
use super::share::Share;
use super::store::Note;
use super::term::{Keeper, Term, part};
use super::{BATCH_BYTES, BATCH_INPUTS, BATCH_RECORDS, CHECKPOINT_EVERY, CHECKPOINT_RECORDS, End, READ_BACK_MAX, agree};

/// Agents whose held inputs are decided in one batch.
const DRAINING_AT_ONCE: usize = 16;

/// Deaths under one note after which the input is set aside.
const DEATHS_MAX: i32 = 3;

/// The input that a record sets aside.
fn held_by(opened: &Opened) -> Option<HeldInput> {
  let Opened::Event(recorded) = opened else { return None };
  let Event::Log(event) = &recorded.event else { return None };
  match event {
    log::Event::InputHeld(event) => Some(event.held.clone()),
    log::Event::InputQuarantined(event) => Some(event.held.clone()),
    log::Event::EpochAnnounced(_) | log::Event::InputSettled(_) | log::Event::QuarantineReleased(_) => None,
  }
}

type Appending = BoxFuture<'static, Result<Vec<Position>, AppendError>>;

/// The first inputs after an unclean end, decided one at a time.
pub(super) struct Careful {
  /// The note that the life before left.
  note: Option<Note>,
  left: usize,
}

impl Careful {
  /// After a life that left this note.
  pub(super) fn after(note: Option<Note>) -> Self {
    Self { note, left: BATCH_INPUTS }
  }
}

pub(super) struct Lead {
  term: Term,
  epoch: i64,
  /// The seq that the next record gets.
  seq: i64,
  /// The next input to decide; the read-back one follows in the term.
  inputs: Position,
  careful: Option<Careful>,
  unread: VecDeque<Sent>,
  appending: Option<Appending>,
  checkpoint_at: Instant,
  keeper: Keeper,
  share: Arc<Share>,
  stop: CancellationToken,
  /// The input log was away: compare it again before deciding from it.
  reconnected: bool,
  /// What woke it was an input: that is decided first, and events are looked for while the decision commits.
  woken_by_input: bool,
  fruitful: bool,
  /// The agent whose held input was decided last.
  drained: Option<AgentId>,
}

impl Lead {
  pub(super) fn new(term: Term, epoch: i64, careful: Option<Careful>, keeper: Keeper, share: Arc<Share>, stop: CancellationToken) -> Self {
    let inputs = term.next_input.0;
    Self {
      term,
      epoch,
      seq: 1,
      inputs,
      careful,
      unread: VecDeque::new(),
      appending: None,
      checkpoint_at: Instant::now() + CHECKPOINT_EVERY,
      keeper,
      share,
      stop,
      reconnected: false,
      woken_by_input: false,
      fruitful: false,
      drained: None,
    }
  }

  pub(super) async fn run(&mut self) -> Result<(), End> {
    loop {
      if self.keeper.is_lost() {
        return Err(End::StepDown("the lease ran out or was taken"));
      }
      if !std::mem::take(&mut self.woken_by_input) {
        self.read_back().await?;
      }
      self.term.carry_on().await;
      if self.unread.front().is_some_and(|sent| sent.at.elapsed() >= READ_BACK_MAX) {
        return Err(End::new_term("an own record was not read back"));
      }
      let quiet = self.unread.is_empty() && self.appending.is_none();
      if self.checkpoint_is_due() && (quiet || !guards::on(Guard::CheckpointFromUnread)) {
        self.checkpoint().await?;
      }
      if self.ends() && quiet {
        return self.give_back().await;
      }
      if self.may_decide() && self.decide_next().await? {
        continue;
      }
      self.wait().await?;
    }
  }

  /// Whether it read back something of its own.
  pub(super) fn is_fruitful(&self) -> bool {
    self.fruitful
  }

  /// What is left of deciding one at a time, for the next term.
  pub(super) fn careful(self) -> Option<Careful> {
    self.careful
  }

  fn checkpoint_is_due(&self) -> bool {
    self.term.unwritten >= CHECKPOINT_RECORDS || (self.term.unwritten > 0 && Instant::now() >= self.checkpoint_at)
  }

  async fn checkpoint(&mut self) -> Result<(), End> {
    self.term.write_checkpoint(self.epoch).await?;
    self.checkpoint_at = Instant::now() + CHECKPOINT_EVERY;
    Ok(())
  }

  /// Nothing new is decided: the process ends, or another one is to lead.
  fn ends(&self) -> bool {
    self.stop.is_cancelled() || self.share.gives(self.term.partition)
  }

  async fn give_back(&mut self) -> Result<(), End> {
    if self.term.unwritten > 0 {
      self.checkpoint().await?;
    }
    self.term.parts.store.give_back(part(self.term.partition), self.epoch).await?;
    tracing::info!(partition = self.term.partition, epoch = self.epoch, "the decider gave its partition back");
    Err(if self.stop.is_cancelled() { End::Stopped } else { End::Yielded })
  }

  fn may_decide(&self) -> bool {
    let wants = !self.ends() && !self.checkpoint_is_due() && self.appending.is_none();
    wants && if self.careful.is_some() { self.unread.is_empty() } else { self.unread.len() < BATCH_INPUTS }
  }

  /// Takes in what was read back, and notices whatever ends the term.
  async fn read_back(&mut self) -> Result<(), End> {
    for item in self.term.reader.poll().await? {
      match &item {
        Item::Announced(announced) if announced.epoch > self.epoch => return Err(End::StepDown("a higher epoch was announced")),
        Item::Void(void) if void.epoch == self.epoch && self.unread.iter().any(|sent| sent.cause == void.cause) => {
          return Err(End::new_term("an own record was read as void"));
        }
        Item::Announced(_) | Item::Void(_) => continue,
        Item::Decision(_) | Item::Erased(_) | Item::Unreadable { .. } => {}
      }
      let Some(head) = item.decided().copied() else { continue };
      let Some(sent) = self.unread.pop_front().filter(|sent| head.epoch == self.epoch && sent.seq == head.seq && sent.cause == head.cause) else {
        return Err(End::new_term("another decision was read than the one written"));
      };
      self.fruitful = true;
      metrics::histogram!("pa_decider_read_back_seconds").record(sent.at.elapsed().as_secs_f64());
      self.term.next_input = self.term.next_input.decided(head.input, head.held);
      if !head.held {
        self.term.repeats.cause(head.input, head.cause);
      }
      self.term.unwritten += u64::from(head.parts.unsigned_abs());
      match item {
        Item::Decision(decision) => self.term.read_back(&decision),
        // It was folded when it was decided; what the next term would make of it counts already now.
        Item::Unreadable { position, reason, .. } => {
          tracing::error!(agent.id = %head.agent, position, %reason, "an own record can't be read");
          self.term.agents.load(std::iter::once((head.agent, None))).await?;
          self.term.agents.damage(head.agent, Damage::Unreadable(position));
        }
        Item::Erased(unopened) => self.term.read_back_erased(&unopened),
        Item::Announced(_) | Item::Void(_) => {}
      }
    }
    Ok(())
  }

  /// Decides what is there; false when nothing is.
  async fn decide_next(&mut self) -> Result<bool, End> {
    let mut asked = self.held_inputs().await?;
    if self.careful.is_none() || asked.is_empty() {
      asked.extend(self.new_inputs().await?);
    }
    if asked.is_empty() {
      return Ok(false);
    }
    self.term.agents.load(asked.iter().map(|asked| (asked.meta.agent, asked.thing()))).await?;
    self.term.learn_keys(asked.iter().map(|asked| asked.meta.agent)).await?;
    let unknown: Vec<_> = asked.iter().filter_map(|asked| self.term.repeats.unknown(&asked.meta)).collect();
    if !unknown.is_empty() {
      let rows = self.term.parts.store.keys(part(self.term.partition), &unknown).await?;
      self.term.repeats.look_up(rows);
    }
    let mut records: Vec<Record> = Vec::new();
    let mut bytes = 0;
    for mut asked in asked {
      if records.len() >= BATCH_RECORDS || bytes >= BATCH_BYTES {
        break;
      }
      self.be_careful(&mut asked).await?;
      let composed = self.term.decide(&asked, self.epoch, self.seq).await?;
      let (sent, seq) = sent(&composed, self.seq, asked.meta.id);
      self.seq = seq;
      self.unread.push_back(sent);
      if !asked.held {
        self.inputs = asked.position + 1;
      }
      bytes += composed.records.iter().map(Record::size_bytes).sum::<usize>();
      records.extend(composed.records);
    }
    metrics::histogram!("pa_decider_batch_records").record(u32::try_from(records.len()).map_or(f64::MAX, f64::from));
    let (log, partition) = (Arc::clone(&self.term.parts.log), self.term.partition);
    let mut appending: Appending = Box::pin(async move {
      pa_store::fail_point!("decider.before_append");
      let appended = log.append(Stream::Events, partition, records).await;
      pa_store::fail_point!("decider.after_append");
      appended
    });
    // On its way before anything else is looked at: whoever asked waits for it.
    self.appending = Some(match futures::poll!(&mut appending) {
      Poll::Ready(appended) => Box::pin(std::future::ready(appended)),
      Poll::Pending => appending,
    });
    Ok(true)
  }

  /// The next held input of agents whose quarantine was released, one for each: the agents take turns, and new inputs of others are decided beside them.
  async fn held_inputs(&mut self) -> Result<Vec<Asked>, End> {
    let most = if self.careful.is_some() { 1 } else { DRAINING_AT_ONCE };
    let mut asked = Vec::new();
    for agent in self.term.agents.draining(self.drained, most) {
      self.drained = Some(agent);
      asked.extend(self.held_input(agent).await?);
    }
    Ok(asked)
  }

  async fn held_input(&mut self, agent: AgentId) -> Result<Option<Asked>, End> {
    self.term.agents.load(std::iter::once((agent, None))).await?;
    let entry = self.term.agents.agent(agent);
    let Some(held) = pa_domain::log::next_to_drain(&entry.root) else { return Ok(None) };
    let lost = || End::Fatal(anyhow::anyhow!("the record that holds input {} of agent {agent} is not in the log", held.input));
    let position = match entry.held_at.get(&held.ordinal) {
      Some(position) => *position,
      // Where its bytes stand is known when they are read back.
      None if !self.unread.is_empty() => return Ok(None),
      None => return Err(lost()),
    };
    if let Some(Damage::Unreadable(damaged)) = entry.damage
      && matches!(self.term.event_at(damaged).await?, Some(Opened::Event(_)))
    {
      tracing::info!(agent.id = %agent, position = damaged, "an event can be read again");
      return Err(End::LogChanged);
    }
    let opened = self.term.event_at(position).await?.ok_or_else(lost)?;
    let Some(input) = held_by(&opened) else {
      // The bytes that it holds are what can't be read: they wait until they can.
      self.term.agents.damage(agent, Damage::Unreadable(position));
      self.term.agents.drain_no_more(agent);
      return Ok(None);
    };
    let opened = self.term.parts.opener.held(&input).await?;
    let stored = Opener::stored_of(&input);
    Asked::new(&stored, true, opened).map(Some)
  }

  async fn new_inputs(&mut self) -> Result<Vec<Asked>, End> {
    if std::mem::take(&mut self.reconnected) {
      let from = agree::inputs_from(&self.term.parts, self.term.partition, self.term.next_input, &self.term.repeats).await?;
      if from != self.term.next_input.0 {
        return Err(End::new_term("the input log was cut and grew again"));
      }
    }
    let max = if self.careful.is_some() { 1 } else { BATCH_INPUTS };
    let batch = match self.term.parts.log.read(Stream::Inputs, self.term.partition, self.inputs, max).await {
      Ok(batch) => batch,
      Err(error @ pa_eventlog::LogError::Away(_)) => {
        self.reconnected = true;
        tracing::warn!(partition = self.term.partition, error = &error as &dyn std::error::Error, "the input log is away");
        tokio::time::sleep(super::RETRY_AFTER).await;
        return Ok(Vec::new());
      }
      Err(error) => return Err(error.into()),
    };
    let mut asked = Vec::with_capacity(batch.len());
    for stored in batch.iter() {
      let opened = self.term.parts.opener.input(stored).await?;
      asked.push(Asked::new(stored, false, opened)?);
    }
    Ok(asked)
  }

  /// After an unclean end: notes the input before it is decided, and sets it aside when too many processes died under that note.
  async fn be_careful(&mut self, asked: &mut Asked) -> Result<(), End> {
    let Some(careful) = &mut self.careful else { return Ok(()) };
    let store = &self.term.parts.store;
    if careful.left == 0 {
      self.careful = None;
      store.clear_note(part(self.term.partition), self.epoch).await?;
      return Ok(());
    }
    careful.left -= 1;
    let before = self.term.agents.agent(asked.meta.agent).quarantined.get(&asked.meta.id).copied().unwrap_or_default();
    let deaths = careful.note.filter(|note| note.input == asked.meta.id && note.quarantined_before == before).map_or(0, |note| note.deaths);
    if !store.note(part(self.term.partition), self.epoch, asked.meta.id, before).await? {
      return Err(End::StepDown("the lease was lost before an input was noted"));
    }
    if deaths >= DEATHS_MAX {
      asked.content = Content::Deadly;
    }
    Ok(())
  }

  /// Waits for whatever comes next.
  async fn wait(&mut self) -> Result<(), End> {
    let may_decide = self.may_decide();
    let stopping = self.stop.is_cancelled();
    let term = &self.term;
    let checkpoint_at = if term.unwritten > 0 { self.checkpoint_at } else { Instant::now() + CHECKPOINT_EVERY };
    let checkpoint_at = self.term.due_at().map_or(checkpoint_at, |due_at| due_at.min(checkpoint_at));
    let deadline = self.unread.front().map_or(checkpoint_at, |sent| (sent.at + READ_BACK_MAX).min(checkpoint_at.max(Instant::now() + READ_BACK_MAX / 50)));
    let appended = async {
      match &mut self.appending {
        Some(appending) => appending.await,
        None => std::future::pending().await,
      }
    };
    let mut woken_by_input = false;
    let appended = tokio::select! {
      biased;
      appended = appended => Some(appended),
      () = term.parts.log.wait(Stream::Events, term.partition, term.reader.position()) => None,
      () = term.parts.log.wait(Stream::Inputs, term.partition, self.inputs), if may_decide => {
        woken_by_input = true;
        None
      }
      () = sleep_until(deadline) => None,
      () = self.keeper.lost() => None,
      () = self.stop.cancelled(), if !stopping => None,
    };
    self.woken_by_input = woken_by_input;
    match appended {
      None => Ok(()),
      Some(Ok(_)) => {
        self.appending = None;
        Ok(())
      }
      Some(Err(AppendError::Unknown { .. })) => Err(End::new_term("the fate of an append is unknown")),
      Some(Err(refused @ AppendError::Refused { .. })) => Err(End::Away(refused.into())),
    }
  }
}
