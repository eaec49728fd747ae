//! A term: from the lease row to the announcement that was read back.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::ids::RecordId;
use pa_domain::log::EpochAnnounced;
use pa_eventlog::fence::{FenceState, NextInput};
use pa_eventlog::guards::{self, Guard};
use pa_eventlog::opener::Opened;
use pa_eventlog::reader::{Item, Reader};
use pa_eventlog::{AppendError, LogError, Partition, Position, Stream};
use pa_store::checkpoint::Mark;
use pa_store::lease::{LEASE, RENEW_EVERY};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::agents::{Agents, Damage, Unfoldable};
use super::due::Due;
use super::lead::{Careful, Lead};
use super::repeats::Repeats;
use super::share::Share;
use super::store::Take;
use super::{End, Parts, READ_BACK_MAX, RETRY_AFTER, agree};

/// The pause before a new term after one that got nothing done; it doubles up to [`NEW_TERM_PAUSE_MAX`].
const NEW_TERM_PAUSE: Duration = Duration::from_millis(100);
/// Well below a lease, which nobody renews meanwhile.
const NEW_TERM_PAUSE_MAX: Duration = Duration::from_secs(2);

/// A process that has its share leaves a partition that was given back to the others for so long.
const LEFT_TO_OTHERS: Duration = RENEW_EVERY;

/// What a partition's decider does, for readiness and the system page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
  /// Another process holds the partition.
  Waiting,
  /// It reads up to the end and announces.
  CatchingUp,
  /// It decides, in this epoch.
  Leading(i64),
  /// It can't go on; the text says why, without content.
  Failing(String),
}

/// A partition's decider, term after term, until `stop`.
pub(super) async fn run(parts: Parts, partition: Partition, share: Arc<Share>, stop: CancellationToken, status: watch::Sender<Status>) {
  let mut starting = true;
  let mut terms = Terms::default();
  while !stop.is_cancelled() {
    let opened = open(&parts, partition, &mut terms, starting, &share, &stop, &status).await;
    // A start whose database is away is one still when it is back.
    starting &= terms.own.is_none() && matches!(opened, Err(End::Away(_)));
    let Err(end) = opened else { continue };
    match end {
      End::Stopped => break,
      End::NewTerm(why) => {
        tracing::warn!(partition, why, fruitless = terms.fruitless, "a decider's term ended; opening a new one");
        pause(terms.rest(), &stop).await;
      }
      End::Yielded => {
        share.release(partition);
        status.send_replace(Status::Waiting);
        terms = Terms::default();
      }
      End::StepDown(why) => {
        tracing::warn!(partition, why, "a decider stepped down");
        status.send_replace(Status::Waiting);
        share.release(partition);
        if std::mem::take(&mut terms).own.is_some()
          && let Err(error) = parts.store.lost_alive(part(partition)).await
        {
          tracing::debug!(partition, error = &error as &dyn std::error::Error, "could not say that this process lives");
        }
        pause(LEASE, &stop).await;
      }
      End::LogChanged => {
        tracing::error!(partition, "the decider's checkpoint is not of this log; it is dropped and built anew from the beginning");
        if let Err(error) = parts.store.drop_checkpoint(part(partition)).await {
          tracing::warn!(partition, error = &error as &dyn std::error::Error, "could not drop the checkpoint");
          pause(RETRY_AFTER, &stop).await;
        }
        pause(terms.rest(), &stop).await;
      }
      End::Away(error) => {
        tracing::warn!(partition, error = error.as_ref() as &dyn std::error::Error, "the decider can't reach its log or database; trying again");
        status.send_replace(Status::Failing("the log or database is away".into()));
        pause(RETRY_AFTER, &stop).await;
      }
      End::Fatal(error) => {
        tracing::error!(partition, error = error.as_ref() as &dyn std::error::Error, "the decider can't go on");
        status.send_replace(Status::Failing(format!("{error:#}")));
        pause(LEASE, &stop).await;
      }
    }
  }
  status.send_replace(Status::Waiting);
}

pub(super) async fn pause(time: Duration, stop: &CancellationToken) {
  tokio::select! {
    biased;
    () = sleep(time) => {}
    () = stop.cancelled() => {}
  }
}

