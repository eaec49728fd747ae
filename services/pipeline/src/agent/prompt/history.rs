//! Earlier turns of the conversation, as many of the newest as fit, each whole.

use pa_domain::Origin;
use pa_model::{Message, estimate_tokens};
use pa_projections::conversation::{Entry, EntryKind, Role, Status, Turn};

use super::Parts;
use super::fence::{fenced, quoted};
use super::files::listed;

/// What a message costs beside its text: role and separators.
pub(super) const MESSAGE_TOKENS: usize = 8;
/// Turns at most, however short: a model does not follow more, and neither reading nor hashing them is free.
pub(in crate::agent) const TURNS_MAX: usize = 200;
/// Characters of a person's name.
const NAME_CHARS_MAX: usize = 80;
/// What stands for the text of a reply that was stopped before its first word.
const STOPPED: &str = "(stopped by the owner)";

/// Tokens that history may take: a share of the model's window.
pub(in crate::agent) fn history_tokens_max(context_tokens: u32, percent: u8) -> usize {
  context_tokens as usize * usize::from(percent.min(100)) / 100
}

/// Tokens that a turn takes.
pub(in crate::agent) fn turn_tokens(turn: &Turn) -> usize {
  let message = estimate_tokens(&said_before(&turn.message)) + MESSAGE_TOKENS;
  message + turn.reply.as_ref().and_then(replied).map_or(0, |text| estimate_tokens(&text) + MESSAGE_TOKENS)
}

/// The messages of those turns (newest first, without the one that is answered) that fit into `tokens_max`, oldest first.
pub(super) fn messages(turns: &[Turn], tokens_max: usize, parts: &mut Parts) -> Vec<Message> {
  let mut left = tokens_max;
  let fits = |turn: &&Turn| {
    let tokens = turn_tokens(turn);
    let fits = tokens <= left;
    left = left.saturating_sub(tokens);
    fits
  };
  let kept: Vec<&Turn> = turns.iter().take(TURNS_MAX).take_while(fits).collect();
  let mut messages = Vec::with_capacity(kept.len() * 2);
  for turn in kept.into_iter().rev() {
    let text = said_before(&turn.message);
    parts.gather("history", origin(&turn.message), &text);
    messages.push(Message::user(text));
    if let Some(text) = turn.reply.as_ref().and_then(replied) {
      parts.gather("history", Origin::Agent, &text);
      messages.push(Message::Assistant { text, calls: Vec::new() });
    }
  }
  messages
}

/// An earlier message as the model reads it: of a result that was told only that it came, since the reply has it.
fn said_before(message: &Entry) -> String {
  if message.kind == EntryKind::Report {
    return format!("(The background task {} reported its result.)", quoted(&message.author, NAME_CHARS_MAX));
  }
  said(message)
}

/// A message as the model reads it: the owner's words as they are, anybody else's as material.
pub(super) fn said(message: &Entry) -> String {
  if message.kind == EntryKind::Report {
    return fenced(&format!("the result of the background task {}", quoted(&message.author, NAME_CHARS_MAX)), &message.text);
  }
  let words = match message.role {
    Role::Person => fenced(&format!("a message of {}, who is not the owner", quoted(&message.author, NAME_CHARS_MAX)), &message.text),
    Role::Owner | Role::Agent | Role::Notice => message.text.clone(),
  };
  message.attachments.iter().fold(words, |text, file| format!("{text}\n{}", listed(file)))
}

/// Where a message's words come from.
pub(super) fn origin(message: &Entry) -> Origin {
  match message.role {
    Role::Owner => Origin::Owner,
    Role::Person => Origin::ThirdParty,
    Role::Agent => Origin::Agent,
    Role::Notice => Origin::Platform,
  }
}

/// A reply as the model reads it; `None` when there is nothing of it.
fn replied(reply: &Entry) -> Option<String> {
  match reply.status {
    Status::Stopped if reply.text.is_empty() => Some(STOPPED.to_owned()),
    Status::Stopped => Some(format!("{} {STOPPED}", reply.text)),
    _ if reply.text.is_empty() => None,
    _ => Some(reply.text.clone()),
  }
}
