//! Changes of tasks' entries merged by primary key, and the statements that write them.
//!
//! A call and a step name a job and not what kind of job it is. Those of a reply are left out where the rows are written: a job is a task if this batch has seen it
//! start, or if its row stands in `tasks`.

use std::collections::HashSet;

use pa_domain::{AgentId, TaskId};
use uuid::Uuid;

use super::fold::{Change, NewEntry, Patch};
use crate::code::Code as _;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to tasks' entries.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) entries: Merged<Uuid, EntryWrite>,
  /// Tasks that have begun in this batch.
  begun: HashSet<(AgentId, TaskId)>,
}

/// What a batch does to one entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EntryWrite {
  Enter(Box<NewEntry>),
  Patch(Box<Patch>),
}

const ENTER: &str = "INSERT INTO task_entries (agent, id, task, place, changed, kind, origin, status, body, code, action, reason, cut, attachments, created_ms) \
  SELECT u.agent, u.id, u.task, u.place, u.changed, u.kind, u.origin, u.status, u.body, u.code, u.action, u.reason, u.cut, u.attachments, u.created_ms \
  FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
  AS u(agent, id, task, begun, place, changed, kind, origin, status, body, code, action, reason, cut, attachments, created_ms) \
  WHERE u.begun OR (SELECT true FROM tasks t WHERE t.agent = u.agent AND t.id = u.task) \
  ON CONFLICT (agent, id) DO UPDATE SET changed = excluded.changed, status = excluded.status, body = excluded.body, code = excluded.code, \
  action = CASE WHEN excluded.action = '' THEN task_entries.action ELSE excluded.action END, reason = excluded.reason, cut = excluded.cut";

const PATCH: &str = "UPDATE task_entries e SET changed = u.changed, status = u.status, body = coalesce(u.body, e.body), reason = u.reason, cut = coalesce(u.cut, e.cut) \
  FROM committed, unnest(?, ?, ?, ?, ?, ?, ?) AS u(agent, id, changed, status, body, reason, cut) WHERE e.agent = u.agent AND e.id = u.id";

impl NewEntry {
  /// Takes what a later row of the same key brings; the place stays, and so does an action that the later one does not name.
  fn enter_again(&mut self, later: Self) {
    self.changed = later.changed;
    self.status = later.status;
    self.body = later.body;
    self.code = later.code;
    if !later.action.is_empty() {
      self.action = later.action;
    }
    self.reason = later.reason;
    self.cut = later.cut;
  }

  fn patch(&mut self, later: Patch) {
    self.changed = later.changed;
    self.status = later.status;
    if let Some(body) = later.body {
      self.body = body;
    }
    self.reason = later.reason;
    self.cut = later.cut.unwrap_or(self.cut);
  }
}

impl EntryWrite {
  /// One operation for two on the same key. Where a row is entered after a patch it stood already, and entering sets all that the patch had set.
  fn merge(&mut self, later: Self) {
    match (&mut *self, later) {
      (Self::Enter(earlier), Self::Enter(later)) => earlier.enter_again(*later),
      (Self::Enter(earlier), Self::Patch(later)) => earlier.patch(*later),
      (Self::Patch(_), later @ Self::Enter(_)) => *self = later,
      (Self::Patch(earlier), Self::Patch(later)) => {
        earlier.changed = later.changed;
        earlier.status = later.status;
        earlier.body = later.body.or_else(|| earlier.body.take());
        earlier.reason = later.reason;
        earlier.cut = later.cut.or(earlier.cut);
      }
    }
  }
}

impl Rows {
  pub(crate) fn add(&mut self, agent: AgentId, change: Change) {
    match change {
      Change::Begun(entry) => {
        self.begun.insert((agent, entry.task));
        self.entries.put(agent, entry.id, EntryWrite::Enter(entry), EntryWrite::merge);
      }
      Change::Entered(entry) => self.entries.put(agent, entry.id, EntryWrite::Enter(entry), EntryWrite::merge),
      Change::Patched(patch) => self.entries.put(agent, patch.id, EntryWrite::Patch(patch), EntryWrite::merge),
    }
  }

  pub(crate) fn drop_agent(&mut self, agent: AgentId) {
    self.entries.forget(agent);
    self.begun.retain(|(of, _)| *of != agent);
  }

  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    let (mut entered, mut patched) = (Vec::new(), Vec::new());
    for (agent, _, write) in self.entries.iter() {
      match write {
        EntryWrite::Enter(entry) => entered.push((*agent, entry.as_ref())),
        EntryWrite::Patch(patch) => patched.push((*agent, patch.as_ref())),
      }
    }
    if !entered.is_empty() {
      parts.part(ENTER, self.enter(&entered));
    }
    if !patched.is_empty() {
      parts.part(PATCH, patch(&patched));
    }
  }

  fn enter<'a>(&self, rows: &[(AgentId, &'a NewEntry)]) -> [Argument<'a>; 16] {
    let of = || rows.iter().map(|(_, row)| *row);
    [
      Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
      Argument::Uuids(of().map(|row| row.id).collect()),
      Argument::Uuids(of().map(|row| row.task.0).collect()),
      Argument::Booleans(rows.iter().map(|(agent, row)| self.begun.contains(&(*agent, row.task))).collect()),
      Argument::Longs(of().map(|row| row.place).collect()),
      Argument::Longs(of().map(|row| row.changed).collect()),
      Argument::texts(of().map(|row| row.kind.code())),
      Argument::texts(of().map(|row| row.origin.code())),
      Argument::texts(of().map(|row| row.status.code())),
      Argument::texts(of().map(|row| row.body.as_str())),
      Argument::texts(of().map(|row| row.code.as_str())),
      Argument::texts(of().map(|row| row.action.as_str())),
      Argument::texts(of().map(|row| row.reason.as_str())),
      Argument::Booleans(of().map(|row| row.cut).collect()),
      Argument::Ints(of().map(|row| row.attachments).collect()),
      Argument::Longs(of().map(|row| row.created.0).collect()),
    ]
  }
}

fn patch<'a>(rows: &[(AgentId, &'a Patch)]) -> [Argument<'a>; 7] {
  let of = || rows.iter().map(|(_, row)| *row);
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
    Argument::texts(of().map(|row| row.status.code())),
    Argument::optional_texts(of().map(|row| row.body.as_deref())),
    Argument::texts(of().map(|row| row.reason.as_str())),
    Argument::OptionalBooleans(of().map(|row| row.cut).collect()),
  ]
}
