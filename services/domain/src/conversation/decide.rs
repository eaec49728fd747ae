//! What is decided on messages that come in and on the owner's word about them.

use super::turns::{turn_after, turn_at_once};
use super::{Input, MessageRetried, MessageRetryAsked, Reply, ReplyRequested, ReplyStatus, ReplyStopAsked, ReplyStopped, admit, report};
use crate::codes::reason;
use crate::event::Event;
use crate::execution::ExecutionStopped;
use crate::ids::JobId;
use crate::limits::{MESSAGE_TEXT_BYTES_MAX, OPEN_MESSAGES_MAX};
use crate::meta::{Meta, Origin};
use crate::settle::refused;
use crate::state::{Root, Thing};
use crate::text;
use crate::timer::TimerCancelled;

pub(crate) fn decide(root: &Root, thing: &Thing, meta: &Meta, input: &Input) -> Vec<Event> {
  match input {
    Input::MessageGiven(given) => admit::give(root, thing, meta, given),
    Input::MessageReceived(received) => admit::receive(root, thing, meta, received),
    Input::ResultReported(reported) => report::admit(root, thing, meta, reported),
    Input::ReplyStopAsked(asked) => of_the_owner(thing, meta).map_or_else(|reason| vec![refused(reason)], |reply| stop(root, reply, asked)),
    Input::MessageRetryAsked(asked) => of_the_owner(thing, meta).map_or_else(|reason| vec![refused(reason)], |reply| retry(root, reply, asked)),
  }
}

/// The reply that the owner's word is about, or why it isn't heard.
fn of_the_owner<'a>(thing: &'a Thing, meta: &Meta) -> Result<&'a Reply, &'static str> {
  if meta.origin != Origin::Owner {
    return Err(reason::NOT_ALLOWED);
  }
  thing.reply().ok_or(reason::NOT_FOUND)
}

/// Started calls stay started: what they did is reported later, by their class. Nothing else of the job begins.
fn stop(root: &Root, reply: &Reply, asked: &ReplyStopAsked) -> Vec<Event> {
  match reply.status {
    ReplyStatus::Pending => {}
    ReplyStatus::Answered | ReplyStatus::Stopped | ReplyStatus::Failed | ReplyStatus::Superseded => return vec![refused(reason::STATE_CHANGED)],
  }
  let job: JobId = asked.message.into();
  let mut events = Vec::new();
  if let Some(running) = &reply.work.running {
    events.push(ExecutionStopped { job, execution: running.execution }.into());
    events.push(TimerCancelled { timer: running.timer }.into());
  }
  // Before the first execution there can't be a reply that was shown.
  let shown = if reply.work.executions == 0 { "" } else { asked.shown.as_str() };
  let (text, _) = text::bounded(shown, MESSAGE_TEXT_BYTES_MAX);
  events.push(ReplyStopped { job, conversation: reply.conversation, reply: reply.reply, text }.into());
  events.extend(turn_after(root, reply.conversation, job).map(Event::from));
  events
}

fn retry(root: &Root, reply: &Reply, asked: &MessageRetryAsked) -> Vec<Event> {
  match reply.status {
    ReplyStatus::Stopped | ReplyStatus::Failed => {}
    ReplyStatus::Pending | ReplyStatus::Answered | ReplyStatus::Superseded => return vec![refused(reason::STATE_CHANGED)],
  }
  let Some(known) = root.conversations.get(&reply.conversation) else { return vec![refused(reason::NOT_FOUND)] };
  if root.open_messages() >= OPEN_MESSAGES_MAX {
    return vec![refused(reason::QUEUE_FULL)];
  }
  let (conversation, reply) = (reply.conversation, reply.reply);
  let mut events = vec![MessageRetried { message: asked.message, conversation, reply }.into()];
  if turn_at_once(root, conversation, known.kind) {
    events.push(ReplyRequested { job: asked.message.into(), conversation, reply }.into());
  }
  events
}