pub(super) fn part(partition: Partition) -> i16 {
  i16::try_from(partition).unwrap_or(i16::MAX)
}

/// What goes from one term of a process to its next.
#[derive(Default)]
struct Terms {
  /// The epoch of the lease row that is this process's own.
  own: Option<i64>,
  /// The last holder did not give the row back: what is left of deciding the first inputs one at a time.
  careful: Option<Careful>,
  /// Terms in a row that read back nothing of their own.
  fruitless: u32,
  /// Since when the partition lies there, given back, and others may take it first.
  left_since: Option<Instant>,
}

impl Terms {
  /// The pause before the next term: none after one that got something done.
  fn rest(&self) -> Duration {
    match self.fruitless {
      0 => Duration::ZERO,
      before => (NEW_TERM_PAUSE * 2_u32.saturating_pow(before - 1)).min(NEW_TERM_PAUSE_MAX),
    }
  }
}

/// The epoch of a new term, if the partition is or becomes this process's own.
async fn take(parts: &Parts, partition: Partition, terms: &mut Terms, starting: bool, share: &Share) -> Result<Option<i64>, End> {
  let store = &parts.store;
  if let Some(above) = terms.own {
    // Asked first, since a new term renews the lease: who does not reach the log is to lose it.
    parts.log.end(Stream::Events, partition).await?;
    return store.new_term(part(partition), above).await?.ok_or(End::StepDown("the lease row is no longer its own")).map(Some);
  }
  if !share.reaches_log() {
    return Err(End::Away(anyhow::anyhow!("the log does not answer")));
  }
  if share.is_full() && store.is_given_back(part(partition)).await? && terms.left_since.get_or_insert_with(Instant::now).elapsed() < LEFT_TO_OTHERS {
    return Ok(None);
  }
  match store.take(part(partition), starting).await? {
    Take::Taken(term) => {
      terms.left_since = None;
      terms.careful = (!term.clean).then(|| Careful::after(term.note));
      Ok(Some(term.epoch))
    }
    Take::Held { .. } => {
      terms.left_since = None;
      Ok(None)
    }
  }
}

async fn open(
  parts: &Parts,
  partition: Partition,
  terms: &mut Terms,
  starting: bool,
  share: &Arc<Share>,
  stop: &CancellationToken,
  status: &watch::Sender<Status>,
) -> Result<(), End> {
  let store = &parts.store;
  let Some(taken) = take(parts, partition, terms, starting, share).await? else {
    status.send_if_modified(|status| std::mem::replace(status, Status::Waiting) != Status::Waiting);
    pause(RENEW_EVERY / 3, stop).await;
    return Ok(());
  };
  share.hold(partition);
  terms.own = Some(taken);
  terms.fruitless = terms.fruitless.saturating_add(1);
  status.send_replace(Status::CatchingUp);
  let keeper = Keeper::start(parts, partition);
  let mut term = Term::load(parts, partition).await?;
  term.read_to_end().await?;
  let epoch = if term.reader.decisions().fence().epoch >= taken {
    let above = term.reader.decisions().fence().epoch;
    store.new_term(part(partition), above).await?.ok_or(End::StepDown("the lease row is no longer its own"))?
  } else {
    taken
  };
  terms.own = Some(epoch);
  term.announce(epoch).await?;
  status.send_replace(Status::Leading(epoch));
  tracing::info!(partition, epoch, next_input = term.next_input.0, "the decider leads");
  let mut lead = Lead::new(term, epoch, terms.careful.take(), keeper, Arc::clone(share), stop.clone());
  let ended = Box::pin(lead.run()).await;
  if lead.is_fruitful() {
    terms.fruitless = 0;
  }
  terms.careful = lead.careful();
  ended
}

/// What a term has read so far.
pub(super) struct Term {
  pub(super) parts: Parts,
  pub(super) partition: Partition,
  pub(super) reader: Reader,
  pub(super) agents: Agents,
  pub(super) repeats: Repeats,
  pub(super) next_input: NextInput,
  /// Records read back since the checkpoint.
  pub(super) unwritten: u64,
  /// What decisions lead to elsewhere and is not done yet.
  pub(super) due: Vec<Due>,
}

