//! Which timers run, and when is the next one due?
//!
//! The scheduler reads it and reports what is due; the log decides whether the timer is still set, so a row that is behind costs an input that changes nothing.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::{Change, TimerRow};
pub use read::{Timer, due, next_due};
pub use write::Rows;

use crate::commit::{Fact, Parts, Projection};

impl Projection for Rows {
  const NAME: &'static str = "timers";
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
    self.timers.forget(agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
