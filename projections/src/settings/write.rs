//! Settings merged by agent, and the statement that writes them.

use super::fold::SettingsRow;
use crate::code::Code as _;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to settings.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) rows: Merged<(), SettingsRow>,
}

const PUT: &str = "INSERT INTO settings (agent, version, time_zone, language, concurrency, model, effort, name, avatar, changed) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) AS u(agent, version, time_zone, language, concurrency, model, effort, name, avatar, changed) \
  ON CONFLICT (agent) DO UPDATE SET version = excluded.version, time_zone = excluded.time_zone, language = excluded.language, concurrency = excluded.concurrency, \
  model = excluded.model, effort = excluded.effort, name = excluded.name, avatar = excluded.avatar, changed = excluded.changed";

impl Rows {
  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    if self.rows.is_empty() {
      return;
    }
    let of = || self.rows.iter().map(|(_, (), row)| &row.settings);
    let columns = [
      Argument::Uuids(self.rows.iter().map(|(agent, (), _)| agent.0).collect()),
      Argument::Longs(of().map(|row| row.version).collect()),
      Argument::texts(of().map(|row| row.time_zone.as_str())),
      Argument::texts(of().map(|row| row.language.as_str())),
      Argument::Ints(of().map(|row| row.concurrency).collect()),
      Argument::texts(of().map(|row| row.model.as_str())),
      Argument::texts(of().map(|row| row.effort.code())),
      Argument::texts(of().map(|row| row.name.as_str())),
      Argument::texts(of().map(|row| row.avatar.as_str())),
      Argument::Longs(self.rows.iter().map(|(_, (), row)| row.changed).collect()),
    ];
    parts.part(PUT, columns);
  }
}
