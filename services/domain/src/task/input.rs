//! Commands and reports about tasks.

use serde::{Deserialize, Serialize};

use super::{Decision, Order};
use crate::conversation::{Author, FileRef};
use crate::ids::{ActionId, CallId, ConversationId, TaskId};
use crate::record::records;

/// A new task is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStartAsked {
  pub task: TaskId,
  /// Where its result will be told.
  pub conversation: ConversationId,
  pub author: Author,
  pub title: String,
  pub goal: String,
  pub attachments: Vec<FileRef>,
  pub order: Option<Order>,
}

/// An instruction for a task: of the owner on its page, or as a turn of a conversation understood them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstructionGiven {
  pub task: TaskId,
  pub text: String,
  pub attachments: Vec<FileRef>,
  pub order: Option<Order>,
}

/// A task shall not go on for now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskPauseAsked {
  pub task: TaskId,
  pub order: Option<Order>,
}

/// A task that is paused, stopped or failed, or that waits after too many interruptions, shall go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResumeAsked {
  pub task: TaskId,
  pub order: Option<Order>,
}

/// A task shall end now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStopAsked {
  pub task: TaskId,
  pub order: Option<Order>,
}

/// The owner decides on a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionDecisionGiven {
  pub task: TaskId,
  pub card: ActionId,
  pub decision: Decision,
}

/// A started call asks to keep the model's notes about how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointAsked {
  pub task: TaskId,
  pub execution: i32,
  pub call: CallId,
  pub text: String,
}

/// A started call asks to hand over a file, whose bytes are a blob by now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryAsked {
  pub task: TaskId,
  pub execution: i32,
  pub call: CallId,
  pub request_key: String,
  pub file: FileRef,
  /// The path or reference that it was taken from.
  pub source: String,
  pub caption: String,
}

/// The model repeats itself or writes without end (RUN-24).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputLoopReported {
  pub task: TaskId,
  pub execution: i32,
  /// What was seen; at most 2,000 characters.
  pub detail: String,
}

/// The desktop that the task needs is used by someone else (SID-16).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesktopBusyReported {
  pub task: TaskId,
  pub execution: i32,
}

/// The desktop that the task waits for is free (SID-17).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesktopFreedReported {
  pub task: TaskId,
}

records! {
  /// Commands and reports about tasks.
  "task" Input {
    TaskStartAsked = 1, InstructionGiven = 1, TaskPauseAsked = 1, TaskResumeAsked = 1, TaskStopAsked = 1, ActionDecisionGiven = 1, CheckpointAsked = 1,
    DeliveryAsked = 1, OutputLoopReported = 1, DesktopBusyReported = 1, DesktopFreedReported = 1,
  }
}

impl Input {
  /// The task that the input names or makes.
  pub fn task(&self) -> TaskId {
    match self {
      Self::TaskStartAsked(input) => input.task,
      Self::InstructionGiven(input) => input.task,
      Self::TaskPauseAsked(input) => input.task,
      Self::TaskResumeAsked(input) => input.task,
      Self::TaskStopAsked(input) => input.task,
      Self::ActionDecisionGiven(input) => input.task,
      Self::CheckpointAsked(input) => input.task,
      Self::DeliveryAsked(input) => input.task,
      Self::OutputLoopReported(input) => input.task,
      Self::DesktopBusyReported(input) => input.task,
      Self::DesktopFreedReported(input) => input.task,
    }
  }

  /// Whether it happened outside, so that it can't be refused.
  pub fn is_report(&self) -> bool {
    match self {
      Self::OutputLoopReported(_) | Self::DesktopBusyReported(_) | Self::DesktopFreedReported(_) => true,
      Self::TaskStartAsked(_)
      | Self::InstructionGiven(_)
      | Self::TaskPauseAsked(_)
      | Self::TaskResumeAsked(_)
      | Self::TaskStopAsked(_)
      | Self::ActionDecisionGiven(_)
      | Self::CheckpointAsked(_)
      | Self::DeliveryAsked(_) => false,
    }
  }
}
