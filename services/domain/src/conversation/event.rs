//! Records of conversations.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::event::message_of;
use crate::ids::{ConversationId, JobId, MessageId, TaskId, ThingId};
use crate::meta::Origin;
use crate::record::records;

/// What a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ConversationKind {
  /// The owner's one conversation.
  Main,
  /// One contact or group of a channel's connection.
  Channel,
  /// A task's own conversation.
  Task,
}

/// Who wrote a message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Author {
  Owner,
  /// Anyone else on a platform (D35).
  Person,
}

/// A file on a message: the bytes are a blob, the record names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
  /// The upload's id; it stays the file's id.
  pub id: String,
  /// The original name.
  pub name: String,
  pub media_type: String,
  pub size_bytes: i64,
  /// SHA-256 of the content, lower-case hex.
  pub sha256: String,
  /// The blob's name under the agent's folder.
  pub blob: String,
  /// Where the content comes from; what is in a file never instructs.
  pub origin: Origin,
}

/// A named value of a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeParam {
  pub name: String,
  pub value: String,
}

impl NoticeParam {
  /// The value `value` under the name `name`.
  pub fn new(name: &str, value: impl Into<String>) -> Self {
    Self { name: name.to_owned(), value: value.into() }
  }
}

/// The owner sends a message on the page, by GraphQL or the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageGiven {
  /// None: the main conversation.
  pub conversation: Option<ConversationId>,
  pub text: String,
  pub attachments: Vec<FileRef>,
}

/// A platform brings a message; it can't be refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageReceived {
  /// `UUIDv5` of (connection, contact or group).
  pub conversation: ConversationId,
  pub connection: String,
  /// The contact's or group's name, for a conversation that is new.
  pub title: String,
  pub author: Author,
  pub author_name: String,
  pub text: String,
  pub attachments: Vec<FileRef>,
}

/// The owner stops the reply to a message, or takes a waiting message back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyStopAsked {
  pub message: MessageId,
  /// The text of the reply that was shown so far, as the gateway kept it; at most the size of a message.
  pub shown: String,
}

/// The owner wants a failed or stopped message answered after all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageRetryAsked {
  pub message: MessageId,
}

/// A task brings its result to the conversation that asked for it; it can't be refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultReported {
  pub task: TaskId,
  pub conversation: ConversationId,
  /// Who caused the task.
  pub author: Author,
  pub title: String,
  /// The ordinal of the last instruction that the result answers.
  pub revision: i64,
  pub text: String,
}

/// A conversation exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationOpened {
  pub conversation: ConversationId,
  pub kind: ConversationKind,
  pub title: String,
  /// The channel's connection; empty for the main one.
  pub connection: String,
}

/// A message stands in its conversation, waiting for its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageAdmitted {
  pub message: MessageId,
  pub conversation: ConversationId,
  pub author: Author,
  /// Empty for the owner.
  pub author_name: String,
  pub text: String,
  pub attachments: Vec<FileRef>,
  /// The id that its one reply has or will have.
  pub reply: MessageId,
}

/// A failed or stopped message waits for its answer again, behind the others of its conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageRetried {
  pub message: MessageId,
  pub conversation: ConversationId,
  /// The id of its one reply, the same as before.
  pub reply: MessageId,
}

/// A task's result stands in its conversation, waiting to be told. The page doesn't show it: the reply does, and the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportAdmitted {
  pub message: MessageId,
  pub conversation: ConversationId,
  pub task: TaskId,
  /// Who caused the task.
  pub author: Author,
  pub title: String,
  pub revision: i64,
  /// The result, whole.
  pub text: String,
  /// The id of the reply that tells it.
  pub reply: MessageId,
}

/// The task went on before its result was told: it isn't told any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportSuperseded {
  pub job: JobId,
  pub conversation: ConversationId,
  pub reply: MessageId,
  pub task: TaskId,
  pub revision: i64,
}

/// It is this message's turn: the agent shall reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyRequested {
  pub job: JobId,
  pub conversation: ConversationId,
  pub reply: MessageId,
}

/// The reply to a message, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyPosted {
  pub job: JobId,
  pub conversation: ConversationId,
  pub reply: MessageId,
  pub text: String,
  /// The model ended by its length limit: there would have been more.
  pub incomplete: bool,
}

/// The owner stopped the reply, or took the waiting message back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyStopped {
  pub job: JobId,
  pub conversation: ConversationId,
  pub reply: MessageId,
  /// What of the reply had been shown; empty when nothing was.
  pub text: String,
}

/// No reply came about; the notice beside it says why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyFailed {
  pub job: JobId,
  pub conversation: ConversationId,
  pub reply: MessageId,
  /// A notice code such as `REPLY_INTERRUPTED`.
  pub code: String,
}

/// The product says something in the conversation; page and channel render the code in the reader's language.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoticePosted {
  pub notice: MessageId,
  pub conversation: ConversationId,
  pub reply_to: Option<MessageId>,
  pub code: String,
  pub params: Vec<NoticeParam>,
}

records! {
  /// Commands and reports about conversations.
  "conversation" Input { MessageGiven = 1, MessageReceived = 1, ReplyStopAsked = 1, MessageRetryAsked = 1, ResultReported = 1 }
}

records! {
  /// Facts about conversations.
  "conversation" Event {
    ConversationOpened = 1, MessageAdmitted = 1, MessageRetried = 1, ReportAdmitted = 1, ReportSuperseded = 1, ReplyRequested = 1, ReplyPosted = 1,
    ReplyStopped = 1, ReplyFailed = 1, NoticePosted = 1,
  }
}

impl Input {
  /// The thing that the input makes or names: the job that answers the message.
  pub fn thing(&self, id: Uuid) -> Option<ThingId> {
    match self {
      Self::MessageGiven(_) | Self::MessageReceived(_) | Self::ResultReported(_) => Some(ThingId(message_of(id).0)),
      Self::ReplyStopAsked(asked) => Some(ThingId(asked.message.0)),
      Self::MessageRetryAsked(asked) => Some(ThingId(asked.message.0)),
    }
  }
}

impl Event {
  /// The reply job that the event changes. `ReplyRequested` changes only the root, where turns are counted.
  pub fn thing(&self) -> Option<ThingId> {
    match self {
      Self::MessageAdmitted(event) => Some(ThingId(event.message.0)),
      Self::MessageRetried(event) => Some(ThingId(event.message.0)),
      Self::ReportAdmitted(event) => Some(ThingId(event.message.0)),
      Self::ReportSuperseded(event) => Some(event.job.into()),
      Self::ReplyPosted(event) => Some(event.job.into()),
      Self::ReplyStopped(event) => Some(event.job.into()),
      Self::ReplyFailed(event) => Some(event.job.into()),
      Self::ConversationOpened(_) | Self::ReplyRequested(_) | Self::NoticePosted(_) => None,
    }
  }
}
