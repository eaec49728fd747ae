//! What the rules remember of conversations (in the root) and of reply jobs (a thing each).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Author, ConversationKind};
use crate::execution::Work;
use crate::ids::{ConversationId, JobId, MessageId};
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
}

/// How far a reply job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplyStatus {
  Pending,
  Answered,
  Stopped,
  Failed,
}

impl Root {
  /// How many messages of the agent are open.
  pub fn open_messages(&self) -> usize {
    self.conversations.values().map(|conversation| conversation.open.len()).sum()
  }

  /// Whether it is the message's turn.
  pub fn has_turn(&self, conversation: ConversationId, job: JobId) -> bool {
    let open = self.conversations.get(&conversation).map_or(&[][..], |conversation| &conversation.open);
    open.iter().any(|message| message.job == job && message.has_turn)
  }
}
