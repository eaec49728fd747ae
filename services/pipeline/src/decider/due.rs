//! What follows once a decision was read back: inputs elsewhere, an erased agent's leftovers.
//!
//! Each is due until it was done. What can't be done now is tried again beside everything else: only its own agent waits, not the partition. The positions of what is due
//! stand in the checkpoint, so a later term, also of another process, does it; what was done already is a repeat then, and an erasure changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use pa_domain::meta::Origin;
use pa_domain::{AgentId, Event, agent, log, route};
use pa_eventlog::appender::Submission;
use pa_eventlog::opener::Opened;
use pa_eventlog::reader::{Decision, Recorded, Unopened};
use pa_eventlog::seal::KeyState;
use pa_eventlog::{Position, Stored};
use tokio::time::{Instant, timeout};

use super::End;
use super::term::{Term, part};

/// The producer of routed inputs.
pub(super) const PRODUCER: &str = "decider";
/// The pause before something due is tried again; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(500);
/// A disk that has room again should be noticed within about this time.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// One try takes no longer: others wait for it, and what was written before must still be read back in time.
const TRY_MAX: Duration = Duration::from_secs(2);

/// What a read-back event leads to outside its own decision.
pub(super) struct Due {
  /// Where the event stands.
  position: Position,
  /// Whom it concerns: what is due for one agent is done in order.
  agent: AgentId,
  what: What,
  again_at: Instant,
  pause: Duration,
}

enum What {
  Erasure,
  /// An input that `route` names.
  Input(Arc<Recorded>),
}

impl Due {
  fn new(position: Position, agent: AgentId, what: What) -> Self {
    Self { position, agent, what, again_at: Instant::now(), pause: PAUSE }
  }

  /// What an event leads to, if it leads to anything.
  fn of(recorded: &Arc<Recorded>) -> Option<Self> {
    let meta = recorded.core();
    if let Event::Agent(agent::Event::AgentErased(_)) = recorded.event {
      return Some(Self::new(recorded.position, meta.agent, What::Erasure));
    }
    route(meta, &recorded.event).map(|routed| Self::new(recorded.position, routed.agent, What::Input(Arc::clone(recorded))))
  }
}

impl Term {
  /// Notes what a decision leads to elsewhere; [`Self::carry_on`] does it.
  pub(super) fn read_back(&mut self, decision: &Decision) {
    for recorded in decision.events.iter() {
      if let Event::Log(log::Event::InputHeld(_) | log::Event::InputQuarantined(_)) = &recorded.event {
        self.agents.held_at(decision.agent, recorded.core().ordinal, recorded.position);
      }
      self.owe(Due::of(recorded));
    }
  }

  /// Notes that an erasure may not have come to its end: of an erased agent nothing can be opened, and the type of the last event says that it is one.
  pub(super) fn read_back_erased(&mut self, unopened: &Unopened) {
    let due = || Due::new(unopened.last, unopened.agent, What::Erasure);
    self.owe(is_erasure(unopened.last_stored()).then(due));
  }

  fn owe(&mut self, due: Option<Due>) {
    if let Some(due) = due {
      self.agents.owe(due.position);
      self.due.push(due);
    }
  }

  /// Takes over what was due at the checkpoint.
  pub(super) async fn load_due(&mut self) -> Result<(), End> {
    for position in self.agents.owed() {
      let batch = self.parts.log.read(pa_eventlog::Stream::Events, self.partition, position, 1).await?;
      let Some(stored) = batch.first().filter(|stored| stored.position == position) else { continue };
      let due = match self.parts.opener.event(stored).await? {
        Opened::Event(recorded) => Due::of(&recorded),
        Opened::Erased | Opened::Unreadable(_) | Opened::Input(_) => {
          let agent = stored.meta().map_err(|error| End::Fatal(error.into()))?.core.agent;
          is_erasure(stored).then(|| Due::new(position, agent, What::Erasure))
        }
      };
      match due {
        Some(due) => self.due.push(due),
        None => self.agents.paid(position),
      }
    }
    Ok(())
  }

  /// Does what is due and can be done now.
  pub(super) async fn carry_on(&mut self) {
    let mut waiting: BTreeMap<AgentId, Instant> = BTreeMap::new();
    let mut left = Vec::new();
    for mut due in std::mem::take(&mut self.due) {
      let again_at = waiting.get(&due.agent).copied().unwrap_or(due.again_at);
      if again_at > Instant::now() {
        due.again_at = again_at;
        waiting.insert(due.agent, again_at);
        left.push(due);
        continue;
      }
      let done = timeout(TRY_MAX, self.carry_out(&due)).await.unwrap_or_else(|_| Err(anyhow::anyhow!("it takes too long")));
      let Err(error) = done else {
        self.agents.paid(due.position);
        continue;
      };
      tracing::warn!(agent.id = %due.agent, position = due.position, error = &*error as &dyn std::error::Error, "what a decision leads to can't be done now");
      metrics::counter!("pa_decider_due_retries_total").increment(1);
      due.again_at = Instant::now() + due.pause;
      due.pause = (due.pause * 2).min(PAUSE_MAX);
      waiting.insert(due.agent, due.again_at);
      left.push(due);
    }
    self.due = left;
  }

  /// When something due is tried again.
  pub(super) fn due_at(&self) -> Option<Instant> {
    self.due.iter().map(|due| due.again_at).min()
  }

  async fn carry_out(&mut self, due: &Due) -> anyhow::Result<()> {
    match &due.what {
      What::Erasure => self.erase(due.agent).await,
      What::Input(recorded) => self.append_routed(recorded).await,
    }
  }

  async fn append_routed(&self, recorded: &Recorded) -> anyhow::Result<()> {
    let meta = recorded.core();
    let Some(routed) = route(meta, &recorded.event) else { return Ok(()) };
    // It was routed before its agent was erased: when the state is built anew there is nothing left to ask for.
    if matches!(self.parts.keys.keys(routed.agent).await?, KeyState::Erased) {
      return Ok(());
    }
    self.parts.key_maker.make(routed.agent).await?;
    let key = meta.id.to_string();
    let submission = Submission {
      agent: routed.agent,
      input: routed.input,
      producer: PRODUCER,
      key: Some(&key),
      content: None,
      actor: "platform",
      origin: Origin::Platform,
      cause: Some(meta.id),
      correlation: Some(meta.correlation),
      traceparent: None,
    };
    self.parts.appender.submit(submission).await.context("append what was routed")?;
    Ok(())
  }

  /// The tombstone stays: the agent's ordinals and chain go on from it.
  async fn erase(&mut self, agent: AgentId) -> anyhow::Result<()> {
    self.parts.store.forget_agent(part(self.partition), agent).await?;
    self.parts.eraser.erase(agent).await?;
    self.repeats.forget(agent);
    tracing::info!(agent.id = %agent, "an agent was erased");
    Ok(())
  }
}

fn is_erasure(stored: &Stored) -> bool {
  stored.record.type_name.starts_with("pa.agent.AgentErased.")
}