impl Term {
  pub(super) async fn load(parts: &Parts, partition: Partition) -> Result<Self, End> {
    let mark = parts.store.mark(part(partition)).await?;
    let state =
      mark.map_or(FenceState::START, |mark: Mark| FenceState { next_position: mark.next_position, epoch: mark.epoch, seq: mark.seq, last: mark.last });
    let next_input = mark.map_or(NextInput::START, |mark| NextInput(mark.next_input));
    let checkpoint = mark.map(|mark| mark.next_position);
    let mut agents = Agents::new(part(partition), Arc::clone(&parts.store), checkpoint);
    agents.load_partition().await?;
    Ok(Self {
      parts: parts.clone(),
      partition,
      reader: Reader::new(Arc::clone(&parts.log), Arc::clone(&parts.opener), partition, state),
      agents,
      repeats: Repeats::default(),
      next_input,
      unwritten: 0,
      due: Vec::new(),
    })
  }

  async fn read_to_end(&mut self) -> Result<(), End> {
    // Checked even if there is nothing to read: a log behind the checkpoint must be noticed.
    self.reader.check().await?;
    self.load_due().await?;
    let end = self.parts.log.end(Stream::Events, self.partition).await?;
    while self.reader.position() < end {
      let items = self.reader.poll().await?;
      if items.is_empty() {
        break;
      }
      for item in items {
        self.fold(&item).await?;
      }
    }
    Ok(())
  }

  /// Folds what somebody else wrote, or an earlier life of this process.
  pub(super) async fn fold(&mut self, item: &Item) -> Result<(), End> {
    match item {
      Item::Decision(decision) => {
        self.agents.load(std::iter::once((decision.agent, None)).chain(decision.events.iter().map(|event| (decision.agent, event.event.thing())))).await?;
        let events = decision.events.iter().map(|recorded| (recorded.core(), &recorded.event));
        if let Err(unfoldable) = self.agents.fold(decision.agent, events, decision.chain()) {
          let why = match unfoldable {
            Unfoldable::Panicked(text) => text,
            Unfoldable::RootTooLarge => "its root is larger than the limit".to_owned(),
          };
          tracing::error!(agent.id = %decision.agent, position = decision.first, why, "a decision can't be folded");
          self.agents.pass(decision, decision.chain());
          self.agents.damage(decision.agent, Damage::Unfoldable(decision.first));
        }
        if self.agents.agent(decision.agent).is_erased() {
          self.repeats.forget(decision.agent);
        } else {
          self.repeats.record(decision);
        }
        self.read_back(decision);
        self.unwritten += u64::from(decision.parts.unsigned_abs());
      }
      Item::Announced(announced) => self.next_input = self.next_input.announced(announced.counts, announced.inputs_from),
      Item::Unreadable { head, position, reason } => {
        tracing::error!(agent.id = %head.agent, position, %reason, "an event can't be read");
        self.agents.load(std::iter::once((head.agent, None))).await?;
        self.agents.pass(head, head.chain());
        self.agents.damage(head.agent, Damage::Unreadable(*position));
        self.unwritten += u64::from(head.parts.unsigned_abs());
      }
      Item::Erased(unopened) => {
        self.agents.load(std::iter::once((unopened.agent, None))).await?;
        self.agents.bury(unopened, unopened.chain());
        self.repeats.forget(unopened.agent);
        self.read_back_erased(unopened);
        self.unwritten += u64::from(unopened.parts.unsigned_abs());
      }
      Item::Void(_) => {}
    }
    if let Some(head) = item.decided() {
      self.next_input = self.next_input.decided(head.input, head.held);
      if !head.held {
        self.repeats.cause(head.input, head.cause);
      }
    }
    Ok(())
  }

  /// Opens the event at a position, if there is one.
  pub(super) async fn event_at(&self, position: Position) -> Result<Option<Opened>, End> {
    let batch = self.parts.log.read(Stream::Events, self.partition, position, 1).await?;
    let Some(stored) = batch.first().filter(|stored| stored.position == position) else { return Ok(None) };
    Ok(Some(self.parts.opener.event(stored).await?))
  }

