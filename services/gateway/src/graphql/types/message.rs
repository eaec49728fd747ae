//! Entries of a conversation as the outside sees them.

use async_graphql::{Enum, ID, SimpleObject};
use pa_domain::Meta;
use pa_domain::conversation::{Author, FileRef, MessageAdmitted};
use pa_projections::conversation::{self as read, Entry, Page};

use super::PageInfo;
use super::scalars::DateTime;

/// One entry of a conversation.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Message {
  pub id: ID,
  pub conversation_id: ID,
  /// Its place among the entries of its conversation. Entries are shown in this order.
  pub place: i64,
  /// Ordinal of the last change of this entry; a copy with a lower one is older.
  pub changed: i64,
  pub role: MessageRole,
  /// Who wrote it, where the role alone does not tell.
  pub author: Option<String>,
  /// The text; empty for a notice and for a reply that is still being written.
  pub text: String,
  pub status: MessageStatus,
  pub created_at: DateTime,
  /// The message that this reply answers.
  pub reply_to_id: Option<ID>,
  /// The reply to this message.
  pub reply_id: Option<ID>,
  /// The reply ended before it was complete.
  pub incomplete: bool,
  /// Set on a notice: what happened, as a code that the page renders in the reader's language.
  pub notice: Option<Notice>,
  pub attachments: Vec<Attachment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum MessageRole {
  /// The owner of the agent.
  Owner,
  /// Somebody else, on a connected platform.
  Person,
  /// The agent.
  Agent,
  /// The system, by a code.
  Notice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum MessageStatus {
  /// A message that waits for its reply.
  Pending,
  /// A message whose reply stands.
  Answered,
  /// A message whose reply failed.
  Failed,
  /// A reply that is being written.
  Writing,
  /// A finished reply, or a notice.
  Posted,
  /// A message or reply that the owner stopped.
  Stopped,
}

/// Something to tell the reader, as a code with parameters.
#[derive(Clone, Debug, PartialEq, Eq, SimpleObject)]
pub(crate) struct Notice {
  pub code: String,
  pub params: Vec<NoticeParam>,
}

/// One parameter of a notice.
#[derive(Clone, Debug, PartialEq, Eq, SimpleObject)]
pub(crate) struct NoticeParam {
  pub name: String,
  pub value: String,
}

/// A file that came with a message.
#[derive(Clone, Debug, PartialEq, Eq, SimpleObject)]
pub(crate) struct Attachment {
  /// The id that the upload answered with.
  pub id: ID,
  /// The file's name, as the sender gave it.
  pub name: String,
  /// The media type, as the sender gave it.
  pub media_type: String,
  /// The size in bytes.
  pub size: i64,
  /// SHA-256 of the content in lower-case hex.
  pub sha256: String,
  /// Where the content is served, relative to the page.
  pub url: String,
}

/// A page of messages, newest last.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct MessageConnection {
  pub page_info: PageInfo,
  pub edges: Vec<MessageEdge>,
  pub nodes: Vec<Message>,
}

/// One message with its cursor.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct MessageEdge {
  pub node: Message,
  pub cursor: String,
}

impl MessageConnection {
  /// A page that was read; `newer` says that it ends before a cursor.
  pub(crate) fn of(page: Page, newer: bool) -> Self {
    let nodes: Vec<Message> = page.entries.into_iter().map(Message::from).collect();
    let edges: Vec<MessageEdge> = nodes.iter().map(|node| MessageEdge { cursor: node.place.to_string(), node: node.clone() }).collect();
    let page_info = PageInfo {
      has_previous_page: page.has_previous,
      has_next_page: newer,
      start_cursor: edges.first().map(|edge| edge.cursor.clone()),
      end_cursor: edges.last().map(|edge| edge.cursor.clone()),
    };
    Self { page_info, edges, nodes }
  }
}

impl Message {
  /// A message as its own decision admitted it, before the read model has it.
  pub(crate) fn admitted(meta: &Meta, admitted: &MessageAdmitted) -> Self {
    let role = match admitted.author {
      Author::Owner => MessageRole::Owner,
      Author::Person => MessageRole::Person,
    };
    Self {
      id: ID::from(admitted.message),
      conversation_id: ID::from(admitted.conversation),
      place: meta.ordinal,
      changed: meta.ordinal,
      role,
      author: (!admitted.author_name.is_empty()).then(|| admitted.author_name.clone()),
      text: admitted.text.clone(),
      status: MessageStatus::Pending,
      created_at: DateTime(meta.at),
      reply_to_id: None,
      reply_id: Some(ID::from(admitted.reply)),
      incomplete: false,
      notice: None,
      attachments: admitted.attachments.iter().cloned().map(Attachment::from).collect(),
    }
  }
}

impl From<Entry> for Message {
  fn from(entry: Entry) -> Self {
    let notice = (entry.role == read::Role::Notice)
      .then(|| Notice { code: entry.code, params: entry.params.into_iter().map(|param| NoticeParam { name: param.name, value: param.value }).collect() });
    // A failed reply left nothing to show: to the outside it is a reply that stopped without text.
    let status = if entry.removed { MessageStatus::Stopped } else { entry.status.into() };
    Self {
      id: ID::from(entry.id),
      conversation_id: ID::from(entry.conversation),
      place: entry.place,
      changed: entry.changed,
      role: entry.role.into(),
      author: (!entry.author.is_empty()).then_some(entry.author),
      text: if notice.is_some() { String::new() } else { entry.text },
      status,
      created_at: DateTime(entry.created),
      reply_to_id: entry.reply_to.map(ID::from),
      reply_id: entry.reply.map(ID::from),
      incomplete: entry.incomplete,
      notice,
      attachments: entry.attachments.into_iter().map(Attachment::from).collect(),
    }
  }
}

impl From<read::Attachment> for Attachment {
  fn from(file: read::Attachment) -> Self {
    Self { url: format!("/files/{}", file.id), id: ID::from(file.id), name: file.name, media_type: file.media_type, size: file.size_bytes, sha256: file.sha256 }
  }
}

impl From<FileRef> for Attachment {
  fn from(file: FileRef) -> Self {
    Self { url: format!("/files/{}", file.id), id: ID::from(file.id), name: file.name, media_type: file.media_type, size: file.size_bytes, sha256: file.sha256 }
  }
}

impl From<read::Role> for MessageRole {
  fn from(role: read::Role) -> Self {
    match role {
      read::Role::Owner => Self::Owner,
      read::Role::Person => Self::Person,
      read::Role::Agent => Self::Agent,
      read::Role::Notice => Self::Notice,
    }
  }
}

impl From<read::Status> for MessageStatus {
  fn from(status: read::Status) -> Self {
    match status {
      read::Status::Pending => Self::Pending,
      read::Status::Answered => Self::Answered,
      read::Status::Failed => Self::Failed,
      read::Status::Stopped => Self::Stopped,
      read::Status::Writing => Self::Writing,
      read::Status::Posted => Self::Posted,
    }
  }
}
