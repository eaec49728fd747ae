//! Decides inputs and makes the records of their decisions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pa_domain::ids::RecordId;
use pa_domain::limits::DECISION_EVENTS_MAX;
use pa_domain::log::{HeldInput, exempt, is_holding, quarantined, set_aside};
use pa_domain::{Event, Input, Meta, Origin, Thing, Timestamp, decide, settle};
use pa_eventlog::compose::{Composed, Draft};
use pa_eventlog::opener::Opened;
use pa_eventlog::seal::KeyState;
use pa_eventlog::{Position, Record, Stored};
use tokio::time::Instant;
use uuid::Uuid;

use super::End;
use super::agents::{Agent, Unfoldable, panic_text};
use super::repeats::{REQUEST_KEY_CONFLICT, Verdict};
use super::term::Term;

/// A decision that was appended and not yet read back.
#[derive(Debug)]
pub(super) struct Sent {
  pub(super) seq: i64,
  pub(super) cause: Uuid,
  pub(super) at: Instant,
}

/// An input that is to be decided.
pub(super) struct Asked {
  pub(super) position: Position,
  pub(super) held: bool,
  pub(super) meta: Meta,
  pub(super) content: Content,
  /// Its bytes, should it be set aside.
  pub(super) record: Record,
}

pub(super) enum Content {
  Input(Arc<pa_eventlog::reader::RecordedInput>),
  /// Its agent was erased.
  Erased,
  /// It can't be opened or decoded although the key is there.
  Unreadable(Arc<str>),
  /// Three processes died on it.
  Deadly,
}

impl Asked {
  /// An input as it was opened.
  pub(super) fn new(stored: &Stored, held: bool, opened: Opened) -> Result<Self, End> {
    let meta = stored.meta().map_err(|error| End::Fatal(error.into()))?.core.clone();
    let content = match opened {
      Opened::Input(input) => Content::Input(input),
      Opened::Erased => Content::Erased,
      Opened::Unreadable(why) => Content::Unreadable(why),
      Opened::Event(_) => Content::Unreadable("an event among inputs".into()),
    };
    Ok(Self { position: stored.position, held, meta, content, record: stored.record.clone() })
  }

  pub(super) fn input(&self) -> Option<&Input> {
    match &self.content {
      Content::Input(recorded) => Some(&recorded.input),
      Content::Erased | Content::Unreadable(_) | Content::Deadly => None,
    }
  }

  /// The thing to load before it is decided; one that the decision makes can't be stored yet.
  pub(super) fn thing(&self) -> Option<pa_domain::ThingId> {
    self.input().filter(|input| !self.makes_new(input)).and_then(|input| input.thing(self.meta.id))
  }

  /// Whether the thing that a decision makes is certainly not there before. What has no key may stand in the log a second time, and only its thing tells.
  fn makes_new(&self, input: &Input) -> bool {
    makes_thing(input) && !self.meta.key.is_empty()
  }

  /// The chain of causes that the decision belongs to: the worker that asks for a job, and who notices that it is lost or late, begin none of their own.
  fn correlation(&self, thing: &Thing) -> Uuid {
    let works = match self.input() {
      Some(Input::Execution(_) | Input::Call(_) | Input::Task(_) | Input::Timer(_)) => matches!(self.meta.origin, Origin::Agent | Origin::Platform),
      Some(Input::Account(_) | Input::Agent(_) | Input::Log(_) | Input::Settings(_) | Input::Conversation(_)) | None => false,
    };
    let begins = self.meta.correlation == self.meta.id;
    thing.correlation().filter(|_| works && begins).unwrap_or(self.meta.correlation)
  }

  /// The decision on an input of an agent whose history is not whole: nothing can be decided from it, and nothing is lost.
  fn behind_damage(&self, entry: &Agent) -> Vec<Event> {
    if is_holding(&entry.root) && !self.held {
      // Only what can be told so is refused beyond the list's limit; a message would be admitted into a state that may be wrong.
      return set_aside(&entry.root, &self.meta, self.input().filter(|input| input.is_command()), self.bytes());
    }
    let damage = entry.damage.map_or_else(String::new, |damage| damage.to_string());
    quarantine(self, "UNREADABLE", &damage)
  }

  fn bytes(&self) -> HeldInput {
    HeldInput {
      position: self.position,
      id: RecordId(self.meta.id),
      type_name: self.record.type_name.to_string(),
      meta: self.record.meta.to_vec(),
      value: self.record.value.to_vec(),
    }
  }
}

fn makes_thing(input: &Input) -> bool {
  matches!(input, Input::Conversation(pa_domain::conversation::Input::MessageGiven(_) | pa_domain::conversation::Input::MessageReceived(_)))
}

