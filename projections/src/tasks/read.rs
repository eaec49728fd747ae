//! What the page, the prompt and the indicator read of tasks.

use pa_domain::{AgentId, ConversationId, Origin, TaskId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use super::State;
use crate::Error;
use crate::code::Code as _;
use crate::error::reading;

/// Tasks of one page at most.
pub const PAGE_MAX: u32 = 200;
/// Tasks that [`listed`] gives at most: what stands in a prompt.
pub const LISTED_MAX: u32 = 200;

/// How far a task is, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
  /// It stands in the queue.
  Queued,
  /// An execution carries it out.
  Running,
  /// It waits for what its reason says.
  Waiting,
  Paused,
  Completed,
  Failed,
  Stopped,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
  pub id: TaskId,
  /// Its own conversation.
  pub conversation: ConversationId,
  /// The conversation that its result is told in.
  pub asked_in: ConversationId,
  pub title: String,
  pub goal: String,
  /// Who let it start: the agent, in a turn, or the owner.
  pub started_by: Origin,
  /// The ordinal of its start, and its cursor.
  pub place: i64,
  pub changed: i64,
  pub status: Status,
  /// An execution runs, also while it is paused and a last tool finishes.
  pub running: bool,
  /// Why it waits, is paused or failed, as a code; empty otherwise.
  pub reason: String,
  /// What was seen, when nobody asked for the pause.
  pub detail: String,
  /// 1 at the start, one more each time that it goes on after an end.
  pub run: i32,
  pub execution: i32,
  /// The ordinal of its last instruction.
  pub revision: i64,
  /// Instructions after the goal.
  pub instructions: i32,
  /// Files that it handed over.
  pub outputs: i32,
  pub created: Timestamp,
  pub changed_at: Timestamp,
  pub ended: Option<Timestamp>,
  /// The entry that holds its newest result.
  pub result: Option<Uuid>,
}

/// Which rows of a list are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
  /// So many after this place, the oldest ones.
  First(u32, Option<i64>),
  /// So many before this place, the newest ones.
  Last(u32, Option<i64>),
}

/// A page of a list, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
  pub rows: Vec<T>,
  pub has_previous: bool,
  pub has_next: bool,
}

impl Status {
  /// Whether it has ended, until someone lets it go on.
  pub fn is_ended(self) -> bool {
    match self {
      Self::Completed | Self::Failed | Self::Stopped => true,
      Self::Queued | Self::Running | Self::Waiting | Self::Paused => false,
    }
  }

  /// The stored state, and whether an execution must run or not for it to be this; `None`: either.
  fn stored(self) -> (State, Option<bool>) {
    match self {
      Self::Queued => (State::Active, Some(false)),
      Self::Running => (State::Active, Some(true)),
      Self::Waiting => (State::Waiting, None),
      Self::Paused => (State::Paused, None),
      Self::Completed => (State::Completed, None),
      Self::Failed => (State::Failed, None),
      Self::Stopped => (State::Stopped, None),
    }
  }
}

impl Window {
  /// Rows to ask the database for: one more tells whether there are others.
  pub(crate) fn ask(self) -> (i64, Option<i64>) {
    match self {
      Self::First(count, place) | Self::Last(count, place) => (i64::from(count.min(PAGE_MAX)) + 1, place),
    }
  }
}

impl<T> Page<T> {
  /// A page of rows as the database gave them: in the window's direction, with one too many if there are others.
  pub(crate) fn of(window: Window, mut rows: Vec<T>) -> Self {
    let (asked, _) = window.ask();
    let more = i64::try_from(rows.len()).is_ok_and(|rows| rows >= asked);
    if more {
      rows.pop();
    }
    match window {
      Window::First(_, after) => Self { rows, has_previous: after.is_some(), has_next: more },
      Window::Last(_, before) => {
        rows.reverse();
        Self { rows, has_previous: more, has_next: before.is_some() }
      }
    }
  }
}

const ONE: &str = "SELECT id, conversation, asked_in, title, goal, started_by, place, changed, state, running, reason, detail, run, execution, revision, instructions, outputs, \
  created_ms, changed_ms, ended_ms, result FROM tasks WHERE agent = $1 AND id = $2";

const FIRST: &str = "SELECT id, conversation, asked_in, title, goal, started_by, place, changed, state, running, reason, detail, run, execution, revision, instructions, outputs, \
  created_ms, changed_ms, ended_ms, result FROM tasks WHERE agent = $1 AND place > $2 \
  AND (cardinality($3::text[]) = 0 OR EXISTS (SELECT 1 FROM unnest($3::text[], $4::boolean[]) AS w(state, running) WHERE w.state = tasks.state AND coalesce(w.running, tasks.running) = tasks.running)) \
  ORDER BY place LIMIT $5";

const LAST: &str = "SELECT id, conversation, asked_in, title, goal, started_by, place, changed, state, running, reason, detail, run, execution, revision, instructions, outputs, \
  created_ms, changed_ms, ended_ms, result FROM tasks WHERE agent = $1 AND place < $2 \
  AND (cardinality($3::text[]) = 0 OR EXISTS (SELECT 1 FROM unnest($3::text[], $4::boolean[]) AS w(state, running) WHERE w.state = tasks.state AND coalesce(w.running, tasks.running) = tasks.running)) \
  ORDER BY place DESC LIMIT $5";

