//! What the rules remember of conversations (in the root) and of reply jobs (a thing each).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Author, ConversationKind, FileRef};
use crate::execution::Work;
use crate::ids::{CallId, ConversationId, JobId, MessageId, TaskId};
use crate::state::Root;

/// A conversation's turn order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
  pub kind: ConversationKind,
  /// Messages that aren't answered, stopped or failed, in the order in which they are answered.
  pub open: Vec<OpenMessage>,
  /// The ordinal of what last came in, to tell the longest idle one.
  pub active: i64,
}

/// A message that waits for its answer or has its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenMessage {
  pub job: JobId,
  pub reply: MessageId,
  /// The ordinal since which it waits: its admission or its last retry.
  pub since: i64,
  /// `ReplyRequested` was decided for it.
  pub has_turn: bool,
  /// The result that it tells, if it is no message.
  pub report: Option<OpenReport>,
}

/// A result that waits to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenReport {
  pub task: TaskId,
  pub revision: i64,
  /// The task went on meanwhile.
  pub is_superseded: bool,
}

/// A reply job: a message and all that was done to answer it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
  pub conversation: ConversationId,
  pub author: Author,
  pub reply: MessageId,
  pub status: ReplyStatus,
  /// The chain of causes that its message began, and that the work on it belongs to.
  pub correlation: Uuid,
  pub work: Work,
  /// The message's files, which a task that is started from it gets; none once it is answered.
  pub attachments: Vec<FileRef>,
  /// The result to tell, if the job is no answer to a message; none once it is told.
  pub report: Option<Report>,
  /// Tasks that calls of this turn read.
  pub looking_up: BTreeMap<CallId, TaskId>,
  /// Tasks that it has read, and when last.
  pub read: BTreeMap<TaskId, i64>,
}

/// A task's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
  pub task: TaskId,
  pub revision: i64,
  pub text: String,
}

/// How far a reply job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplyStatus {
  Pending,
  Answered,
  Stopped,
  Failed,
  /// The result was not told, because its task went on.
  Superseded,
}

impl Reply {
  /// A call of the turn returned: if it read a task, the turn knows it as it is now.
  pub(crate) fn has_read(&mut self, call: CallId, ordinal: i64) {
    if let Some(task) = self.looking_up.remove(&call) {
      self.read.insert(task, ordinal);
    }
  }
}

impl Root {
  /// How many messages of the agent are open.
  pub fn open_messages(&self) -> usize {
    self.conversations.values().map(|conversation| conversation.open.len()).sum()
  }

  /// A task was instructed, or has a newer result: what it reported before is not told any more.
  pub(crate) fn supersede(&mut self, task: TaskId, revision: i64) {
    let reports = self.conversations.values_mut().flat_map(|known| &mut known.open).filter_map(|message| message.report.as_mut());
    for report in reports.filter(|report| report.task == task && report.revision < revision) {
      report.is_superseded = true;
    }
  }

  /// Whether it is the message's turn.
  pub fn has_turn(&self, conversation: ConversationId, job: JobId) -> bool {
    let open = self.conversations.get(&conversation).map_or(&[][..], |conversation| &conversation.open);
    open.iter().any(|message| message.job == job && message.has_turn)
  }
}
