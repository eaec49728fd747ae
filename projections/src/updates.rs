//! What changed for one agent after a position: what a subscription sends.
//!
//! One statement, shared by all who ask at the same time ([`Changes`]), tells how far the agent is, brings what moves with every turn (entries and indicator), and says whether the other tables moved; only then they are
//! read. Rows that change meanwhile come with the next read: nothing beyond `upto` is in an answer, so that `upto` is a position to go on from.

use pa_domain::AgentId;
use pa_store::together::Together;
use sqlx::postgres::PgRow;
use sqlx::{FromRow as _, PgPool, Row as _};
use uuid::Uuid;

use crate::Error;
use crate::conversation::{self, Conversation, Entry, EntryRow};
use crate::error::reading;
use crate::indicator::{Indicator, IndicatorRow};
use crate::outputs::{self, Output};
use crate::pending_actions::{self, Action};
use crate::settings::{self, Settings};
use crate::task_entries;
use crate::tasks::{self, Task};

/// Rows of one answer at most; whoever is further behind reads everything afresh (contract.md 4).
pub const ROWS_MAX: u32 = 500;

/// A row as it is now.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
  Entry(Box<Entry>),
  Conversation(Conversation),
  Settings(Settings),
  Indicator(Indicator),
  Task(Box<Task>),
  TaskEntry(Box<task_entries::Entry>),
  Action(Box<Action>),
  Output(Box<Output>),
}

/// Everything that changed in a stretch of an agent's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Updates {
  /// Rows with the ordinal of their last change, in that order.
  pub changes: Vec<(i64, Update)>,
  /// The position to go on from.
  pub upto: i64,
  /// There were more than the limit: the answer is not whole.
  pub more: bool,
}

/// The rows of one snapshot: the agent's own columns on each, beside an entry or none; `n` is the place of the question.
const MOVED: &str = "SELECT w.n, coalesce((SELECT p.ordinal FROM agent_progress p WHERE p.agent = w.agent), 0) AS ordinal, \
  coalesce((SELECT c.changed FROM conversations c WHERE c.agent = w.agent ORDER BY c.changed DESC LIMIT 1), 0) AS conversations, \
  coalesce((SELECT s.changed FROM settings s WHERE s.agent = w.agent), 0) AS settings, \
  coalesce((SELECT t.changed FROM tasks t WHERE t.agent = w.agent ORDER BY t.changed DESC LIMIT 1), 0) AS tasks, \
  coalesce((SELECT t.changed FROM task_entries t WHERE t.agent = w.agent ORDER BY t.changed DESC LIMIT 1), 0) AS task_entries, \
  coalesce((SELECT a.changed FROM pending_actions a WHERE a.agent = w.agent ORDER BY a.changed DESC LIMIT 1), 0) AS actions, \
  i.changed AS indicator, i.running, i.failed_message, f.id AS failed_task, i.failed_ordinal, i.failed_code, r.id AS result_task, i.result_ordinal, \
  (SELECT p.status = 'POSTED' FROM entries p WHERE p.agent = i.agent AND p.id = r.report) AS delivered, \
  (EXISTS (SELECT 1 FROM pending_actions a WHERE a.agent = i.agent AND a.state IN ('PENDING', 'UNKNOWN')) \
  OR EXISTS (SELECT 1 FROM tasks t WHERE t.agent = i.agent AND t.needs_owner)) AS needs_input, \
  e.id, e.conversation, e.place, e.changed, e.kind, e.role, e.author, e.body, e.status, e.created_ms, e.reply_to, e.reply, e.incomplete, e.attempt, e.code, e.params, \
  e.attachments, e.origin, e.removed \
  FROM unnest($1::int[], $2::uuid[], $3::bigint[]) AS w(n, agent, after) LEFT JOIN indicator i ON i.agent = w.agent \
  LEFT JOIN tasks f ON f.agent = i.agent AND f.id = i.failed_task AND f.state = 'FAILED' \
  LEFT JOIN tasks r ON r.agent = i.agent AND r.id = i.result_task AND r.state = 'COMPLETED' \
  LEFT JOIN LATERAL (SELECT * FROM entries x WHERE x.agent = w.agent AND x.changed > w.after AND x.shown ORDER BY x.changed LIMIT $4) e ON true";

/// Agents of one statement.
const AGENTS_AT_ONCE: usize = 32;

/// Reads what changed, with one statement for all agents that are asked for at the same time.
#[derive(Debug)]
pub struct Changes(Together<(AgentId, i64), Moved>);

impl Default for Changes {
  fn default() -> Self {
    Self(Together::new(AGENTS_AT_ONCE))
  }
}

impl Changes {
  /// The rows that changed after an ordinal, at most `limit` of them.
  pub async fn after(&self, pool: &PgPool, agent: AgentId, after: i64, limit: u32) -> Result<Updates, Error> {
    let moved = self.0.ask((agent, after), |asked| moved(pool, asked)).await?;
    let moved = moved.ok_or_else(|| reading("read what changed of an agent")(sqlx::Error::RowNotFound))?;
    updates(pool, agent, after, limit, moved).await
  }
}

