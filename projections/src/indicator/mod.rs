//! Is the agent at work, has something failed, is there a new result, does something wait for the owner?
//!
//! Facts only: what has been read lies in the browser (D27). `changed` rises with every fact that can change an answer.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::{Change, Completed, Failed, Failing};
pub(crate) use read::IndicatorRow;
pub use read::{Failure, Indicator, LastResult, of};
pub use write::Rows;

use crate::commit::{Fact, Parts, Projection};

impl Projection for Rows {
  const NAME: &'static str = "indicator";
  const FOLD_VERSION: u32 = 2;
  const TABLES: &'static str = include_str!("tables.sql");
  type Change = Change;

  fn fold(fact: &Fact<'_>) -> Vec<Change> {
    fold::fold(fact.meta, fact.event).into_iter().collect()
  }

  fn merge(&mut self, agent: AgentId, change: Change) {
    self.rows.put(agent, (), change, Change::merge);
  }

  fn forget(&mut self, agent: AgentId) {
    self.rows.forget(agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
