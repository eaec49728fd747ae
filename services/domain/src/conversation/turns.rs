//! Whose turn it is: one message of a conversation at a time, and a bounded number of channel conversations beside the main one (D33).

use super::{Conversation, ConversationKind, OpenMessage, ReplyRequested};
use crate::ids::{ConversationId, JobId};
use crate::limits::CHANNEL_REPLIES_MAX;
use crate::state::Root;

/// Whether a message that is put at the end of a conversation has its turn at once.
pub(super) fn turn_at_once(root: &Root, conversation: ConversationId, kind: ConversationKind) -> bool {
  let others_wait = root.conversations.get(&conversation).is_some_and(|known| !known.open.is_empty());
  let has_room = match kind {
    ConversationKind::Main => true,
    ConversationKind::Channel => channels_with_a_turn(root) < CHANNEL_REPLIES_MAX,
    // A task's work is asked for by the task, not by a message's turn.
    ConversationKind::Task => false,
  };
  has_room && !others_wait
}

/// Whose turn it is once `job` is no longer open: the next message of its own conversation, or of the channel conversation that waits longest.
pub(crate) fn turn_after(root: &Root, conversation: ConversationId, job: JobId) -> Option<ReplyRequested> {
  if !root.has_turn(conversation, job) {
    return None;
  }
  let (conversation, next) = match root.conversations.get(&conversation)?.kind {
    ConversationKind::Main => (conversation, waiting(root.conversations.get(&conversation)?, job)?),
    ConversationKind::Channel => channels(root).filter_map(|(id, channel)| Some((id, waiting(channel, job)?))).min_by_key(|(_, head)| head.since)?,
    ConversationKind::Task => return None,
  };
  Some(ReplyRequested { job: next.job, conversation, reply: next.reply })
}

/// The first message of a conversation beside `closed`, if it waits for its turn.
fn waiting(conversation: &Conversation, closed: JobId) -> Option<&OpenMessage> {
  conversation.open.iter().find(|message| message.job != closed).filter(|message| !message.has_turn)
}

fn channels_with_a_turn(root: &Root) -> usize {
  channels(root).filter(|(_, channel)| channel.open.iter().any(|message| message.has_turn)).count()
}

fn channels(root: &Root) -> impl Iterator<Item = (ConversationId, &Conversation)> {
  root.conversations.iter().filter(|(_, known)| known.kind == ConversationKind::Channel).map(|(&id, known)| (id, known))
}
