//! Changes of conversations merged by primary key, and the statements that write them.

use pa_domain::AgentId;
use pa_domain::conversation::FileRef;
use uuid::Uuid;

use super::fold::{Change, NewEntry, Opened, Patch};
use crate::code::Code as _;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to conversations.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) opened: Merged<Uuid, Opened>,
  pub(crate) entries: Merged<Uuid, EntryWrite>,
  pub(crate) attachments: Merged<(Uuid, i32), FileRef>,
}

/// What a batch does to one entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EntryWrite {
  Enter(Box<NewEntry>),
  Patch(Patch),
}

const OPEN: &str = "INSERT INTO conversations (agent, id, kind, title, connection, opened_ms, changed) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?) AS u(agent, id, kind, title, connection, opened_ms, changed) \
  ON CONFLICT (agent, id) DO UPDATE SET title = excluded.title, connection = excluded.connection, changed = excluded.changed";

const ENTER: &str = "INSERT INTO entries (agent, id, conversation, place, changed, kind, role, author, body, status, created_ms, reply_to, reply, incomplete, attempt, code, \
  params, attachments, origin, shown, removed) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
  AS u(agent, id, conversation, place, changed, kind, role, author, body, status, created_ms, reply_to, reply, incomplete, attempt, code, params, attachments, origin, \
  shown, removed) \
  ON CONFLICT (agent, id) DO UPDATE SET changed = excluded.changed, body = excluded.body, status = excluded.status, created_ms = excluded.created_ms, \
  incomplete = excluded.incomplete, attempt = excluded.attempt, removed = excluded.removed";

const PATCH: &str = "UPDATE entries e SET changed = u.changed, status = u.status, body = coalesce(u.body, e.body), incomplete = coalesce(u.incomplete, e.incomplete), \
  removed = coalesce(u.removed, e.removed) \
  FROM committed, unnest(?, ?, ?, ?, ?, ?, ?) AS u(agent, id, changed, status, body, incomplete, removed) WHERE e.agent = u.agent AND e.id = u.id";

const ATTACH: &str = "INSERT INTO attachments (agent, entry, idx, id, name, media_type, size_bytes, sha256, blob, origin) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) AS u(agent, entry, idx, id, name, media_type, size_bytes, sha256, blob, origin) \
  ON CONFLICT (agent, entry, idx) DO NOTHING";

impl NewEntry {
  /// Takes what a later row of the same key brings; the place stays.
  pub(crate) fn enter_again(&mut self, later: NewEntry) {
    self.changed = later.changed;
    self.text = later.text;
    self.status = later.status;
    self.created = later.created;
    self.incomplete = later.incomplete;
    self.attempt = later.attempt;
    self.removed = later.removed;
  }

  /// Takes a patch.
  pub(crate) fn patch(&mut self, later: Patch) {
    self.changed = later.changed;
    self.status = later.status;
    if let Some(text) = later.text {
      self.text = text;
    }
    self.incomplete = later.incomplete.unwrap_or(self.incomplete);
    self.removed = later.removed.unwrap_or(self.removed);
  }
}

impl Rows {
  pub(crate) fn add(&mut self, agent: AgentId, change: Change) {
    match change {
      Change::Opened(opened) => self.opened.put(agent, opened.id.0, opened, |earlier, later| {
        earlier.title = later.title;
        earlier.connection = later.connection;
        earlier.changed = later.changed;
      }),
      Change::Entered(entry) => self.entries.put(agent, entry.id, EntryWrite::Enter(entry), EntryWrite::merge),
      Change::Patched(patch) => self.entries.put(agent, patch.id, EntryWrite::Patch(patch), EntryWrite::merge),
      Change::Attached { entry, index, file } => self.attachments.put(agent, (entry.0, index), *file, |_, _| ()),
    }
  }

  pub(crate) fn drop_agent(&mut self, agent: AgentId) {
    self.opened.forget(agent);
    self.entries.forget(agent);
    self.attachments.forget(agent);
  }

  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    if !self.opened.is_empty() {
      parts.part(OPEN, open(&self.opened));
    }
    let (mut entered, mut patched) = (Vec::new(), Vec::new());
    for (agent, _, write) in self.entries.iter() {
      match write {
        EntryWrite::Enter(entry) => entered.push((*agent, entry.as_ref())),
        EntryWrite::Patch(patch) => patched.push((*agent, patch)),
      }
    }
    if !entered.is_empty() {
      parts.part(ENTER, enter(&entered));
    }
    if !patched.is_empty() {
      parts.part(PATCH, patch(&patched));
    }
    if !self.attachments.is_empty() {
      parts.part(ATTACH, attach(&self.attachments));
    }
  }
}

