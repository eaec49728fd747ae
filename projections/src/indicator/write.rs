//! Changes of the indicator merged by agent, and the statement that writes them.

use super::fold::{Change, Failing};
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to indicators.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) rows: Merged<(), Change>,
}

/// A new failure takes the place of the last one, whatever that was about.
const MOVE: &str = "INSERT INTO indicator AS i (agent, running, failed_message, failed_task, failed_ordinal, failed_code, result_task, result_ordinal, changed) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?) \
  AS u(agent, running, failed_message, failed_task, failed_ordinal, failed_code, result_task, result_ordinal, changed) \
  ON CONFLICT (agent) DO UPDATE SET running = i.running + excluded.running, \
  failed_message = CASE WHEN excluded.failed_ordinal IS NULL THEN i.failed_message ELSE excluded.failed_message END, \
  failed_task = CASE WHEN excluded.failed_ordinal IS NULL THEN i.failed_task ELSE excluded.failed_task END, \
  failed_ordinal = coalesce(excluded.failed_ordinal, i.failed_ordinal), failed_code = coalesce(excluded.failed_code, i.failed_code), \
  result_task = coalesce(excluded.result_task, i.result_task), result_ordinal = coalesce(excluded.result_ordinal, i.result_ordinal), changed = excluded.changed";

impl Rows {
  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    if self.rows.is_empty() {
      return;
    }
    let of = || self.rows.iter().map(|(_, (), row)| row);
    let failed = || of().map(|row| row.failed.as_ref());
    let message = |what: Failing| match what {
      Failing::Message(message) => Some(message.0),
      Failing::Task(_) => None,
    };
    let task = |what: Failing| match what {
      Failing::Message(_) => None,
      Failing::Task(task) => Some(task.0),
    };
    let columns = [
      Argument::Uuids(self.rows.iter().map(|(agent, (), _)| agent.0).collect()),
      Argument::Ints(of().map(|row| row.running).collect()),
      Argument::OptionalUuids(failed().map(|failed| failed.and_then(|failed| message(failed.what))).collect()),
      Argument::OptionalUuids(failed().map(|failed| failed.and_then(|failed| task(failed.what))).collect()),
      Argument::OptionalLongs(failed().map(|failed| failed.map(|failed| failed.ordinal)).collect()),
      Argument::optional_texts(failed().map(|failed| failed.map(|failed| failed.code.as_str()))),
      Argument::OptionalUuids(of().map(|row| row.result.map(|result| result.task.0)).collect()),
      Argument::OptionalLongs(of().map(|row| row.result.map(|result| result.ordinal)).collect()),
      Argument::Longs(of().map(|row| row.changed).collect()),
    ];
    parts.part(MOVE, columns);
  }
}
