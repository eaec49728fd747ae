//! What waits for the owner's word?
//!
//! Two kinds of rows. A **card** is one held action with its exact content; deciding names the card, so a decision is about what was shown and nothing else (D12). An
//! **effect** is an external call that has begun; the owner is asked about it once nobody knows its outcome (RUN-18). Invariants:
//! - A card's content never changes: other content is another card.
//! - One row for each external call, also when an allowance for the task started it without a card of its own.
//!
//! Next: `fold.rs`, then `read.rs`.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::{ActionRow, Change, Patch};
pub(crate) use read::changed_after;
pub use read::{Action, PENDING_MAX, one, pending};
pub use write::Rows;

use crate::code::codes;
use crate::commit::{Fact, Parts, Projection};

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
  Card,
  Effect,
}

/// How far an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
  /// A card that waits for the owner's decision.
  Pending,
  /// A card that the owner approved, once.
  Approved,
  /// A card that the owner approved together with all of its scope in this task.
  Allowed,
  Rejected,
  /// A card that is no longer to be decided, or whose approval no longer counts.
  Withdrawn,
  /// An effect that is being carried out.
  Started,
  /// An effect whose outcome is known.
  Settled,
  /// An effect whose outcome nobody knows: the owner is asked.
  Unknown,
  /// An effect whose unknown outcome was settled afterwards.
  Reconciled,
}

codes! {
  Kind, "a kind of action": Card = "CARD", Effect = "EFFECT";
  State, "a state of an action":
    Pending = "PENDING", Approved = "APPROVED", Allowed = "ALLOWED", Rejected = "REJECTED", Withdrawn = "WITHDRAWN", Started = "STARTED", Settled = "SETTLED",
    Unknown = "UNKNOWN", Reconciled = "RECONCILED";
}

impl Projection for Rows {
  const NAME: &'static str = "pending_actions";
  const FOLD_VERSION: u32 = 1;
  const TABLES: &'static str = include_str!("tables.sql");
  type Change = Change;

  fn fold(fact: &Fact<'_>) -> Vec<Change> {
    fold::fold(fact.meta, fact.event).into_iter().collect()
  }

  fn merge(&mut self, agent: AgentId, change: Change) {
    self.add(agent, change);
  }

  fn forget(&mut self, agent: AgentId) {
    self.rows.forget(agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
