//! Changes of timers merged by primary key, and the statements that write them.

use pa_domain::AgentId;
use uuid::Uuid;

use super::fold::{Change, TimerRow};
use crate::code::Code as _;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to timers: a row, or none any more.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) timers: Merged<Uuid, Option<TimerRow>>,
}

const SET: &str = "INSERT INTO timers (agent, id, purpose, due_ms, thing, changed) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?) AS u(agent, id, purpose, due_ms, thing, changed) \
  ON CONFLICT (agent, id) DO UPDATE SET purpose = excluded.purpose, due_ms = excluded.due_ms, thing = excluded.thing, changed = excluded.changed";

const DELETE: &str = "DELETE FROM timers t USING committed, unnest(?, ?) AS u(agent, id) WHERE t.agent = u.agent AND t.id = u.id";

impl Rows {
  pub(crate) fn add(&mut self, agent: AgentId, change: Change) {
    match change {
      Change::Set(row) => self.timers.put(agent, row.id.0, Some(row), |earlier, later| *earlier = later),
      Change::Gone(timer) => self.timers.put(agent, timer.0, None, |earlier, later| *earlier = later),
    }
  }

  pub(crate) fn is_empty(&self) -> bool {
    self.timers.is_empty()
  }

  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    let (mut set, mut gone) = (Vec::new(), Vec::new());
    for (agent, id, row) in self.timers.iter() {
      match row {
        Some(row) => set.push((*agent, row)),
        None => gone.push((*agent, *id)),
      }
    }
    if !set.is_empty() {
      let of = || set.iter().map(|(_, row)| *row);
      let columns = [
        Argument::Uuids(set.iter().map(|(agent, _)| agent.0).collect()),
        Argument::Uuids(of().map(|row| row.id.0).collect()),
        Argument::texts(of().map(|row| row.purpose.code())),
        Argument::Longs(of().map(|row| row.due.0).collect()),
        Argument::OptionalUuids(of().map(|row| row.thing.map(|thing| thing.0)).collect()),
        Argument::Longs(of().map(|row| row.changed).collect()),
      ];
      parts.part(SET, columns);
    }
    if !gone.is_empty() {
      let columns = [Argument::Uuids(gone.iter().map(|(agent, _)| agent.0).collect()), Argument::Uuids(gone.iter().map(|(_, id)| *id).collect())];
      parts.part(DELETE, columns);
    }
  }
}
