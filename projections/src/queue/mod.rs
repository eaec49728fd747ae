//! What is to be done, by whom is it being done, and which calls are open?
//!
//! Workers look here for work and then ask the log, which alone decides: a row that is behind costs a refused ask and nothing more. Invariants:
//! - A job has a row from its first turn (`ReplyRequested`, `TaskRunRequested`) to its end. A task that waits or is paused keeps it, without a turn.
//! - A job with an open external call is not offered (RUN-18): that call's row stays, also beyond the job's end, until its outcome is known.
//!
//! Next: `fold.rs`, then `read.rs`.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::{CallRow, Change, JobPatch, JobRow};
pub use read::{Job, OpenCall, candidates, job, open_calls, open_calls_of_ended, running, running_without_lease};
pub use write::Rows;
pub(crate) use write::{CallWrite, JobWrite};

use crate::code::codes;
use crate::commit::{Fact, Parts, Projection};

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobState {
  /// It has its turn and nobody works on it.
  Claimable,
  /// An execution runs.
  Running,
}

codes! {
  JobState, "a state of a job": Claimable = "CLAIMABLE", Running = "RUNNING";
}

impl Projection for Rows {
  const NAME: &'static str = "queue";
  const FOLD_VERSION: u32 = 2;
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
