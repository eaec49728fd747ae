//! Who has an account here?
//!
//! The rows are facts of the installation, so that they do not depend on how far other partitions have been read. Whether an account's agent is erased is told by its
//! key, not here.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::AccountRow;
pub use read::{Account, all, one};
pub use write::Rows;

use crate::commit::{Fact, Parts, Projection};

impl Projection for Rows {
  const NAME: &'static str = "accounts";
  const FOLD_VERSION: u32 = 1;
  const TABLES: &'static str = include_str!("tables.sql");
  type Change = AccountRow;

  fn fold(fact: &Fact<'_>) -> Vec<AccountRow> {
    fold::fold(fact.meta, fact.event).into_iter().collect()
  }

  fn merge(&mut self, agent: AgentId, row: AccountRow) {
    self.rows.put(agent, row.id.0, row, |earlier, later| *earlier = later);
  }

  fn forget(&mut self, agent: AgentId) {
    self.rows.forget(agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