/// What one statement shows of an agent.
struct Moved {
  ordinal: i64,
  conversations: i64,
  settings: i64,
  tasks: i64,
  task_entries: i64,
  actions: i64,
  indicator: Option<Indicator>,
  entries: Vec<EntryRow>,
}

/// The rows that changed after an ordinal, at most `limit` of them.
pub async fn after(pool: &PgPool, agent: AgentId, after: i64, limit: u32) -> Result<Updates, Error> {
  Changes::default().after(pool, agent, after, limit).await
}

async fn updates(pool: &PgPool, agent: AgentId, after: i64, limit: u32, mut moved: Moved) -> Result<Updates, Error> {
  let limit = limit.min(ROWS_MAX);
  let upto = moved.ordinal.max(after);
  let entries = conversation::take_entries(pool, agent, std::mem::take(&mut moved.entries)).await?;
  let mut changes: Vec<(i64, Update)> = entries.into_iter().map(|entry| (entry.changed, Update::Entry(Box::new(entry)))).collect();
  if moved.conversations > after {
    let conversations = conversation::conversations_changed(pool, agent, after, upto, i64::from(limit) + 1).await?;
    changes.extend(conversations.into_iter().map(|conversation| (conversation.changed, Update::Conversation(conversation))));
  }
  if moved.settings > after
    && let Some(settings) = settings::of(pool, agent).await?.filter(|settings| settings.changed <= upto)
  {
    changes.push((settings.changed, Update::Settings(settings)));
  }
  if let Some(indicator) = moved.indicator.as_ref().filter(|indicator| indicator.changed > after) {
    changes.push((indicator.changed, Update::Indicator(indicator.clone())));
  }
  of_tasks(pool, agent, (after, upto, i64::from(limit) + 1), &moved, &mut changes).await?;
  changes.sort_by_key(|(changed, _)| *changed);
  let more = changes.len() > limit as usize;
  changes.truncate(limit as usize);
  Ok(Updates { changes, upto, more })
}

/// Rows of tasks, each table read only if it moved. A file that was handed over changes its task, too.
async fn of_tasks(pool: &PgPool, agent: AgentId, range: (i64, i64, i64), moved: &Moved, changes: &mut Vec<(i64, Update)>) -> Result<(), Error> {
  let (after, upto, limit) = range;
  if moved.tasks > after {
    let tasks = tasks::changed_after(pool, agent, after, upto, limit).await?;
    let delivered = tasks.iter().any(|task| task.outputs > 0);
    changes.extend(tasks.into_iter().map(|task| (task.changed, Update::Task(Box::new(task)))));
    if delivered {
      let outputs = outputs::changed_after(pool, agent, after, upto, limit).await?;
      changes.extend(outputs.into_iter().map(|output| (output.place, Update::Output(Box::new(output)))));
    }
  }
  if moved.task_entries > after {
    let entries = task_entries::changed_after(pool, agent, after, upto, limit).await?;
    changes.extend(entries.into_iter().map(|entry| (entry.changed, Update::TaskEntry(Box::new(entry)))));
  }
  if moved.actions > after {
    let actions = pending_actions::changed_after(pool, agent, after, upto, limit).await?;
    changes.extend(actions.into_iter().map(|action| (action.changed, Update::Action(Box::new(action)))));
  }
  Ok(())
}

async fn moved(pool: &PgPool, asked: Vec<(AgentId, i64)>) -> Result<Vec<Moved>, Error> {
  let failed = || reading("read what changed of an agent");
  let places: Vec<i32> = (0..).take(asked.len()).collect();
  let (agents, after): (Vec<Uuid>, Vec<i64>) = asked.iter().map(|(agent, after)| (agent.0, *after)).unzip();
  let rows: Vec<PgRow> = sqlx::query(MOVED).bind(places).bind(agents).bind(after).bind(i64::from(ROWS_MAX) + 1).fetch_all(pool).await.map_err(failed())?;
  let taken = || -> Result<Vec<Moved>, sqlx::Error> {
    let mut moved: Vec<Option<Moved>> = asked.iter().map(|_| None).collect();
    for row in &rows {
      let place = usize::try_from(row.try_get::<i32, _>("n")?).ok().and_then(|place| moved.get_mut(place)).ok_or(sqlx::Error::RowNotFound)?;
      let of = match place {
        Some(of) => of,
        None => place.insert(Moved::of(row)?),
      };
      if row.try_get::<Option<Uuid>, _>("id")?.is_some() {
        of.entries.push(EntryRow::from_row(row)?);
      }
    }
    moved.into_iter().collect::<Option<_>>().ok_or(sqlx::Error::RowNotFound)
  };
  taken().map_err(failed())
}

impl Moved {
  /// What each row says of its agent.
  fn of(row: &PgRow) -> Result<Self, sqlx::Error> {
    let has_worked = row.try_get::<Option<i64>, _>("indicator")?.is_some();
    Ok(Self {
      ordinal: row.try_get("ordinal")?,
      conversations: row.try_get("conversations")?,
      settings: row.try_get("settings")?,
      tasks: row.try_get("tasks")?,
      task_entries: row.try_get("task_entries")?,
      actions: row.try_get("actions")?,
      indicator: if has_worked { Some(IndicatorRow::from_row(row)?.take()) } else { None },
      entries: Vec::new(),
    })
  }
}
