//! Accounts merged by id, and the statement that writes them.

use uuid::Uuid;

use super::fold::AccountRow;
use crate::code::Code as _;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to accounts.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) rows: Merged<Uuid, AccountRow>,
}

const PUT: &str = "INSERT INTO accounts (agent, id, name, role, added_ms, changed) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?) AS u(agent, id, name, role, added_ms, changed) \
  ON CONFLICT (agent, id) DO UPDATE SET name = excluded.name, role = excluded.role, added_ms = excluded.added_ms, changed = excluded.changed";

impl Rows {
  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    if self.rows.is_empty() {
      return;
    }
    let of = || self.rows.iter().map(|(_, _, row)| row);
    let columns = [
      Argument::Uuids(self.rows.iter().map(|(agent, _, _)| agent.0).collect()),
      Argument::Uuids(of().map(|row| row.id.0).collect()),
      Argument::texts(of().map(|row| row.name.as_str())),
      Argument::texts(of().map(|row| row.role.code())),
      Argument::Longs(of().map(|row| row.added.0).collect()),
      Argument::Longs(of().map(|row| row.changed).collect()),
    ];
    parts.part(PUT, columns);
  }
}
