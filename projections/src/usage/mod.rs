//! What did the model use and cost?
//!
//! One row for each recorded step. Sums for a message, a task or a stretch of time such as a local day are made of these rows; what is not known is counted and never
//! taken for 0.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::UsageRow;
pub use read::{Cost, Span, Sum, Usage, of_job, sum};
pub use write::Rows;

use crate::commit::{Fact, Parts, Projection};

impl Projection for Rows {
  const NAME: &'static str = "usage";
  const FOLD_VERSION: u32 = 1;
  const TABLES: &'static str = include_str!("tables.sql");
  type Change = UsageRow;

  fn fold(fact: &Fact<'_>) -> Vec<UsageRow> {
    fold::fold(fact.meta, fact.event).into_iter().collect()
  }

  fn merge(&mut self, agent: AgentId, row: UsageRow) {
    self.rows.put(agent, (row.job.0, row.step), row, |_, _| ());
  }

  fn forget(&mut self, agent: AgentId) {
    self.rows.forget(agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
