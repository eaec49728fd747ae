//! What the outside was told: the oracle compares it with the log.

use std::collections::HashMap;

use pa_domain::{AgentId, CallId};
use pa_eventlog::Position;
use pa_eventlog::reader::DecisionHead;
use parking_lot::Mutex;
use uuid::Uuid;

use super::watcher::Look;

/// A decision that a client was told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Told {
  pub(super) agent: AgentId,
  pub(super) cause: Uuid,
  pub(super) epoch: i64,
  pub(super) seq: i64,
  pub(super) first: Position,
}

impl Told {
  pub(super) fn of(decision: &DecisionHead) -> Self {
    Self { agent: decision.agent, cause: decision.cause, epoch: decision.epoch, seq: decision.seq, first: decision.first }
  }
}

/// A message of which its sender knows that it counts.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
  pub(super) agent: AgentId,
  /// Whose messages come in their order.
  pub(super) source: String,
  pub(super) number: u64,
  pub(super) text: String,
  /// The input that its sender was told of.
  pub(super) input: Option<Uuid>,
}

/// Everything that was told.
#[derive(Default)]
pub(super) struct Record {
  told: Mutex<Vec<Told>>,
  acknowledged: Mutex<Vec<Acknowledged>>,
  reconciled: Mutex<HashMap<CallId, bool>>,
  erased: Mutex<Vec<AgentId>>,
  admitted: Mutex<Vec<(AgentId, i64, Uuid)>>,
  looks: Mutex<Vec<Look>>,
  problems: Mutex<Vec<String>>,
}

impl Record {
  pub(super) fn told(&self, told: Told) {
    self.told.lock().push(told);
  }

  pub(super) fn acknowledged(&self, message: Acknowledged) {
    self.acknowledged.lock().push(message);
  }

  /// A message whose sender knows where it stands: a reader at that ordinal is shown it.
  pub(super) fn admitted(&self, agent: AgentId, ordinal: i64, message: Uuid) {
    self.admitted.lock().push((agent, ordinal, message));
  }

  /// Messages of an agent that a reader must be shown, each from an ordinal on.
  pub(super) fn visible(&self, agent: AgentId) -> Vec<(i64, Uuid)> {
    self.admitted.lock().iter().filter(|(of, _, _)| *of == agent).map(|(_, ordinal, message)| (*ordinal, *message)).collect()
  }

  /// Somebody was shown something.
  pub(super) fn look(&self, look: Look) {
    self.looks.lock().push(look);
  }

  pub(super) fn all_looks(&self) -> Vec<Look> {
    self.looks.lock().clone()
  }

  pub(super) fn reconciled(&self, call: CallId, executed: bool) {
    self.reconciled.lock().insert(call, executed);
  }

  /// An agent is to be erased.
  pub(super) fn erased(&self, agent: AgentId) {
    self.erased.lock().push(agent);
  }

  pub(super) fn all_erased(&self) -> Vec<AgentId> {
    self.erased.lock().clone()
  }

  /// Something that must not be, noticed on the way.
  pub(super) fn problem(&self, problem: String) {
    self.problems.lock().push(problem);
  }

  pub(super) fn all_told(&self) -> Vec<Told> {
    self.told.lock().clone()
  }

  pub(super) fn all_acknowledged(&self) -> Vec<Acknowledged> {
    self.acknowledged.lock().clone()
  }

  /// What owners said about calls, by the call.
  pub(super) fn words(&self) -> HashMap<CallId, bool> {
    self.reconciled.lock().clone()
  }

  pub(super) fn problems(&self) -> Vec<String> {
    self.problems.lock().clone()
  }
}
