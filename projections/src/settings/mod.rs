//! What has the owner chosen?
//!
//! One row for each agent, replaced whole with every change.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::SettingsRow;
pub use read::{Settings, of, of_many};
pub use write::Rows;

use crate::commit::{Fact, Parts, Projection};

impl Projection for Rows {
  const NAME: &'static str = "settings";
  const FOLD_VERSION: u32 = 1;
  const TABLES: &'static str = include_str!("tables.sql");
  type Change = SettingsRow;

  fn fold(fact: &Fact<'_>) -> Vec<SettingsRow> {
    fold::fold(fact.meta, fact.event).into_iter().collect()
  }

  fn merge(&mut self, agent: AgentId, row: SettingsRow) {
    self.rows.put(agent, (), row, |earlier, later| *earlier = later);
  }

  fn forget(&mut self, agent: AgentId) {
    self.rows.forget(agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