const OPEN: &str = "SELECT id, conversation, asked_in, title, goal, started_by, place, changed, state, running, reason, detail, run, execution, revision, instructions, outputs, \
  created_ms, changed_ms, ended_ms, result FROM tasks WHERE agent = $1 AND ended_ms IS NULL ORDER BY changed DESC LIMIT $2";

const ENDED: &str = "SELECT id, conversation, asked_in, title, goal, started_by, place, changed, state, running, reason, detail, run, execution, revision, instructions, outputs, \
  created_ms, changed_ms, ended_ms, result FROM tasks WHERE agent = $1 AND ended_ms IS NOT NULL ORDER BY changed DESC LIMIT $2";

const CHANGED: &str = "SELECT id, conversation, asked_in, title, goal, started_by, place, changed, state, running, reason, detail, run, execution, revision, instructions, outputs, \
  created_ms, changed_ms, ended_ms, result FROM tasks WHERE agent = $1 AND changed > $2 AND changed <= $3 ORDER BY changed LIMIT $4";

/// One task.
pub async fn one(pool: &PgPool, agent: AgentId, id: TaskId) -> Result<Option<Task>, Error> {
  let row: Option<TaskRow> = sqlx::query_as(ONE).bind(agent.0).bind(id.0).fetch_optional(pool).await.map_err(reading("read a task"))?;
  row.map(TaskRow::take).transpose()
}

/// A page of the tasks that have one of these statuses; with none, of all.
pub async fn page(pool: &PgPool, agent: AgentId, statuses: &[Status], window: Window) -> Result<Page<Task>, Error> {
  let (states, running): (Vec<&str>, Vec<Option<bool>>) = statuses.iter().map(|status| status.stored()).map(|(state, running)| (state.code(), running)).unzip();
  let (limit, place) = window.ask();
  let (text, place) = match window {
    Window::First(..) => (FIRST, place.unwrap_or(i64::MIN)),
    Window::Last(..) => (LAST, place.unwrap_or(i64::MAX)),
  };
  let rows: Vec<TaskRow> =
    sqlx::query_as(text).bind(agent.0).bind(place).bind(states).bind(running).bind(limit).fetch_all(pool).await.map_err(reading("read the tasks"))?;
  Ok(Page::of(window, rows.into_iter().map(TaskRow::take).collect::<Result<_, _>>()?))
}

/// What a prompt tells of tasks: open ones first, then those that ended last, each newest change first; `limit` in all.
pub async fn listed(pool: &PgPool, agent: AgentId, limit: u32) -> Result<Vec<Task>, Error> {
  let limit = i64::from(limit.min(LISTED_MAX));
  let mut rows: Vec<TaskRow> = sqlx::query_as(OPEN).bind(agent.0).bind(limit).fetch_all(pool).await.map_err(reading("read the open tasks"))?;
  let room = limit - i64::try_from(rows.len()).unwrap_or(limit);
  if room > 0 {
    let ended: Vec<TaskRow> = sqlx::query_as(ENDED).bind(agent.0).bind(room).fetch_all(pool).await.map_err(reading("read the ended tasks"))?;
    rows.extend(ended);
  }
  rows.into_iter().map(TaskRow::take).collect()
}

/// Tasks whose last change lies in `(after, upto]`, in the order of change.
pub(crate) async fn changed_after(pool: &PgPool, agent: AgentId, after: i64, upto: i64, limit: i64) -> Result<Vec<Task>, Error> {
  let rows: Vec<TaskRow> =
    sqlx::query_as(CHANGED).bind(agent.0).bind(after).bind(upto).bind(limit).fetch_all(pool).await.map_err(reading("read changed tasks"))?;
  rows.into_iter().map(TaskRow::take).collect()
}

#[derive(sqlx::FromRow)]
struct TaskRow {
  id: Uuid,
  conversation: Uuid,
  asked_in: Uuid,
  title: String,
  goal: String,
  started_by: String,
  place: i64,
  changed: i64,
  state: String,
  running: bool,
  reason: String,
  detail: String,
  run: i32,
  execution: i32,
  revision: i64,
  instructions: i32,
  outputs: i32,
  created_ms: i64,
  changed_ms: i64,
  ended_ms: Option<i64>,
  result: Option<Uuid>,
}

impl TaskRow {
  fn take(self) -> Result<Task, Error> {
    let status = match (State::parse(&self.state)?, self.running) {
      (State::Active, true) => Status::Running,
      (State::Active, false) => Status::Queued,
      (State::Waiting, _) => Status::Waiting,
      (State::Paused, _) => Status::Paused,
      (State::Completed, _) => Status::Completed,
      (State::Failed, _) => Status::Failed,
      (State::Stopped, _) => Status::Stopped,
    };
    Ok(Task {
      id: TaskId(self.id),
      conversation: ConversationId(self.conversation),
      asked_in: ConversationId(self.asked_in),
      title: self.title,
      goal: self.goal,
      started_by: Origin::parse(&self.started_by)?,
      place: self.place,
      changed: self.changed,
      status,
      running: self.running,
      reason: self.reason,
      detail: self.detail,
      run: self.run,
      execution: self.execution,
      revision: self.revision,
      instructions: self.instructions,
      outputs: self.outputs,
      created: Timestamp(self.created_ms),
      changed_at: Timestamp(self.changed_ms),
      ended: self.ended_ms.map(Timestamp),
      result: self.result,
    })
  }
}