  /// Announces `epoch` and reads on until exactly this announcement was read as accepted.
  async fn announce(&mut self, epoch: i64) -> Result<(), End> {
    let base = self.reader.decisions().fence().base();
    let inputs_from = agree::inputs_from(&self.parts, self.partition, self.next_input, &self.repeats).await?;
    let id = self.parts.ids.new_id();
    let announced = EpochAnnounced { inputs_from, base_epoch: base.epoch, base_seq: base.seq, holder: RecordId(self.parts.store.process()) };
    let record = self.parts.composer.announcement(id, epoch, self.parts.clock.now(), announced).map_err(|error| End::Fatal(error.into()))?;
    match self.parts.log.append(Stream::Events, self.partition, vec![record]).await {
      Ok(_) => pa_store::fail_point!("decider.after_announcement"),
      Err(AppendError::Unknown { .. }) => return Err(End::new_term("the fate of the announcement is unknown")),
      Err(refused @ AppendError::Refused { .. }) => return Err(End::Away(refused.into())),
    }
    if !guards::on(Guard::WaitForOwnAnnouncement) {
      self.next_input = NextInput(inputs_from);
      return Ok(());
    }
    self.wait_for(id, epoch).await
  }

  async fn wait_for(&mut self, id: Uuid, epoch: i64) -> Result<(), End> {
    let deadline = Instant::now() + READ_BACK_MAX;
    loop {
      let items = self.reader.poll().await?;
      let mut found = None;
      for item in items {
        self.fold(&item).await?;
        match item {
          Item::Announced(announced) if announced.id == id => found = Some(announced.counts),
          Item::Announced(announced) if announced.epoch > epoch => return Err(End::StepDown("a higher epoch was announced")),
          Item::Void(void) if void.id == id => return Err(End::new_term("the own announcement was read as void")),
          Item::Announced(_) | Item::Void(_) | Item::Decision(_) | Item::Erased(_) | Item::Unreadable { .. } => {}
        }
      }
      match found {
        Some(true) => return Ok(()),
        Some(false) => return Err(End::new_term("another decision landed before the announcement")),
        None if Instant::now() >= deadline => return Err(End::new_term("the announcement was not read back")),
        None => {
          let wait = self.parts.log.wait(Stream::Events, self.partition, self.reader.position());
          if timeout_at(deadline, wait).await.is_err() {
            tracing::debug!(partition = self.partition, "waited for the announcement to the end");
          }
        }
      }
    }
  }
}

/// Renews the lease while a term lasts; dropped, it stops.
pub(super) struct Keeper {
  lost: watch::Receiver<bool>,
  task: tokio::task::AbortHandle,
}

impl Keeper {
  #[expect(clippy::disallowed_methods, reason = "it ends with its term: dropping the keeper aborts it")]
  fn start(parts: &Parts, partition: Partition) -> Self {
    let (store, log) = (Arc::clone(&parts.store), Arc::clone(&parts.log));
    let (say, lost) = watch::channel(false);
    let task = tokio::spawn(async move {
      let mut renewed = Instant::now();
      loop {
        sleep(RENEW_EVERY).await;
        // A lease proves that its holder reaches the log, too; if nobody else takes it meanwhile, it goes on when the log is back.
        if matches!(log.end(Stream::Events, partition).await, Err(LogError::Away(_))) {
          continue;
        }
        let asked = Instant::now();
        match timeout_at(asked.max(renewed + LEASE), store.renew(part(partition))).await {
          Ok(Ok(true)) => renewed = asked,
          Ok(Ok(false)) => break,
          Err(_) => {
            tracing::warn!(partition, "the database did not answer for a whole lease");
            break;
          }
          Ok(Err(error)) => {
            tracing::warn!(partition, error = &error as &dyn std::error::Error, "could not renew the lease");
            if renewed.elapsed() >= LEASE {
              break;
            }
          }
        }
      }
      say.send_replace(true);
    });
    Self { lost, task: task.abort_handle() }
  }

  pub(super) fn is_lost(&self) -> bool {
    *self.lost.borrow()
  }

  pub(super) async fn lost(&self) {
    let mut lost = self.lost.clone();
    if lost.wait_for(|lost| *lost).await.is_err() {
      std::future::pending::<()>().await;
    }
  }
}

impl Drop for Keeper {
  fn drop(&mut self) {
    self.task.abort();
  }
}
