//! Outputs by primary key, and the statement that writes them. The first receipt stays.

use uuid::Uuid;

use super::fold::OutputRow;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch adds to the outputs.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) rows: Merged<Uuid, OutputRow>,
}

const ADD: &str = "INSERT INTO outputs (agent, id, task, conversation, place, changed, caption, source, created_ms) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?) AS u(agent, id, task, conversation, place, changed, caption, source, created_ms) \
  ON CONFLICT (agent, id) DO NOTHING";

impl Rows {
  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    if self.rows.is_empty() {
      return;
    }
    let of = || self.rows.iter().map(|(_, _, row)| row);
    let columns = [
      Argument::Uuids(self.rows.iter().map(|(agent, _, _)| agent.0).collect()),
      Argument::Uuids(of().map(|row| row.id.0).collect()),
      Argument::Uuids(of().map(|row| row.task.0).collect()),
      Argument::Uuids(of().map(|row| row.conversation.0).collect()),
      Argument::Longs(of().map(|row| row.place).collect()),
      Argument::Longs(of().map(|row| row.place).collect()),
      Argument::texts(of().map(|row| row.caption.as_str())),
      Argument::texts(of().map(|row| row.source.as_str())),
      Argument::Longs(of().map(|row| row.created.0).collect()),
    ];
    parts.part(ADD, columns);
  }
}