impl Term {
  /// Decides one input under (`epoch`, `seq`…), folds the decision, and returns its records. Root and thing are loaded.
  pub(super) async fn decide(&mut self, asked: &Asked, epoch: i64, seq: i64) -> Result<Composed, End> {
    let agent = asked.meta.agent;
    if matches!(asked.content, Content::Erased) {
      self.agents.entomb(agent);
    }
    let entry = self.agents.agent(agent);
    let at = Timestamp(entry.at.0.max(self.parts.clock.now().0));
    let first_index = if asked.held { held_index(entry.quarantined.get(&asked.meta.id).copied().unwrap_or_default()) } else { 0 };
    let (ordinal, chain) = (entry.ordinal, entry.chain);
    let mut events = self.events(asked, at);
    let thing = self.agents.thing(agent, asked.input().and_then(|input| input.thing(asked.meta.id)));
    let input = Meta { correlation: asked.correlation(&thing), ..asked.meta.clone() };
    for last in [false, true] {
      let draft = Draft { input: &input, position: asked.position, held: asked.held, at, epoch, seq, ordinal, chain, first_index, events: &events };
      let composed = self.compose(asked, &draft).await?;
      let problem = match composed {
        Ok(composed) => {
          let metas = composed.metas.iter().map(|meta| &meta.core).zip(&events);
          match self.agents.fold(agent, metas, composed.chain) {
            Ok(()) => {
              if let Some((meta, first)) = composed.metas.first().zip(events.first())
                && !self.agents.agent(agent).is_erased()
              {
                self.repeats.decided(&meta.core, first, asked.position, at.0);
              }
              return Ok(composed);
            }
            Err(Unfoldable::Panicked(text)) => ("PANIC", text),
            Err(Unfoldable::RootTooLarge) => ("ROOT_TOO_LARGE", String::new()),
          }
        }
        Err(error) => ("UNWRITABLE", error.to_string()),
      };
      if last {
        return Err(End::Fatal(anyhow::anyhow!("input {} can't even be quarantined: {} {}", asked.meta.id, problem.0, problem.1)));
      }
      events = quarantine(asked, problem.0, &problem.1);
    }
    unreachable!("the second round returns")
  }

  fn events(&mut self, asked: &Asked, at: Timestamp) -> Vec<Event> {
    let entry = self.agents.agent(asked.meta.agent);
    let root = &entry.root;
    let input = match &asked.content {
      Content::Erased => return vec![settle::no_change("ERASED")],
      Content::Input(_) | Content::Unreadable(_) if entry.damage.is_some() && !asked.input().is_some_and(exempt) => return asked.behind_damage(entry),
      Content::Deadly => return quarantine(asked, "DEADLY", "three processes died on it"),
      Content::Unreadable(_) if is_holding(root) && !asked.held => return set_aside(root, &asked.meta, None, asked.bytes()),
      Content::Unreadable(why) => return quarantine(asked, "UNREADABLE", why),
      Content::Input(recorded) => Arc::clone(recorded),
    };
    let input = &input.input;
    if is_holding(root) && !asked.held && !exempt(input) {
      return set_aside(root, &asked.meta, Some(input), asked.bytes());
    }
    match self.repeats.judge(&asked.meta, at.0) {
      Verdict::Repeat(of) => return vec![settle::repeated(of)],
      Verdict::Conflict => return vec![settle::refused(REQUEST_KEY_CONFLICT)],
      Verdict::New => {}
    }
    let thing = input.thing(asked.meta.id);
    if let Some(thing) = thing.filter(|_| asked.makes_new(input)) {
      self.agents.is_new(asked.meta.agent, thing);
    }
    let root = &self.agents.agent(asked.meta.agent).root;
    let thing = self.agents.thing(asked.meta.agent, thing);
    if makes_thing(input) && thing != Thing::Absent {
      return vec![settle::repeated(asked.meta.id)];
    }
    match catch_unwind(AssertUnwindSafe(|| decide(root, &thing, &asked.meta, input, at))) {
      Ok(events) if (1..=DECISION_EVENTS_MAX).contains(&events.len()) => events,
      Ok(events) => quarantine(asked, "TOO_MANY_EVENTS", &format!("{} events", events.len())),
      Err(panic) => quarantine(asked, "PANIC", &panic_text(&*panic)),
    }
  }

  async fn compose(&self, asked: &Asked, draft: &Draft<'_>) -> Result<Result<Composed, pa_eventlog::compose::Error>, End> {
    let agent = asked.meta.agent;
    let trace = asked.record.traceparent.as_ref();
    let keys = match self.parts.keys.cached(agent) {
      Some(keys) => Some(keys),
      None => match self.parts.keys.keys(agent).await.map_err(|error| End::Away(error.into()))? {
        KeyState::Ready(keys) => Some(keys),
        KeyState::Erased => None,
        KeyState::Missing => return Err(End::Fatal(anyhow::anyhow!("agent {agent} has no key and was not erased: restore the database's backup"))),
      },
    };
    Ok(self.parts.composer.decision(keys.as_deref(), draft, trace))
  }
}

fn quarantine(asked: &Asked, reason: &str, detail: &str) -> Vec<Event> {
  tracing::error!(agent.id = %asked.meta.agent, input.id = %asked.meta.id, reason, detail, "an input is quarantined; its agent waits for a release");
  metrics::counter!("pa_decider_quarantines_total").increment(1);
  quarantined(asked.bytes(), reason, detail)
}

/// Ids of events are derived from the input's id: each decision on the same input takes the next 64.
fn held_index(quarantined: i32) -> u32 {
  let earlier = 1 + quarantined.unsigned_abs();
  earlier * u32::try_from(DECISION_EVENTS_MAX).unwrap_or(u32::MAX)
}

/// Now, as the read-back limit counts it.
pub(super) fn sent(composed: &Composed, seq: i64, cause: Uuid) -> (Sent, i64) {
  (Sent { seq, cause, at: Instant::now() }, seq + i64::try_from(composed.records.len()).unwrap_or(i64::MAX))
}
