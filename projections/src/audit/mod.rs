//! What happened, when, and who caused it?
//!
//! One compact row for every fact of an agent, in the order of its log; the body stays in the log. An agent's ordinals have no gaps and its `at` never falls, so an
//! instant is found by halving.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::AuditRow;
pub use read::{Filter, PAGE_MAX, Page, Place, Row, last_until, page, places, settlement_of, whole_decision};
pub use write::Rows;

use crate::commit::{Fact, Parts, Projection};

impl Projection for Rows {
  const NAME: &'static str = "audit";
  const FOLD_VERSION: u32 = 1;
  const TABLES: &'static str = include_str!("tables.sql");
  type Change = AuditRow;

  fn fold(fact: &Fact<'_>) -> Vec<AuditRow> {
    vec![fold::fold(fact)]
  }

  fn merge(&mut self, agent: AgentId, row: AuditRow) {
    self.rows.push((agent, row));
  }

  fn forget(&mut self, agent: AgentId) {
    self.rows.retain(|(of, _)| *of != agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
