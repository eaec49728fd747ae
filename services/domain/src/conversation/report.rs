//! How a task's result is told: it queues behind earlier messages of its conversation, and is told in the agent's words, or unchanged (REP-24..27).
//!
//! A result that the task has gone on from is settled, and not posted.

use super::turns::{turn_after, turn_at_once};
use super::{Reply, ReplyPosted, ReplyRequested, ReportAdmitted, ReportSuperseded, ResultReported};
use crate::codes::reason;
use crate::event::{Event, message_of};
use crate::execution::{ExecutionFinished, ExecutionStarted, JobKind};
use crate::ids::{ConversationId, JobId, MessageId, Timestamp, named};
use crate::limits::{MESSAGE_TEXT_BYTES_MAX, OPEN_MESSAGES_MAX, RESULT_CHARS_MAX, TASKS_OPEN_MAX, TITLE_CHARS_MAX};
use crate::meta::{Meta, Origin};
use crate::settle::no_change;
use crate::state::{Root, Thing};
use crate::text;

/// Takes a result in. Only the log itself brings one.
pub(super) fn admit(root: &Root, thing: &Thing, meta: &Meta, reported: &ResultReported) -> Vec<Event> {
  if meta.origin != Origin::Platform {
    return vec![no_change(reason::NOT_ALLOWED)];
  }
  if thing.reply().is_some() {
    return vec![no_change(reason::ALREADY_DONE)];
  }
  let Some(conversation) = root.conversations.contains_key(&reported.conversation).then_some(reported.conversation).or(root.main) else {
    return vec![no_change(reason::NOT_FOUND)];
  };
  let message = message_of(meta.id);
  let reply = MessageId(named(message.0, "reply"));
  let (text, _) = text::bounded(&reported.text, MESSAGE_TEXT_BYTES_MAX);
  let ResultReported { task, author, revision, .. } = *reported;
  let title = text::first_chars(&reported.title, TITLE_CHARS_MAX);
  let mut events = vec![ReportAdmitted { message, conversation, task, author, title, revision, text: text.clone(), reply }.into()];
  let job = message.into();
  if is_outdated(root, reported) {
    events.push(ReportSuperseded { job, conversation, reply, task, revision }.into());
  } else if root.open_messages() >= OPEN_MESSAGES_MAX + TASKS_OPEN_MAX {
    // It can't be refused, and the queue has no room: it is posted as it is.
    events.extend(posted_at_once((job, conversation, reply), 1, text));
  } else if turn_at_once(root, conversation, root.conversations[&conversation].kind) {
    events.push(ReplyRequested { job, conversation, reply }.into());
  }
  events
}

/// Whether the task was instructed since, or a newer result of it waits.
fn is_outdated(root: &Root, reported: &ResultReported) -> bool {
  let is_newer = |task, revision| task == reported.task && revision > reported.revision;
  let mut waiting = root.conversations.values().flat_map(|known| &known.open).filter_map(|message| message.report);
  root.results.get(&reported.task).is_some_and(|underway| is_newer(reported.task, underway.revision))
    || waiting.any(|report| is_newer(report.task, report.revision))
}

/// What happens when a worker asks for a result's turn and there is nothing to say in other words: it is superseded, or too long to be told otherwise (REP-26).
pub(crate) fn at_its_turn(root: &Root, of: (JobId, &Reply)) -> Option<Vec<Event>> {
  let (job, reply) = of;
  let report = reply.report.as_ref()?;
  let conversation = reply.conversation;
  let mut events = match superseded(root, of) {
    Some(superseded) => vec![superseded],
    None if report.text.chars().count() > RESULT_CHARS_MAX => {
      posted_at_once((job, conversation, reply.reply), reply.work.executions + 1, report.text.clone()).to_vec()
    }
    None => return None,
  };
  events.extend(turn_after(root, conversation, job).map(Event::from));
  Some(events)
}

/// An execution that has nothing to do but to post the result as it is.
fn posted_at_once(of: (JobId, ConversationId, MessageId), execution: i32, text: String) -> [Event; 3] {
  let (job, conversation, reply) = of;
  [
    ExecutionStarted { job, kind: JobKind::Reply, execution, conversation, reply, limit_ms: Timestamp(0) }.into(),
    ExecutionFinished { job, execution }.into(),
    ReplyPosted { job, conversation, reply, text, incomplete: false }.into(),
  ]
}

/// The end of a result that the task has gone on from.
pub(crate) fn superseded(root: &Root, of: (JobId, &Reply)) -> Option<Event> {
  let (job, reply) = of;
  let report = reply.report.as_ref()?;
  let open = root.conversations.get(&reply.conversation)?.open.iter().find(|message| message.job == job)?;
  let is_superseded = open.report.is_some_and(|report| report.is_superseded);
  let (conversation, task, revision) = (reply.conversation, report.task, report.revision);
  is_superseded.then(|| ReportSuperseded { job, conversation, reply: reply.reply, task, revision }.into())
}

/// The result posted as it is, or its end if the task has gone on from it; none for a job that tells no result.
pub(crate) fn unchanged(root: &Root, of: (JobId, &Reply)) -> Option<Event> {
  let (job, reply) = of;
  let report = reply.report.as_ref()?;
  let posted = || ReplyPosted { job, conversation: reply.conversation, reply: reply.reply, text: report.text.clone(), incomplete: false }.into();
  Some(superseded(root, of).unwrap_or_else(posted))
}
