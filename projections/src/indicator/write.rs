//! Changes of the indicator merged by agent, and the statement that writes them.

use super::fold::Change;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to indicators.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) rows: Merged<(), Change>,
}

const MOVE: &str = "INSERT INTO indicator AS i (agent, running, failed_message, failed_ordinal, failed_code, changed) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?) AS u(agent, running, failed_message, failed_ordinal, failed_code, changed) \
  ON CONFLICT (agent) DO UPDATE SET running = i.running + excluded.running, failed_message = coalesce(excluded.failed_message, i.failed_message), \
  failed_ordinal = coalesce(excluded.failed_ordinal, i.failed_ordinal), failed_code = coalesce(excluded.failed_code, i.failed_code), changed = excluded.changed";

impl Rows {
  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    if self.rows.is_empty() {
      return;
    }
    let of = || self.rows.iter().map(|(_, (), row)| row);
    let failed = || of().map(|row| row.failed.as_ref());
    let columns = [
      Argument::Uuids(self.rows.iter().map(|(agent, (), _)| agent.0).collect()),
      Argument::Ints(of().map(|row| row.running).collect()),
      Argument::OptionalUuids(failed().map(|failed| failed.map(|failed| failed.message.0)).collect()),
      Argument::OptionalLongs(failed().map(|failed| failed.map(|failed| failed.ordinal)).collect()),
      Argument::optional_texts(failed().map(|failed| failed.map(|failed| failed.code.as_str()))),
      Argument::Longs(of().map(|row| row.changed).collect()),
    ];
    parts.part(MOVE, columns);
  }
}
