//! Facts about tasks, and the small types that inputs and facts share.

use serde::{Deserialize, Serialize};

use crate::conversation::{Author, FileRef};
use crate::ids::{ActionId, CallId, ConversationId, JobId, MessageId, OutputId, RecordId, TaskId, ThingId};
use crate::meta::Origin;
use crate::record::records;

/// The call of a conversation's turn that asks for something of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
  /// The turn: the job that answers the message.
  pub job: JobId,
  pub execution: i32,
  pub call: CallId,
  /// The ordinal at which the turn had read the task; 0 if it hadn't.
  pub read: i64,
}

/// What a turn may ask of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OrderKind {
  Start,
  Instruct,
  Pause,
  Resume,
  Stop,
}

/// What a task waits for; nothing of it runs meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WaitReason {
  /// The owner's decision on a card.
  Approval,
  /// An external call whose outcome isn't known (RUN-18).
  UnknownEffect,
  /// A desktop that someone else uses.
  Desktop,
  /// It was interrupted too often; a notice says so, and the owner goes on with it.
  Notice,
}

/// Why a task is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PauseReason {
  Asked,
  /// Its model repeated itself or wrote without end (RUN-24).
  OutputLooped,
}

/// The owner's decision on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Decision {
  ApproveOnce,
  AllowForTask,
  Reject,
}

/// Why a card is no longer to be decided, or its approval no longer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WithdrawReason {
  /// A newer instruction came.
  Instructed,
  /// The task was stopped.
  Stopped,
  /// The task has failed.
  Failed,
  /// What was to be done changed after it was approved (D12).
  Changed,
  /// What it was based on is too old.
  Expired,
}

/// A turn asks for something of a task, by a call that was permitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskOrdered {
  pub order: Order,
  /// Where the turn is, and where a result will be told.
  pub conversation: ConversationId,
  /// Who wrote the message that the turn answers.
  pub author: Author,
  pub kind: OrderKind,
  pub task: TaskId,
  /// For a new task.
  pub title: String,
  /// The goal or the instruction, whole.
  pub text: String,
  pub attachments: Vec<FileRef>,
}

/// A turn reads a task, by a call that was permitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskLookedUp {
  pub job: JobId,
  pub call: CallId,
  pub task: TaskId,
}

/// The task exists, and stands at the end of the queue. Its ordinal is its first revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStarted {
  pub task: TaskId,
  /// Its own conversation.
  pub conversation: ConversationId,
  /// The conversation that its result is told in.
  pub asked_in: ConversationId,
  pub author: Author,
  pub title: String,
  pub goal: String,
  pub attachments: Vec<FileRef>,
  pub by: Origin,
  pub order: Option<Order>,
}

/// An instruction was added. Its ordinal is the task's revision from here on (D2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskInstructed {
  pub task: TaskId,
  pub conversation: ConversationId,
  pub instruction: MessageId,
  pub by: Origin,
  pub text: String,
  pub attachments: Vec<FileRef>,
  pub order: Option<Order>,
}

/// The task stands at the end of the queue again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskQueued {
  pub task: TaskId,
  /// 1 at the start, one more each time that it goes on after an end.
  pub run: i32,
}

/// It is the task's turn: it shall be carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRunRequested {
  pub task: TaskId,
}

/// Nothing of the task runs until what it waits for is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskWaiting {
  pub task: TaskId,
  pub reason: WaitReason,
}

/// Nothing new of the task begins; what runs may finish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskPaused {
  pub task: TaskId,
  pub reason: PauseReason,
  pub by: Origin,
  /// What was seen, when it was not asked for.
  pub detail: String,
  pub order: Option<Order>,
}

/// The task may go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResumed {
  pub task: TaskId,
  pub by: Origin,
  pub order: Option<Order>,
}

/// The task was stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStopped {
  pub task: TaskId,
  pub by: Origin,
  pub order: Option<Order>,
}

