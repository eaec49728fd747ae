//! What the rules remember of a tool call.

use serde::{Deserialize, Serialize};

use super::{Class, Gate, Outcome};
use crate::ids::ActionId;

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
  /// The ordinal of its last start; 0 before.
  pub begun: i64,
  /// The card that is open about it, or approved and not used yet.
  pub card: Option<Box<Card>>,
  pub status: CallStatus,
}

/// A card: what the owner decides on, or has approved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
  pub id: ActionId,
  pub gate: Gate,
  /// The canonical action.
  pub action: String,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallStatus {
  /// It waits for the owner's decision.
  Held,
  /// The owner has approved it, and it has not started since.
  Approved,
  Started,
  Skipped,
  Settled(Outcome),
  ReconciledByReport,
  ReconciledByOwner,
  /// Reconciled by the owner, and a late report was noted.
  Noted,
}

impl Call {
  /// Whether it still has to be settled before its job can finish: it is held, approved, started, or external and unknown.
  pub fn is_open(&self) -> bool {
    match self.status {
      CallStatus::Held | CallStatus::Approved | CallStatus::Started => true,
      CallStatus::Settled(Outcome::Unknown) => self.class == Some(Class::External),
      CallStatus::Skipped
      | CallStatus::Settled(Outcome::Returned | Outcome::Failed)
      | CallStatus::ReconciledByReport
      | CallStatus::ReconciledByOwner
      | CallStatus::Noted => false,
    }
  }

  /// Whether it is external and started or unknown: nobody can tell yet what it did.
  pub fn is_unconfirmed(&self) -> bool {
    self.class == Some(Class::External) && self.is_open() && !self.is_carded()
  }

  /// Whether a card about it is open, or approved and not used yet.
  pub fn is_carded(&self) -> bool {
    match self.status {
      CallStatus::Held | CallStatus::Approved => true,
      CallStatus::Started
      | CallStatus::Skipped
      | CallStatus::Settled(_)
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
