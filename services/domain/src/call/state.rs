//! What the rules remember of a tool call.

use serde::{Deserialize, Serialize};

use super::{Class, Outcome};

/// A tool call's life so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
  pub step: i32,
  pub index: i32,
  pub tool: String,
  /// As the tool declared it at the start; `None` for a call that was skipped before it started.
  pub class: Option<Class>,
  /// The executions that started it, the latest last: more than one only for a repeatable call.
  pub started_by: Vec<i32>,
  pub status: CallStatus,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallStatus {
  Started,
  Skipped,
  Settled(Outcome),
  ReconciledByReport,
  ReconciledByOwner,
  /// Reconciled by the owner, and a late report was noted.
  Noted,
}

impl Call {
  /// Whether it still has to be settled before its job can finish: it is started, or external and unknown.
  pub fn is_open(&self) -> bool {
    match self.status {
      CallStatus::Started => true,
      CallStatus::Settled(Outcome::Unknown) => self.class == Some(Class::External),
      CallStatus::Skipped
      | CallStatus::Settled(Outcome::Returned | Outcome::Failed)
      | CallStatus::ReconciledByReport
      | CallStatus::ReconciledByOwner
      | CallStatus::Noted => false,
    }
  }

  /// Whether it runs and may run beside other repeatable calls.
  pub(super) fn reads_along(&self) -> bool {
    self.status == CallStatus::Started && self.class == Some(Class::Repeatable)
  }
}
