//! Repeats: which idempotency keys were decided, and by which input.
//!
//! A key is recorded by the decision on its input, within a window of the log's own time. A platform's or worker's key is 32 bytes, and the first wins. A client's
//! key is followed by 32 bytes over the business fields: the same key with other fields is a conflict.

use std::collections::{BTreeMap, HashMap};

use pa_domain::log::{self, Settlement};
use pa_domain::{AgentId, Event, Meta};
use pa_eventlog::Position;
use pa_eventlog::guards::{self, Guard};
use pa_eventlog::reader::Decision;
use pa_store::checkpoint::InputKey;
use uuid::Uuid;

use super::REPEAT_WINDOW_MILLIS;
use super::known_keys::KnownKeys;

type Key = (AgentId, String, [u8; 32]);

/// A key that was decided.
#[derive(Clone, Debug)]
pub(super) struct Known {
  pub(super) cause: Uuid,
  pub(super) content: Option<[u8; 32]>,
  pub(super) at_ms: i64,
  pub(super) position: Position,
}

/// Keys and causes since the checkpoint, and what was looked up in it.
#[derive(Default)]
pub(super) struct Repeats {
  /// Decided since the checkpoint, read back or not.
  recent: HashMap<Key, Known>,
  /// Looked up in the checkpoint for the current batch.
  looked_up: HashMap<Key, Known>,
  causes: BTreeMap<Position, Uuid>,
  /// What the checkpoint may hold.
  pub(super) stored: KnownKeys,
}

/// What a key says about an input.
pub(super) enum Verdict {
  New,
  Repeat(Uuid),
  Conflict,
}

/// The reason code of a client's key that was used with other business fields.
pub(super) const REQUEST_KEY_CONFLICT: &str = "REQUEST_KEY_CONFLICT";

fn records_key(first: &Event) -> bool {
  match first {
    Event::Log(log::Event::InputHeld(_) | log::Event::InputQuarantined(_)) => false,
    Event::Log(log::Event::InputSettled(settled)) => settled.outcome != Settlement::Repeated && settled.reason != REQUEST_KEY_CONFLICT,
    Event::Log(log::Event::EpochAnnounced(_) | log::Event::QuarantineReleased(_))
    | Event::Account(_)
    | Event::Agent(_)
    | Event::Call(_)
    | Event::Conversation(_)
    | Event::Execution(_)
    | Event::Settings(_)
    | Event::Task(_)
    | Event::Timer(_) => true,
  }
}

/// A key's two halves.
pub(super) fn split(key: &[u8]) -> Option<([u8; 32], Option<[u8; 32]>)> {
  let (name, content) = key.split_first_chunk::<32>()?;
  Some((*name, content.try_into().ok()))
}

impl Repeats {
  /// Records what a decision that was read says; own decisions are recorded when they are made.
  pub(super) fn record(&mut self, decision: &Decision) {
    if let Some(first) = decision.events.first() {
      self.decided(first.core(), &first.event, decision.input, decision.at.0);
    }
  }

  /// Records the key of a decided input, unless its decision (which begins with `first`) settles nothing about the key: a hold decides later, and a repeat or a
  /// conflict leaves the key with the input that came first. `meta` is an event's of the decision.
  pub(super) fn decided(&mut self, meta: &Meta, first: &Event, input: Position, at_ms: i64) {
    if let Some((name, content)) = split(&meta.key).filter(|_| records_key(first)) {
      let known = Known { cause: meta.cause, content, at_ms, position: input };
      self
        .recent
        .entry((meta.agent, meta.producer.clone(), name))
        .and_modify(|old| {
          if at_ms - old.at_ms > REPEAT_WINDOW_MILLIS {
            *old = known.clone();
          }
        })
        .or_insert(known);
    }
  }

  /// Forgets the keys of an erased agent.
  pub(super) fn forget(&mut self, agent: AgentId) {
    self.recent.retain(|(owner, _, _), _| *owner != agent);
    self.looked_up.retain(|(owner, _, _), _| *owner != agent);
  }

  /// Records which input a decision not marked held answered at a position.
  pub(super) fn cause(&mut self, input: Position, cause: Uuid) {
    self.causes.insert(input, cause);
  }

  /// The causes since the checkpoint.
  pub(super) fn causes(&self) -> &BTreeMap<Position, Uuid> {
    &self.causes
  }

  /// The key of an input, if it has to be looked up in the checkpoint.
  pub(super) fn unknown<'a>(&self, meta: &'a Meta) -> Option<(AgentId, &'a str, [u8; 32])> {
    let (name, _) = split(&meta.key)?;
    let known = self.stored.rule_out(meta.agent, &name) || self.recent.contains_key(&(meta.agent, meta.producer.clone(), name));
    (!known).then_some((meta.agent, meta.producer.as_str(), name))
  }

  /// Takes in what the checkpoint knows for the current batch.
  pub(super) fn look_up(&mut self, rows: Vec<InputKey>) {
    self.looked_up = rows
      .into_iter()
      .map(|row| ((row.agent, row.producer, row.key), Known { cause: row.cause, content: row.content, at_ms: row.at_ms, position: row.position }))
      .collect();
  }

  /// What the key of an input says at the instant `at_ms`.
  pub(super) fn judge(&self, meta: &Meta, at_ms: i64) -> Verdict {
    let Some((name, content)) = split(&meta.key) else { return Verdict::New };
    let key = (meta.agent, meta.producer.clone(), name);
    let Some(known) = self.recent.get(&key).or_else(|| self.looked_up.get(&key)) else { return Verdict::New };
    if !guards::on(Guard::RepeatWindow) || at_ms - known.at_ms > REPEAT_WINDOW_MILLIS {
      return Verdict::New;
    }
    match (content, known.content) {
      (Some(now), Some(then)) if now != then => Verdict::Conflict,
      _ => Verdict::Repeat(known.cause),
    }
  }

  /// Keys and causes to write into the checkpoint.
  pub(super) fn rows(&self) -> (Vec<InputKey>, Vec<(i64, Uuid)>) {
    let keys = self
      .recent
      .iter()
      .map(|((agent, producer, key), known)| InputKey {
        agent: *agent,
        producer: producer.clone(),
        key: *key,
        position: known.position,
        cause: known.cause,
        content: known.content,
        at_ms: known.at_ms,
      })
      .collect();
    (keys, self.causes.iter().map(|(position, cause)| (*position, *cause)).collect())
  }

  /// They stand in the checkpoint now.
  pub(super) fn written(&mut self) {
    self.stored.written(self.recent.keys().map(|(agent, _, key)| (*agent, key)));
    self.recent.clear();
    self.looked_up.clear();
    self.causes.clear();
  }
}
