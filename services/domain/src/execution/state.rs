//! What the rules remember of the work on a job, whatever the job is for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::call::{Call, CallStatus, Outcome};
use crate::ids::{CallId, TimerId, Timestamp, derived};

/// The execution side of any job: what replies, tasks, deliveries and checks share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
  /// Executions so far.
  pub executions: i32,
  /// The one that runs, if one does.
  pub running: Option<Running>,
  /// Losses that count.
  pub losses: i32,
  /// Ordinal of the last instruction: the message itself, or its last retry.
  pub instructed: i64,
  /// Recorded steps by number, over all executions.
  pub steps: BTreeMap<i32, Step>,
  pub calls: BTreeMap<CallId, Call>,
}

/// A running execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
  pub execution: i32,
  /// The ask that it answers.
  pub ask: Uuid,
  pub limit_ms: Timestamp,
  /// The timer of a reply's attempt; a task has none, so nothing is set under this id.
  pub timer: TimerId,
}

/// A recorded answer of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
  pub ordinal: i64,
  /// The tools of the calls that it asks for, by index.
  pub tools: Vec<String>,
}

/// The timer of the execution that `ask` started. It is the second event of that decision.
pub(super) fn attempt_timer(ask: Uuid) -> TimerId {
  TimerId(derived(ask, 1))
}

impl Work {
  /// The number of the last recorded step; 0 before the first.
  pub fn last_step(&self) -> i32 {
    self.steps.last_key_value().map_or(0, |(&step, _)| step)
  }

  /// Whether an external call is started or its outcome unknown: then the job waits (RUN-18).
  pub fn waits_for_call(&self) -> bool {
    self.calls.values().any(Call::is_unconfirmed)
  }

  /// Whether a call is held, approved, started or, if external, its outcome unknown: then the job can't finish.
  pub fn has_open_call(&self) -> bool {
    self.calls.values().any(Call::is_open)
  }

  /// The owner gave an instruction: what was lost before no longer counts.
  pub(crate) fn instruct(&mut self, ordinal: i64) {
    self.instructed = ordinal;
    self.losses = 0;
  }

  /// Of all but the last `kept` steps only the calls are kept about which something may still be learnt.
  pub(crate) fn forget_steps_before(&mut self, kept: usize) {
    let Some(oldest) = self.steps.keys().rev().nth(kept.saturating_sub(1)).copied().filter(|_| self.steps.len() > kept) else { return };
    self.steps.retain(|&step, _| step >= oldest);
    self.calls.retain(|_, call| call.step >= oldest || call.is_learnt_of());
  }

  /// The work is done for good: keeps only calls about which something may still be learnt.
  pub(crate) fn forget_settled(&mut self) {
    self.steps.clear();
    self.calls.retain(|_, call| call.is_learnt_of());
  }
}

impl Call {
  /// Whether something may still be learnt about it.
  fn is_learnt_of(&self) -> bool {
    match self.status {
      CallStatus::Held | CallStatus::Approved | CallStatus::Started | CallStatus::Settled(Outcome::Unknown) | CallStatus::ReconciledByOwner => true,
      CallStatus::Skipped | CallStatus::Settled(Outcome::Returned | Outcome::Failed) | CallStatus::ReconciledByReport | CallStatus::Noted => false,
    }
  }
}
