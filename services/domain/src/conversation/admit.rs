//! How messages come in: the owner's may be refused, a platform's may not.

use super::turns::turn_at_once;
use super::{
  Author, ConversationKind, ConversationOpened, FileRef, MessageAdmitted, MessageGiven, MessageReceived, NoticeParam, NoticePosted, ReplyFailed, ReplyRequested,
};
use crate::codes::{notice, reason};
use crate::event::{Event, message_of};
use crate::ids::{ConversationId, JobId, MessageId, derived, named};
use crate::limits::{ATTACHMENTS_MAX, FILE_NAME_CHARS_MAX, MESSAGE_TEXT_BYTES_MAX, OPEN_MESSAGES_MAX, TITLE_CHARS_MAX};
use crate::meta::{Meta, Origin};
use crate::settle::{no_change, refused};
use crate::state::{Root, Thing};
use crate::text;

pub(super) fn give(root: &Root, thing: &Thing, meta: &Meta, given: &MessageGiven) -> Vec<Event> {
  if thing.reply().is_some() {
    return vec![no_change(reason::ALREADY_DONE)];
  }
  match admissible(root, meta, given) {
    Err(reason) => vec![refused(reason)],
    Ok((conversation, kind)) => {
      let text = text::clean(&given.text);
      let admitted = admitted(meta, conversation, Author::Owner, String::new(), text, &given.attachments);
      with_turn(root, kind, admitted, Vec::new())
    }
  }
}

/// The conversation that a message of the owner goes to, or why it can't.
fn admissible(root: &Root, meta: &Meta, given: &MessageGiven) -> Result<(ConversationId, ConversationKind), &'static str> {
  if meta.origin != Origin::Owner {
    return Err(reason::NOT_ALLOWED);
  }
  let conversation = given.conversation.or(root.main).ok_or(reason::NOT_FOUND)?;
  let kind = root.conversations.get(&conversation).ok_or(reason::NOT_FOUND)?.kind;
  match kind {
    ConversationKind::Main | ConversationKind::Channel => {}
    // A task is instructed, not written to.
    ConversationKind::Task => return Err(reason::NOT_ALLOWED),
  }
  if given.text.trim().is_empty() && given.attachments.is_empty() {
    return Err(reason::TEXT_EMPTY);
  }
  if text::clean(&given.text).len() > MESSAGE_TEXT_BYTES_MAX {
    return Err(reason::TEXT_TOO_LONG);
  }
  if given.attachments.len() > ATTACHMENTS_MAX {
    return Err(reason::VALUE_INVALID);
  }
  if root.open_messages() >= OPEN_MESSAGES_MAX {
    return Err(reason::QUEUE_FULL);
  }
  Ok((conversation, kind))
}

pub(super) fn receive(root: &Root, thing: &Thing, meta: &Meta, received: &MessageReceived) -> Vec<Event> {
  if thing.reply().is_some() {
    return vec![no_change(reason::ALREADY_DONE)];
  }
  if received.text.trim().is_empty() && received.attachments.is_empty() {
    return vec![no_change(reason::TEXT_EMPTY)];
  }
  if root.open_messages() >= OPEN_MESSAGES_MAX {
    return admitted_as_failed(root, meta, received, notice::QUEUE_FULL, OPEN_MESSAGES_MAX);
  }
  if text::bounded(&received.text, MESSAGE_TEXT_BYTES_MAX).1 {
    return admitted_as_failed(root, meta, received, notice::TEXT_TOO_LONG, MESSAGE_TEXT_BYTES_MAX);
  }
  if received.attachments.len() > ATTACHMENTS_MAX {
    return admitted_as_failed(root, meta, received, notice::TOO_MANY_ATTACHMENTS, ATTACHMENTS_MAX);
  }
  let (kind, opened) = opened(root, received);
  with_turn(root, kind, admitted_from_outside(meta, received), opened)
}

/// A channel message that the agent can't take on: it can't be refused, so it stands in its conversation with a notice that says why nobody answers it.
pub(crate) fn admitted_as_failed(root: &Root, meta: &Meta, received: &MessageReceived, code: &str, limit: usize) -> Vec<Event> {
  let (_, mut events) = opened(root, received);
  let admitted = admitted_from_outside(meta, received);
  let (job, conversation, reply) = (JobId::from(admitted.message), admitted.conversation, admitted.reply);
  events.push(admitted.into());
  events.push(ReplyFailed { job, conversation, reply, code: code.to_owned() }.into());
  events.push(posted(meta, events.len(), (conversation, job.into()), code, vec![NoticeParam::new("limit", limit.to_string())]));
  events
}

/// A notice about a message of a conversation, as event number `index` of the decision.
pub(crate) fn posted(meta: &Meta, index: usize, about: (ConversationId, MessageId), code: &str, params: Vec<NoticeParam>) -> Event {
  let (conversation, reply_to) = about;
  let index = u32::try_from(index).expect("a decision has at most 64 events");
  NoticePosted { notice: MessageId(derived(meta.id, index)), conversation, reply_to: Some(reply_to), code: code.to_owned(), params }.into()
}

/// The conversation's kind, and the event that opens it if it is new.
fn opened(root: &Root, received: &MessageReceived) -> (ConversationKind, Vec<Event>) {
  if let Some(known) = root.conversations.get(&received.conversation) {
    return (known.kind, Vec::new());
  }
  let opened = ConversationOpened {
    conversation: received.conversation,
    kind: ConversationKind::Channel,
    title: text::first_chars(&received.title, TITLE_CHARS_MAX),
    connection: text::first_chars(&received.connection, TITLE_CHARS_MAX),
  };
  (ConversationKind::Channel, vec![opened.into()])
}

/// Who wrote it is what the record's origin allows: a stranger's text never becomes the owner's (D30, D35).
fn admitted_from_outside(meta: &Meta, received: &MessageReceived) -> MessageAdmitted {
  let author = if meta.origin == Origin::Owner { received.author } else { Author::Person };
  let name = text::first_chars(&received.author_name, TITLE_CHARS_MAX);
  let (text, _) = text::bounded(&received.text, MESSAGE_TEXT_BYTES_MAX);
  admitted(meta, received.conversation, author, name, text, &received.attachments)
}

fn admitted(meta: &Meta, conversation: ConversationId, author: Author, author_name: String, text: String, files: &[FileRef]) -> MessageAdmitted {
  let message = message_of(meta.id);
  let attachments = files.iter().take(ATTACHMENTS_MAX).map(cleaned).collect();
  MessageAdmitted { message, conversation, author, author_name, text, attachments, reply: MessageId(named(message.0, "reply")) }
}

/// A file's names as they can be stored.
pub(crate) fn cleaned(file: &FileRef) -> FileRef {
  FileRef { name: text::first_chars(&file.name, FILE_NAME_CHARS_MAX), media_type: text::first_chars(&file.media_type, FILE_NAME_CHARS_MAX), ..file.clone() }
}

fn with_turn(root: &Root, kind: ConversationKind, admitted: MessageAdmitted, mut events: Vec<Event>) -> Vec<Event> {
  let requested = ReplyRequested { job: admitted.message.into(), conversation: admitted.conversation, reply: admitted.reply };
  events.push(admitted.into());
  if turn_at_once(root, requested.conversation, kind) {
    events.push(requested.into());
  }
  events
}
