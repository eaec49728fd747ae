//! Which files have tasks handed over?
//!
//! One row a receipt, and it never changes. The file is the one that stands in the conversation, named by the same attachment. Next: `read.rs`.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::OutputRow;
pub(crate) use read::changed_after;
pub use read::{Output, PAGE_MAX, page};
pub use write::Rows;

use crate::commit::{Fact, Parts, Projection};

impl Projection for Rows {
  const NAME: &'static str = "outputs";
  const FOLD_VERSION: u32 = 1;
  const TABLES: &'static str = include_str!("tables.sql");
  type Change = OutputRow;

  fn fold(fact: &Fact<'_>) -> Vec<OutputRow> {
    fold::fold(fact.meta, fact.event).into_iter().collect()
  }

  fn merge(&mut self, agent: AgentId, row: OutputRow) {
    self.rows.put(agent, row.id.0, row, |_, _| ());
  }

  fn forget(&mut self, agent: AgentId) {
    self.rows.forget(agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
