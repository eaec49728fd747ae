//! What did a task do, and what was it told?
//!
//! The entries of a task's own conversation in admission order: the goal, each instruction, the agent's words, tool calls with their results, checkpoints, delivered
//! files, the result. Invariants:
//! - `place` never changes, and is the ordinal of the event that first showed the entry, so that order is the same live, after a reload and in pages (RUN-8, RUN-10).
//! - A tool call has one entry, whatever happens to it: a late result changes that entry (RUN-9).
//! - A call or a step of a reply has no entry here: only jobs that are tasks have.
//!
//! Next: `fold.rs`, then `read.rs`.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::{Change, NewEntry, Patch};
pub(crate) use read::changed_after;
pub use read::{Entry, PAGE_MAX, one, page};
pub use write::Rows;

use crate::code::codes;
use crate::commit::{Fact, Parts, Projection};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
  Goal,
  Instruction,
  /// What the agent wrote between its tool calls.
  Words,
  Tool,
  /// The agent's own notes about how far it is.
  Checkpoint,
  /// A file that was handed over.
  Output,
  Result,
  /// What the agent had when the task failed; no result.
  Failure,
  /// The task was paused, resumed, stopped or interrupted.
  Event,
}

/// How far an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
  Posted,
  /// A call that waits for the owner's decision.
  Held,
  Started,
  Returned,
  Failed,
  Skipped,
  /// Nobody knows its outcome.
  Unknown,
  /// Its unknown outcome was settled.
  Reconciled,
}

codes! {
  Kind, "a kind of a task's entry":
    Goal = "GOAL", Instruction = "INSTRUCTION", Words = "WORDS", Tool = "TOOL", Checkpoint = "CHECKPOINT", Output = "OUTPUT", Result = "RESULT",
    Failure = "FAILURE", Event = "EVENT";
  Status, "a status of a task's entry":
    Posted = "POSTED", Held = "HELD", Started = "STARTED", Returned = "RETURNED", Failed = "FAILED", Skipped = "SKIPPED", Unknown = "UNKNOWN",
    Reconciled = "RECONCILED";
}

impl Projection for Rows {
  const NAME: &'static str = "task_entries";
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
    self.drop_agent(agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
