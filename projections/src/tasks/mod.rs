//! Which tasks are there, and how far is each?
//!
//! One row a task, from its start on for ever: an ended task can be continued. Invariants:
//! - `place` is the ordinal of the start and never changes.
//! - `changed` rises with everything that a row shows.
//!
//! Next: `fold.rs`, then `read.rs`; what a task did is in `task_entries`.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::{Change, Moved, Patch, TaskRow};
pub(crate) use read::changed_after;
pub use read::{LISTED_MAX, PAGE_MAX, Page, Status, Task, Window, listed, one, page};
pub use write::Rows;

use crate::code::codes;
use crate::commit::{Fact, Parts, Projection};

/// Where a task stands, apart from whether an execution runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
  /// Queued or running.
  Active,
  Waiting,
  Paused,
  Completed,
  Failed,
  Stopped,
}

codes! {
  State, "a state of a task": Active = "ACTIVE", Waiting = "WAITING", Paused = "PAUSED", Completed = "COMPLETED", Failed = "FAILED", Stopped = "STOPPED";
}

impl Projection for Rows {
  const NAME: &'static str = "tasks";
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
