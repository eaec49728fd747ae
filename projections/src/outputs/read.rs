//! What the page reads of outputs.

use pa_domain::{AgentId, ConversationId, OutputId, TaskId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::conversation::{Attachment, attachments_of};
use crate::error::reading;
use crate::tasks::{Page, Window};

/// Outputs of one page at most.
pub const PAGE_MAX: u32 = crate::tasks::PAGE_MAX;

/// A file that a task handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
  pub id: OutputId,
  pub task: TaskId,
  /// The task's title.
  pub title: String,
  /// The conversation that it stands in.
  pub conversation: ConversationId,
  /// Its place in the order, and its cursor.
  pub place: i64,
  pub caption: String,
  /// The path or reference that it was taken from.
  pub source: String,
  pub file: Attachment,
  pub created: Timestamp,
}

const FIRST: &str = "SELECT o.id, o.task, t.title, o.conversation, o.place, o.caption, o.source, o.created_ms FROM outputs o \
  LEFT JOIN tasks t ON t.agent = o.agent AND t.id = o.task WHERE o.agent = $1 AND o.place > $2 AND ($3::uuid IS NULL OR o.task = $3) ORDER BY o.place LIMIT $4";

const LAST: &str = "SELECT o.id, o.task, t.title, o.conversation, o.place, o.caption, o.source, o.created_ms FROM outputs o \
  LEFT JOIN tasks t ON t.agent = o.agent AND t.id = o.task WHERE o.agent = $1 AND o.place < $2 AND ($3::uuid IS NULL OR o.task = $3) ORDER BY o.place DESC LIMIT $4";

const ADDED: &str = "SELECT o.id, o.task, t.title, o.conversation, o.place, o.caption, o.source, o.created_ms FROM outputs o \
  LEFT JOIN tasks t ON t.agent = o.agent AND t.id = o.task WHERE o.agent = $1 AND o.place > $2 AND o.place <= $3 ORDER BY o.place LIMIT $4";

/// A page of what was handed over, of one task or of all.
pub async fn page(pool: &PgPool, agent: AgentId, task: Option<TaskId>, window: Window) -> Result<Page<Output>, Error> {
  let (limit, place) = window.ask();
  let (text, place) = match window {
    Window::First(..) => (FIRST, place.unwrap_or(i64::MIN)),
    Window::Last(..) => (LAST, place.unwrap_or(i64::MAX)),
  };
  let rows: Vec<OutputRow> =
    sqlx::query_as(text).bind(agent.0).bind(place).bind(task.map(|task| task.0)).bind(limit).fetch_all(pool).await.map_err(reading("read the outputs"))?;
  let page = Page::of(window, rows);
  Ok(Page { rows: take(pool, agent, page.rows).await?, has_previous: page.has_previous, has_next: page.has_next })
}

/// Outputs that came in `(after, upto]`, in order.
pub(crate) async fn changed_after(pool: &PgPool, agent: AgentId, after: i64, upto: i64, limit: i64) -> Result<Vec<Output>, Error> {
  let rows: Vec<OutputRow> =
    sqlx::query_as(ADDED).bind(agent.0).bind(after).bind(upto).bind(limit).fetch_all(pool).await.map_err(reading("read new outputs"))?;
  take(pool, agent, rows).await
}

async fn take(pool: &PgPool, agent: AgentId, rows: Vec<OutputRow>) -> Result<Vec<Output>, Error> {
  let mut files = attachments_of(pool, agent, rows.iter().map(|row| row.id).collect()).await?;
  let mut outputs = Vec::with_capacity(rows.len());
  for row in rows {
    let file = files.remove(&row.id).and_then(|files| files.into_iter().next());
    let file = file.ok_or_else(|| Error::Corrupt { expected: "an output's file", value: row.id.to_string() })?;
    outputs.push(Output {
      id: OutputId(row.id),
      task: TaskId(row.task),
      title: row.title.unwrap_or_default(),
      conversation: ConversationId(row.conversation),
      place: row.place,
      caption: row.caption,
      source: row.source,
      file,
      created: Timestamp(row.created_ms),
    });
  }
  Ok(outputs)
}

#[derive(sqlx::FromRow)]
struct OutputRow {
  id: Uuid,
  task: Uuid,
  title: Option<String>,
  conversation: Uuid,
  place: i64,
  caption: String,
  source: String,
  created_ms: i64,
}