/// The task is done, with its result, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCompleted {
  pub task: TaskId,
  /// The conversation that the result is told in.
  pub asked_in: ConversationId,
  pub author: Author,
  pub title: String,
  /// The ordinal of the last instruction that the result answers.
  pub revision: i64,
  pub text: String,
}

/// The task could not be done; the notice beside it says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskFailed {
  pub task: TaskId,
  pub revision: i64,
  /// A notice code.
  pub code: String,
  /// For the audit, without secrets.
  pub detail: String,
  /// What the model wrote last; progress, and not a result.
  pub text: String,
}

/// What a turn asked of a task is not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderRefused {
  pub task: TaskId,
  pub order: Order,
  pub reason: String,
}

/// What a turn asked of a task was done before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderRepeated {
  pub task: TaskId,
  pub order: Order,
}

/// What the model keeps for itself about how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointRecorded {
  pub task: TaskId,
  pub execution: i32,
  pub call: CallId,
  pub text: String,
}

/// A file was handed over: it stands in the conversation. This is the receipt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputDelivered {
  pub output: OutputId,
  pub task: TaskId,
  pub conversation: ConversationId,
  pub execution: i32,
  pub call: CallId,
  /// The ordinal of the last instruction: request keys are for one revision.
  pub revision: i64,
  pub request_key: String,
  pub file: FileRef,
  /// The path or reference that it was taken from.
  pub source: String,
  pub caption: String,
}

/// The owner allows an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionApproved {
  pub task: TaskId,
  pub card: ActionId,
  pub call: CallId,
  /// None: once. Otherwise every action of this scope, in this task, until it ends (D11).
  pub scope: Option<String>,
}

/// The owner does not want an action; the task goes on without it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionRejected {
  pub task: TaskId,
  pub card: ActionId,
  pub call: CallId,
  /// The id of what is not to be asked for again until the owner's next instruction (D34).
  pub remembered: RecordId,
}

/// A card is no longer to be decided, or its approval no longer counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionWithdrawn {
  pub task: TaskId,
  pub card: ActionId,
  pub call: CallId,
  pub reason: WithdrawReason,
}

records! {
  /// Facts about tasks.
  "task" Event {
    TaskOrdered = 1, TaskLookedUp = 1, TaskStarted = 1, TaskInstructed = 1, TaskQueued = 1, TaskRunRequested = 1, TaskWaiting = 1, TaskPaused = 1, TaskResumed = 1,
    TaskStopped = 1, TaskCompleted = 1, TaskFailed = 1, OrderRefused = 1, OrderRepeated = 1, CheckpointRecorded = 1, OutputDelivered = 1, ActionApproved = 1,
    ActionRejected = 1, ActionWithdrawn = 1,
  }
}

impl Event {
  /// The thing that the event is about: a turn, or the task. `TaskRunRequested` changes only the root, where turns are counted.
  pub fn thing(&self) -> Option<ThingId> {
    match self {
      Self::TaskRunRequested(_) => None,
      Self::TaskOrdered(event) => Some(event.order.job.into()),
      Self::OrderRefused(event) => Some(event.task.into()),
      Self::OrderRepeated(event) => Some(event.task.into()),
      Self::CheckpointRecorded(event) => Some(event.task.into()),
      Self::TaskLookedUp(event) => Some(event.job.into()),
      Self::TaskStarted(event) => Some(event.task.into()),
      Self::TaskInstructed(event) => Some(event.task.into()),
      Self::TaskQueued(event) => Some(event.task.into()),
      Self::TaskWaiting(event) => Some(event.task.into()),
      Self::TaskPaused(event) => Some(event.task.into()),
      Self::TaskResumed(event) => Some(event.task.into()),
      Self::TaskStopped(event) => Some(event.task.into()),
      Self::TaskCompleted(event) => Some(event.task.into()),
      Self::TaskFailed(event) => Some(event.task.into()),
      Self::OutputDelivered(event) => Some(event.task.into()),
      Self::ActionApproved(event) => Some(event.task.into()),
      Self::ActionRejected(event) => Some(event.task.into()),
      Self::ActionWithdrawn(event) => Some(event.task.into()),
    }
  }
}
