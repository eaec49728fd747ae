//! What the rules remember: an agent's root, and one thing at a time.
//!
//! The root holds what a rule counts or compares across things; it holds no text of anyone and at most 256 KiB. Both are folded from events by [`crate::evolve`]
//! alone. What belongs to one context stands in that context's `state`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::conversation::{Conversation, Reply};
use crate::execution::Work;
use crate::ids::{ConversationId, TaskId, TimerId};
use crate::log::Quarantine;
use crate::settings::SettingsChanged;
use crate::task::{OpenTask, Task, Underway};
use crate::timer::TimerSet;

/// The version of every state type: raise it with any change of shape or meaning, and a decider builds its state anew from the log.
pub const FOLD_VERSION: i32 = 3;

/// An agent as the rules see it when they decide on one of its inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
  pub root: Root,
  pub thing: Thing,
}

/// What is counted or compared across an agent's things.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Root {
  pub life: Life,
  /// The account's name, which an erasure has to repeat.
  pub owner_name: String,
  pub settings: Option<SettingsChanged>,
  pub main: Option<ConversationId>,
  pub conversations: BTreeMap<ConversationId, Conversation>,
  /// Tasks that are not over.
  pub tasks: BTreeMap<TaskId, OpenTask>,
  /// Results that are on their way to their conversations.
  pub results: BTreeMap<TaskId, Underway>,
  /// Timers that run.
  pub timers: BTreeMap<TimerId, TimerSet>,
  pub quarantine: Quarantine,
  /// How many accounts there are; only in the root of `installation`.
  pub accounts: u32,
}

/// Whether the agent exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
  #[default]
  Absent,
  Alive,
  Erased,
}

/// One thing's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Thing {
  /// Nothing is known of it.
  #[default]
  Absent,
  Reply(Box<Reply>),
  Task(Box<Task>),
}

impl Thing {
  /// The reply job, if the thing is one.
  pub fn reply(&self) -> Option<&Reply> {
    match self {
      Self::Reply(reply) => Some(reply),
      Self::Absent | Self::Task(_) => None,
    }
  }

  pub(crate) fn reply_mut(&mut self) -> Option<&mut Reply> {
    match self {
      Self::Reply(reply) => Some(reply),
      Self::Absent | Self::Task(_) => None,
    }
  }

  /// The task, if the thing is one.
  pub fn task(&self) -> Option<&Task> {
    match self {
      Self::Task(task) => Some(task),
      Self::Absent | Self::Reply(_) => None,
    }
  }

  pub(crate) fn task_mut(&mut self) -> Option<&mut Task> {
    match self {
      Self::Task(task) => Some(task),
      Self::Absent | Self::Reply(_) => None,
    }
  }

  /// The chain of causes that the job belongs to: that of the message, or of what started the task.
  pub fn correlation(&self) -> Option<Uuid> {
    match self {
      Self::Absent => None,
      Self::Reply(reply) => Some(reply.correlation),
      Self::Task(task) => Some(task.correlation),
    }
  }

  /// The execution side of the job that the thing is, whatever it is for.
  pub fn work(&self) -> Option<&Work> {
    match self {
      Self::Absent => None,
      Self::Reply(reply) => Some(&reply.work),
      Self::Task(task) => Some(&task.work),
    }
  }

  pub(crate) fn work_mut(&mut self) -> Option<&mut Work> {
    match self {
      Self::Absent => None,
      Self::Reply(reply) => Some(&mut reply.work),
      Self::Task(task) => Some(&mut task.work),
    }
  }
}
