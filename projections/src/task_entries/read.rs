//! What the page reads of a task's entries.

use pa_domain::{AgentId, Origin, TaskId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Kind, Status};
use crate::Error;
use crate::code::Code as _;
use crate::conversation::{Attachment, attachments_of};
use crate::error::reading;
use crate::tasks::{Page, Window};

/// Entries of one page at most.
pub const PAGE_MAX: u32 = crate::tasks::PAGE_MAX;

/// An entry of a task's conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
  pub id: Uuid,
  pub task: TaskId,
  /// Its place in the order, and its cursor.
  pub place: i64,
  pub changed: i64,
  pub kind: Kind,
  /// Where it comes from: the owner, the agent, or the platform.
  pub origin: Origin,
  pub status: Status,
  /// Words, or a tool's result.
  pub body: String,
  /// A tool's name, or a code of what happened.
  pub code: String,
  /// A tool call's canonical action; empty for a call that was never asked for as one.
  pub action: String,
  /// Why a call was skipped or failed, or what became of an unknown one.
  pub reason: String,
  /// The result is longer than what stands here.
  pub cut: bool,
  pub attachments: Vec<Attachment>,
  pub created: Timestamp,
}

const LAST: &str = "SELECT id, task, place, changed, kind, origin, status, body, code, action, reason, cut, attachments, created_ms FROM task_entries \
  WHERE agent = $1 AND task = $2 AND place < $3 ORDER BY place DESC LIMIT $4";

const ONE: &str = "SELECT id, task, place, changed, kind, origin, status, body, code, action, reason, cut, attachments, created_ms FROM task_entries \
  WHERE agent = $1 AND id = $2";

const CHANGED: &str = "SELECT id, task, place, changed, kind, origin, status, body, code, action, reason, cut, attachments, created_ms FROM task_entries \
  WHERE agent = $1 AND changed > $2 AND changed <= $3 ORDER BY changed LIMIT $4";

/// The newest `last` entries of a task before the place `before`, oldest first.
pub async fn page(pool: &PgPool, agent: AgentId, task: TaskId, last: u32, before: Option<i64>) -> Result<Page<Entry>, Error> {
  let window = Window::Last(last, before);
  let (limit, _) = window.ask();
  let rows: Vec<EntryRow> = sqlx::query_as(LAST)
    .bind(agent.0)
    .bind(task.0)
    .bind(before.unwrap_or(i64::MAX))
    .bind(limit)
    .fetch_all(pool)
    .await
    .map_err(reading("read a page of a task's entries"))?;
  let page = Page::of(window, rows);
  Ok(Page { rows: take(pool, agent, page.rows).await?, has_previous: page.has_previous, has_next: page.has_next })
}

/// One entry.
pub async fn one(pool: &PgPool, agent: AgentId, id: Uuid) -> Result<Option<Entry>, Error> {
  let row: Option<EntryRow> = sqlx::query_as(ONE).bind(agent.0).bind(id).fetch_optional(pool).await.map_err(reading("read an entry of a task"))?;
  Ok(take(pool, agent, row.into_iter().collect()).await?.pop())
}

/// Entries whose last change lies in `(after, upto]`, in the order of change.
pub(crate) async fn changed_after(pool: &PgPool, agent: AgentId, after: i64, upto: i64, limit: i64) -> Result<Vec<Entry>, Error> {
  let rows: Vec<EntryRow> =
    sqlx::query_as(CHANGED).bind(agent.0).bind(after).bind(upto).bind(limit).fetch_all(pool).await.map_err(reading("read changed entries of tasks"))?;
  take(pool, agent, rows).await
}

async fn take(pool: &PgPool, agent: AgentId, rows: Vec<EntryRow>) -> Result<Vec<Entry>, Error> {
  let with_files: Vec<Uuid> = rows.iter().filter(|row| row.attachments > 0).map(|row| row.id).collect();
  let mut files = attachments_of(pool, agent, with_files).await?;
  rows
    .into_iter()
    .map(|row| {
      let attachments = files.remove(&row.id).unwrap_or_default();
      row.take(attachments)
    })
    .collect()
}

#[derive(sqlx::FromRow)]
struct EntryRow {
  id: Uuid,
  task: Uuid,
  place: i64,
  changed: i64,
  kind: String,
  origin: String,
  status: String,
  body: String,
  code: String,
  action: String,
  reason: String,
  cut: bool,
  attachments: i32,
  created_ms: i64,
}

impl EntryRow {
  fn take(self, attachments: Vec<Attachment>) -> Result<Entry, Error> {
    Ok(Entry {
      id: self.id,
      task: TaskId(self.task),
      place: self.place,
      changed: self.changed,
      kind: Kind::parse(&self.kind)?,
      origin: Origin::parse(&self.origin)?,
      status: Status::parse(&self.status)?,
      body: self.body,
      code: self.code,
      action: self.action,
      reason: self.reason,
      cut: self.cut,
      attachments,
      created: Timestamp(self.created_ms),
    })
  }
}