impl EntryWrite {
  /// One operation for two on the same key. A patch before a row is entered met a row that was there already or none at all: entering sets all that a patch sets.
  fn merge(&mut self, later: Self) {
    match (&mut *self, later) {
      (Self::Enter(earlier), Self::Enter(later)) => earlier.enter_again(*later),
      (Self::Enter(earlier), Self::Patch(later)) => earlier.patch(later),
      (Self::Patch(_), later @ Self::Enter(_)) => *self = later,
      (Self::Patch(earlier), Self::Patch(later)) => {
        earlier.changed = later.changed;
        earlier.status = later.status;
        earlier.text = later.text.or_else(|| earlier.text.take());
        earlier.incomplete = later.incomplete.or(earlier.incomplete);
        earlier.removed = later.removed.or(earlier.removed);
      }
    }
  }
}

fn open(rows: &Merged<Uuid, Opened>) -> [Argument<'_>; 7] {
  let of = || rows.iter().map(|(agent, _, row)| (agent, row));
  [
    Argument::Uuids(of().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|(_, row)| row.id.0).collect()),
    Argument::texts(of().map(|(_, row)| row.kind.code())),
    Argument::texts(of().map(|(_, row)| row.title.as_str())),
    Argument::texts(of().map(|(_, row)| row.connection.as_str())),
    Argument::Longs(of().map(|(_, row)| row.opened.0).collect()),
    Argument::Longs(of().map(|(_, row)| row.changed).collect()),
  ]
}

fn enter<'a>(rows: &[(AgentId, &'a NewEntry)]) -> [Argument<'a>; 21] {
  let of = || rows.iter().map(|(_, row)| *row);
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id).collect()),
    Argument::OptionalUuids(of().map(|row| row.conversation.map(|id| id.0)).collect()),
    Argument::Longs(of().map(|row| row.place).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
    Argument::texts(of().map(|row| row.kind.code())),
    Argument::texts(of().map(|row| row.role.code())),
    Argument::texts(of().map(|row| row.author.as_str())),
    Argument::texts(of().map(|row| row.text.as_str())),
    Argument::texts(of().map(|row| row.status.code())),
    Argument::Longs(of().map(|row| row.created.0).collect()),
    Argument::OptionalUuids(of().map(|row| row.reply_to.map(|id| id.0)).collect()),
    Argument::OptionalUuids(of().map(|row| row.reply.map(|id| id.0)).collect()),
    Argument::Booleans(of().map(|row| row.incomplete).collect()),
    Argument::Ints(of().map(|row| row.attempt).collect()),
    Argument::texts(of().map(|row| row.code.as_str())),
    Argument::texts(of().map(|row| row.params.as_str())),
    Argument::Ints(of().map(|row| row.attachments).collect()),
    Argument::texts(of().map(|row| row.origin.code())),
    Argument::Booleans(of().map(|row| row.shown).collect()),
    Argument::Booleans(of().map(|row| row.removed).collect()),
  ]
}

fn patch<'a>(rows: &[(AgentId, &'a Patch)]) -> [Argument<'a>; 7] {
  let of = || rows.iter().map(|(_, row)| *row);
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
    Argument::texts(of().map(|row| row.status.code())),
    Argument::optional_texts(of().map(|row| row.text.as_deref())),
    Argument::OptionalBooleans(of().map(|row| row.incomplete).collect()),
    Argument::OptionalBooleans(of().map(|row| row.removed).collect()),
  ]
}

fn attach(rows: &Merged<(Uuid, i32), FileRef>) -> [Argument<'_>; 10] {
  [
    Argument::Uuids(rows.iter().map(|(agent, _, _)| agent.0).collect()),
    Argument::Uuids(rows.iter().map(|(_, (entry, _), _)| *entry).collect()),
    Argument::Ints(rows.iter().map(|(_, (_, index), _)| *index).collect()),
    Argument::texts(rows.iter().map(|(_, _, file)| file.id.as_str())),
    Argument::texts(rows.iter().map(|(_, _, file)| file.name.as_str())),
    Argument::texts(rows.iter().map(|(_, _, file)| file.media_type.as_str())),
    Argument::Longs(rows.iter().map(|(_, _, file)| file.size_bytes).collect()),
    Argument::texts(rows.iter().map(|(_, _, file)| file.sha256.as_str())),
    Argument::texts(rows.iter().map(|(_, _, file)| file.blob.as_str())),
    Argument::texts(rows.iter().map(|(_, _, file)| file.origin.code())),
  ]
}
