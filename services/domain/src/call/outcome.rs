//! How a call is settled: by the report of its worker, by an observer, by a late report, or by the owner's word.

use super::{
  Call, CallFailed, CallOutcomeNoted, CallOutcomeReported, CallReconcileGiven, CallReconciled, CallReturned, CallStatus, CallUnknown, Class, Outcome,
  ResultPart,
};
use crate::codes::{notice, reason};
use crate::conversation::{NoticeParam, posted};
use crate::event::Event;
use crate::ids::{CallId, JobId};
use crate::limits::{CODE_CHARS_MAX, RESULT_PARTS_MAX, RESULT_TEXT_BYTES_MAX};
use crate::meta::{Meta, Origin};
use crate::settle::{no_change, refused};
use crate::state::{Root, Thing};
use crate::task::{self, Left};
use crate::text;

/// The one report that counts after its execution has ended: what became of a call that it had started.
pub(super) fn report(root: &Root, thing: &Thing, meta: &Meta, reported: &CallOutcomeReported) -> Vec<Event> {
  let Some(call) = thing.work().and_then(|work| work.calls.get(&reported.call)) else { return vec![no_change(reason::NO_SUCH_CALL)] };
  if !call.started_by.contains(&reported.execution) {
    return vec![no_change(reason::STALE_EXECUTION)];
  }
  let of = (reported.job, reported.call);
  match (call.status, reported.outcome) {
    (CallStatus::Started, Outcome::Unknown) => unknown(root, thing, (call, reported), meta),
    (CallStatus::Started, Outcome::Returned | Outcome::Failed) => with_what_follows((root, meta), thing, settled(reported), of),
    (CallStatus::Settled(Outcome::Unknown), Outcome::Returned | Outcome::Failed) => with_what_follows((root, meta), thing, reconciled(reported), of),
    (CallStatus::ReconciledByOwner, Outcome::Returned | Outcome::Failed) => vec![noted(reported)],
    (CallStatus::Settled(Outcome::Unknown) | CallStatus::ReconciledByOwner, Outcome::Unknown)
    | (
      CallStatus::Held
      | CallStatus::Approved
      | CallStatus::Skipped
      | CallStatus::Settled(Outcome::Returned | Outcome::Failed)
      | CallStatus::ReconciledByReport
      | CallStatus::Noted,
      Outcome::Returned | Outcome::Failed | Outcome::Unknown,
    ) => vec![no_change(reason::CALL_SETTLED)],
  }
}

pub(super) fn reconcile(root: &Root, thing: &Thing, meta: &Meta, given: &CallReconcileGiven) -> Vec<Event> {
  if meta.origin != Origin::Owner {
    return vec![refused(reason::NOT_ALLOWED)];
  }
  match thing.work().and_then(|work| work.calls.get(&given.call)) {
    None => vec![refused(reason::NOT_FOUND)],
    Some(call) if call.class == Some(Class::External) && call.status == CallStatus::Settled(Outcome::Unknown) => {
      let reconciled = CallReconciled { job: given.job, call: given.call, executed: given.executed, by_owner: true, parts: Vec::new() };
      with_what_follows((root, meta), thing, reconciled.into(), (given.job, given.call))
    }
    Some(_) => vec![refused(reason::STATE_CHANGED)],
  }
}

/// A call is settled; a task that only waited for it goes on.
fn with_what_follows(at: (&Root, &Meta), thing: &Thing, event: Event, call: (JobId, CallId)) -> Vec<Event> {
  let ((root, meta), (job, call)) = (at, call);
  let before = [event];
  let follows = thing.task().map(|task| task::after_call(root, meta, (job.into(), task), &before, (call, Left::Settled)));
  before.into_iter().chain(follows.into_iter().flatten()).collect()
}

/// An external call that nobody knows the outcome of waits for the owner, so the conversation says so (RUN-18).
fn unknown(root: &Root, thing: &Thing, about: (&Call, &CallOutcomeReported), meta: &Meta) -> Vec<Event> {
  let (call, reported) = about;
  if call.started_by.last() != Some(&reported.execution) {
    return vec![no_change(reason::STALE_EXECUTION)];
  }
  let mut events = vec![CallUnknown { job: reported.job, execution: reported.execution, call: reported.call }.into()];
  let left = if call.class == Some(Class::External) { Left::Unknown } else { Left::Settled };
  if let Some(task) = thing.task() {
    let of = (reported.job.into(), task);
    if left == Left::Unknown {
      events.push(task::unknown_notice(meta, events.len(), of, (reported.call, call)));
    }
    let follows = task::after_call(root, meta, of, &events, (reported.call, left));
    events.extend(follows);
  }
  if let Some(reply) = thing.reply()
    && left == Left::Unknown
  {
    let params = vec![NoticeParam::new("tool", call.tool.as_str()), NoticeParam::new("call", reported.call.to_string())];
    events.push(posted(meta, events.len(), (reply.conversation, reported.job.into()), notice::CALL_UNKNOWN, params));
  }
  events
}

fn settled(reported: &CallOutcomeReported) -> Event {
  let CallOutcomeReported { job, execution, call, .. } = *reported;
  let parts = bounded(&reported.parts);
  match reported.outcome {
    Outcome::Returned => CallReturned { job, execution, call, parts }.into(),
    Outcome::Failed => CallFailed { job, execution, call, code: text::first_chars(&reported.code, CODE_CHARS_MAX), parts }.into(),
    Outcome::Unknown => CallUnknown { job, execution, call }.into(),
  }
}

fn reconciled(reported: &CallOutcomeReported) -> Event {
  let executed = reported.outcome == Outcome::Returned;
  CallReconciled { job: reported.job, call: reported.call, executed, by_owner: false, parts: bounded(&reported.parts) }.into()
}

fn noted(reported: &CallOutcomeReported) -> Event {
  let CallOutcomeReported { job, execution, call, outcome, .. } = *reported;
  CallOutcomeNoted { job, execution, call, outcome, parts: bounded(&reported.parts) }.into()
}

/// The parts as they can be stored: what goes beyond the limit stands in the part's blob.
fn bounded(parts: &[ResultPart]) -> Vec<ResultPart> {
  let mut room = RESULT_TEXT_BYTES_MAX;
  let mut fits = |part: &ResultPart| {
    let (text, _) = text::bounded(&part.text, room);
    room -= text.len();
    ResultPart { text, ..part.clone() }
  };
  parts.iter().take(RESULT_PARTS_MAX).map(&mut fits).collect()
}
