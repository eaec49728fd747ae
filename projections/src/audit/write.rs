//! Lines of the audit, and the statement that writes them. A fact has one line, so nothing is merged.

use pa_domain::AgentId;

use super::fold::AuditRow;
use crate::code::Code as _;
use crate::commit::{Argument, Parts};

/// What a batch adds to the audit.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) rows: Vec<(AgentId, AuditRow)>,
}

const ADD: &str = "INSERT INTO audit (agent, ordinal, part, position, id, type, at_ms, actor, origin, cause, correlation, input_position, thing) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
  AS u(agent, ordinal, part, position, id, type, at_ms, actor, origin, cause, correlation, input_position, thing)";

impl Rows {
  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    if self.rows.is_empty() {
      return;
    }
    let of = || self.rows.iter().map(|(_, row)| row);
    let columns = [
      Argument::Uuids(self.rows.iter().map(|(agent, _)| agent.0).collect()),
      Argument::Longs(of().map(|row| row.ordinal).collect()),
      Argument::Shorts(of().map(|row| crate::commit::statement::short(row.partition)).collect()),
      Argument::Longs(of().map(|row| row.position).collect()),
      Argument::Uuids(of().map(|row| row.id).collect()),
      Argument::texts(of().map(|row| row.type_name)),
      Argument::Longs(of().map(|row| row.at.0).collect()),
      Argument::texts(of().map(|row| row.actor.as_str())),
      Argument::texts(of().map(|row| row.origin.code())),
      Argument::Uuids(of().map(|row| row.cause).collect()),
      Argument::Uuids(of().map(|row| row.correlation).collect()),
      Argument::Longs(of().map(|row| row.input_position).collect()),
      Argument::OptionalUuids(of().map(|row| row.thing.map(|thing| thing.0)).collect()),
    ];
    parts.part(ADD, columns);
  }
}
