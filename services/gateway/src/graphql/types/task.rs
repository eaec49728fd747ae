//! Background tasks and their entries as the outside sees them.

use async_graphql::{ComplexObject, Context, Enum, ID, Object, Result, SimpleObject};
use pa_domain::Origin;
use pa_projections::task_entries::{self as entries, Kind, Status as EntryStatus};
use pa_projections::tasks::{self as read, Page};

use super::PageInfo;
use super::conversation::{cursor_of, page_size};
use super::message::Attachment;
use super::scalars::DateTime;
use super::usage::Usage;
use crate::graphql::env::Env;
use crate::limits::PAGE_DEFAULT;

/// A background task.
#[derive(Clone, Debug)]
pub(crate) struct Task(pub read::Task);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum TaskState {
  /// It stands in the queue.
  Queued,
  /// It is being carried out.
  Running,
  /// It waits for what its reason says.
  Waiting,
  Paused,
  Completed,
  Failed,
  Stopped,
}

/// Who or what something comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum TaskOrigin {
  Owner,
  Agent,
  /// The product itself.
  Platform,
}

/// Which tasks to list; every given condition holds.
#[derive(Clone, Debug, Default, async_graphql::InputObject)]
pub(crate) struct TaskFilter {
  /// Only tasks in one of these states.
  pub states: Option<Vec<TaskState>>,
}

/// A page of tasks, newest last.
#[derive(SimpleObject)]
pub(crate) struct TaskConnection {
  pub page_info: PageInfo,
  pub edges: Vec<TaskEdge>,
  pub nodes: Vec<Task>,
}

/// One task with its cursor.
#[derive(SimpleObject)]
pub(crate) struct TaskEdge {
  pub node: Task,
  pub cursor: String,
}

/// One entry of a task's own conversation.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(complex)]
pub(crate) struct TaskEntry {
  pub id: ID,
  pub task_id: ID,
  /// Its place among the entries of its task. Entries are shown in this order.
  pub place: i64,
  /// Ordinal of the last change of this entry; a copy with a lower one is older.
  pub changed: i64,
  pub kind: TaskEntryKind,
  pub origin: TaskOrigin,
  pub status: TaskEntryStatus,
  /// Characters of the whole text.
  pub length: i32,
  /// The tool, on a tool call.
  pub tool: Option<String>,
  /// What a tool call does: canonical JSON, whole.
  pub action: Option<String>,
  /// What happened, as a code that the page renders in the reader's language: on an event, a failure, a call that was skipped or failed or whose outcome was settled.
  pub code: Option<String>,
  /// The tool gave more than the text has.
  pub cut: bool,
  pub created_at: DateTime,
  pub attachments: Vec<Attachment>,
  #[graphql(skip)]
  body: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum TaskEntryKind {
  Goal,
  Instruction,
  /// What the agent wrote between its tool calls.
  Words,
  Tool,
  /// The agent's own notes about how far it is.
  Checkpoint,
  /// A file that was handed over.
  Output,
  Result,
  /// What the agent had when the task failed; no result.
  Failure,
  /// The task was paused, resumed, stopped or interrupted.
  Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum TaskEntryStatus {
  Posted,
  /// A call that waits for the owner's decision.
  Held,
  Started,
  Returned,
  Failed,
  /// A call that will not begin.
  Skipped,
  /// Nobody knows the call's outcome.
  Unknown,
  /// The call's unknown outcome was settled.
  Reconciled,
}

/// A page of a task's entries, newest last.
#[derive(SimpleObject)]
pub(crate) struct TaskEntryConnection {
  pub page_info: PageInfo,
  pub edges: Vec<TaskEntryEdge>,
  pub nodes: Vec<TaskEntry>,
}

/// One entry with its cursor.
#[derive(SimpleObject)]
pub(crate) struct TaskEntryEdge {
  pub node: TaskEntry,
  pub cursor: String,
}

/// A background task, with everything that it did in the order in which it was admitted.
#[Object]
impl Task {
  async fn id(&self) -> ID {
    ID::from(self.0.id)
  }

  /// Its own conversation.
  async fn conversation_id(&self) -> ID {
    ID::from(self.0.conversation)
  }

  /// The conversation that asked for it; its result is told there.
  async fn asked_in_id(&self) -> ID {
    ID::from(self.0.asked_in)
  }

  async fn title(&self) -> &str {
    &self.0.title
  }

  async fn goal(&self) -> &str {
    &self.0.goal
  }

  async fn state(&self) -> TaskState {
    self.0.status.into()
  }

  /// Why it waits (`APPROVAL`, `UNKNOWN_EFFECT`, `DESKTOP`, `NOTICE`), is paused (`ASKED`, `OUTPUT_LOOPED`) or failed, as a code.
  async fn reason(&self) -> Option<&str> {
    Some(self.0.reason.as_str()).filter(|reason| !reason.is_empty())
  }

  /// Something of it still runs, such as the last tool of a paused task.
  async fn active(&self) -> bool {
    self.0.running
  }

  /// Who let it start.
  async fn started_by(&self) -> TaskOrigin {
    self.0.started_by.into()
  }

  /// 1 at the start, one more each time that it goes on after an end.
  async fn run(&self) -> i32 {
    self.0.run
  }

  /// Instructions after the goal.
  async fn instructions(&self) -> i32 {
    self.0.instructions
  }

  /// Files that it handed over.
  async fn outputs(&self) -> i32 {
    self.0.outputs
  }

  /// Its place among all tasks.
  async fn place(&self) -> i64 {
    self.0.place
  }

  /// Ordinal of the last change of this row; a copy with a lower one is older.
  async fn changed(&self) -> i64 {
    self.0.changed
  }

  async fn created_at(&self) -> DateTime {
    DateTime(self.0.created)
  }

  async fn changed_at(&self) -> DateTime {
    DateTime(self.0.changed_at)
  }

  /// Null while it has not ended.
  async fn ended_at(&self) -> Option<DateTime> {
    self.0.ended.map(DateTime)
  }

  /// Its newest result, whole; null while it has none.
  async fn result(&self, context: &Context<'_>) -> Result<Option<String>> {
    let env = Env::of(context);
    let Some(id) = self.0.result else { return Ok(None) };
    let entry = entries::one(&env.edge.reads, env.viewer.account, id).await.map_err(|error| env.failed(error))?;
    Ok(entry.map(|entry| entry.body))
  }

  /// What its model requests used and cost.
  async fn usage(&self, context: &Context<'_>) -> Result<Usage> {
    Usage::of_job(Env::of(context), self.0.id.into()).await
  }

  /// The newest `last` entries before the cursor `before`, newest last. At most 200.
  #[graphql(complexity = "usize::try_from(last.unwrap_or(PAGE_DEFAULT)).unwrap_or(0).max(1) * child_complexity")]
  async fn entries(
    &self,
    context: &Context<'_>,
    #[graphql(default_with = "Some(PAGE_DEFAULT)")] last: Option<i32>,
    before: Option<String>,
  ) -> Result<TaskEntryConnection> {
    let env = Env::of(context);
    let last = page_size("last", last)?;
    let before = before.map(|cursor| cursor_of(&cursor)).transpose()?;
    let page = entries::page(&env.edge.reads, env.viewer.account, self.0.id, last, before).await.map_err(|error| env.failed(error))?;
    Ok(TaskEntryConnection::of(page))
  }
}

#[ComplexObject]
impl TaskEntry {
  /// Words, or a tool's result; at most its first `limit` characters.
  async fn text(&self, limit: Option<i32>) -> &str {
    self.beginning(limit)
  }
}

impl TaskEntry {
  fn beginning(&self, limit: Option<i32>) -> &str {
    let end = limit.and_then(|limit| usize::try_from(limit).ok()).and_then(|limit| self.body.char_indices().nth(limit));
    end.map_or(self.body.as_str(), |(end, _)| &self.body[..end])
  }
}

impl TaskConnection {
  pub(crate) fn of(page: Page<read::Task>) -> Self {
    let nodes: Vec<Task> = page.rows.into_iter().map(Task).collect();
    let edges: Vec<TaskEdge> = nodes.iter().map(|node| TaskEdge { cursor: node.0.place.to_string(), node: node.clone() }).collect();
    let page_info = PageInfo {
      has_previous_page: page.has_previous,
      has_next_page: page.has_next,
      start_cursor: edges.first().map(|edge| edge.cursor.clone()),
      end_cursor: edges.last().map(|edge| edge.cursor.clone()),
    };
    Self { page_info, edges, nodes }
  }
}

impl TaskEntryConnection {
  fn of(page: Page<entries::Entry>) -> Self {
    let nodes: Vec<TaskEntry> = page.rows.into_iter().map(TaskEntry::from).collect();
    let edges: Vec<TaskEntryEdge> = nodes.iter().map(|node| TaskEntryEdge { cursor: node.place.to_string(), node: node.clone() }).collect();
    let page_info = PageInfo {
      has_previous_page: page.has_previous,
      has_next_page: page.has_next,
      start_cursor: edges.first().map(|edge| edge.cursor.clone()),
      end_cursor: edges.last().map(|edge| edge.cursor.clone()),
    };
    Self { page_info, edges, nodes }
  }
}

impl From<entries::Entry> for TaskEntry {
  fn from(entry: entries::Entry) -> Self {
    let is_tool = entry.kind == Kind::Tool;
    let code = if is_tool { entry.reason } else { entry.code.clone() };
    Self {
      id: ID::from(entry.id),
      task_id: ID::from(entry.task),
      place: entry.place,
      changed: entry.changed,
      kind: entry.kind.into(),
      origin: entry.origin.into(),
      status: entry.status.into(),
      length: i32::try_from(entry.body.chars().count()).unwrap_or(i32::MAX),
      tool: is_tool.then_some(entry.code),
      action: Some(entry.action).filter(|action| !action.is_empty()),
      code: Some(code).filter(|code| !code.is_empty()),
      cut: entry.cut,
      created_at: DateTime(entry.created),
      attachments: entry.attachments.into_iter().map(Attachment::from).collect(),
      body: entry.body,
    }
  }
}

impl From<Origin> for TaskOrigin {
  fn from(origin: Origin) -> Self {
    match origin {
      Origin::Owner => Self::Owner,
      Origin::Agent => Self::Agent,
      Origin::Platform | Origin::Tool | Origin::ThirdParty => Self::Platform,
    }
  }
}

impl From<read::Status> for TaskState {
  fn from(status: read::Status) -> Self {
    match status {
      read::Status::Queued => Self::Queued,
      read::Status::Running => Self::Running,
      read::Status::Waiting => Self::Waiting,
      read::Status::Paused => Self::Paused,
      read::Status::Completed => Self::Completed,
      read::Status::Failed => Self::Failed,
      read::Status::Stopped => Self::Stopped,
    }
  }
}

impl From<TaskState> for read::Status {
  fn from(state: TaskState) -> Self {
    match state {
      TaskState::Queued => Self::Queued,
      TaskState::Running => Self::Running,
      TaskState::Waiting => Self::Waiting,
      TaskState::Paused => Self::Paused,
      TaskState::Completed => Self::Completed,
      TaskState::Failed => Self::Failed,
      TaskState::Stopped => Self::Stopped,
    }
  }
}

impl From<Kind> for TaskEntryKind {
  fn from(kind: Kind) -> Self {
    match kind {
      Kind::Goal => Self::Goal,
      Kind::Instruction => Self::Instruction,
      Kind::Words => Self::Words,
      Kind::Tool => Self::Tool,
      Kind::Checkpoint => Self::Checkpoint,
      Kind::Output => Self::Output,
      Kind::Result => Self::Result,
      Kind::Failure => Self::Failure,
      Kind::Event => Self::Event,
    }
  }
}

impl From<EntryStatus> for TaskEntryStatus {
  fn from(status: EntryStatus) -> Self {
    match status {
      EntryStatus::Posted => Self::Posted,
      EntryStatus::Held => Self::Held,
      EntryStatus::Started => Self::Started,
      EntryStatus::Returned => Self::Returned,
      EntryStatus::Failed => Self::Failed,
      EntryStatus::Skipped => Self::Skipped,
      EntryStatus::Unknown => Self::Unknown,
      EntryStatus::Reconciled => Self::Reconciled,
    }
  }
}

#[cfg(test)]
mod tests {
  use pa_domain::{TaskId, Timestamp};
  use uuid::Uuid;

  use super::*;

  #[test]
  fn a_long_text_is_cut_between_two_characters_and_says_how_long_it_is() {
    let entry = TaskEntry::from(entries::Entry {
      id: Uuid::from_u128(1),
      task: TaskId(Uuid::from_u128(2)),
      place: 3,
      changed: 4,
      kind: Kind::Tool,
      origin: Origin::Agent,
      status: EntryStatus::Skipped,
      body: "héllo 😀!".to_owned(),
      code: "pa_bash".to_owned(),
      action: String::new(),
      reason: "STEERED".to_owned(),
      cut: false,
      attachments: Vec::new(),
      created: Timestamp(0),
    });
    assert_eq!((entry.length, entry.tool.as_deref(), entry.code.as_deref(), entry.action.as_deref()), (8, Some("pa_bash"), Some("STEERED"), None));
    let limits = [(Some(2), "hé"), (Some(7), "héllo 😀"), (Some(8), "héllo 😀!"), (Some(90), "héllo 😀!"), (None, "héllo 😀!"), (Some(-1), "héllo 😀!")];
    for (limit, expected) in limits {
      assert_eq!(entry.beginning(limit), expected, "{limit:?}");
    }
  }
}
