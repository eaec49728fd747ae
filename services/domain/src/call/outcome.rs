//! How a call is settled: by the report of its worker, by an observer, by a late report, or by the owner's word.

use super::{
  Call, CallFailed, CallOutcomeNoted, CallOutcomeReported, CallReconcileGiven, CallReconciled, CallReturned, CallStatus, CallUnknown, Class, Outcome,
  ResultPart,
};
use crate::codes::{notice, reason};
use crate::conversation::{NoticeParam, Reply, posted};
use crate::event::Event;
use crate::limits::{CODE_CHARS_MAX, RESULT_PARTS_MAX, RESULT_TEXT_BYTES_MAX};
use crate::meta::{Meta, Origin};
use crate::settle::{no_change, refused};
use crate::state::Thing;
use crate::text;

/// The one report that counts after its execution has ended: what became of a call that it had started.
pub(super) fn report(thing: &Thing, meta: &Meta, reported: &CallOutcomeReported) -> Vec<Event> {
  let Some((reply, call)) = thing.reply().and_then(|reply| Some((reply, reply.work.calls.get(&reported.call)?))) else {
    return vec![no_change(reason::NO_SUCH_CALL)];
  };
  if !call.started_by.contains(&reported.execution) {
    return vec![no_change(reason::STALE_EXECUTION)];
  }
  match (call.status, reported.outcome) {
    (CallStatus::Started, Outcome::Unknown) => unknown(reply, call, meta, reported),
    (CallStatus::Started, Outcome::Returned | Outcome::Failed) => vec![settled(reported)],
    (CallStatus::Settled(Outcome::Unknown), Outcome::Returned | Outcome::Failed) => vec![reconciled(reported)],
    (CallStatus::ReconciledByOwner, Outcome::Returned | Outcome::Failed) => vec![noted(reported)],
    (CallStatus::Settled(Outcome::Unknown) | CallStatus::ReconciledByOwner, Outcome::Unknown)
    | (
      CallStatus::Skipped | CallStatus::Settled(Outcome::Returned | Outcome::Failed) | CallStatus::ReconciledByReport | CallStatus::Noted,
      Outcome::Returned | Outcome::Failed | Outcome::Unknown,
    ) => vec![no_change(reason::CALL_SETTLED)],
  }
}

pub(super) fn reconcile(thing: &Thing, meta: &Meta, given: &CallReconcileGiven) -> Event {
  if meta.origin != Origin::Owner {
    return refused(reason::NOT_ALLOWED);
  }
  match thing.reply().and_then(|reply| reply.work.calls.get(&given.call)) {
    None => refused(reason::NOT_FOUND),
    Some(call) if call.class == Some(Class::External) && call.status == CallStatus::Settled(Outcome::Unknown) => {
      CallReconciled { job: given.job, call: given.call, executed: given.executed, by_owner: true, parts: Vec::new() }.into()
    }
    Some(_) => refused(reason::STATE_CHANGED),
  }
}

/// An external call that nobody knows the outcome of waits for the owner, so the conversation says so (RUN-18).
fn unknown(reply: &Reply, call: &Call, meta: &Meta, reported: &CallOutcomeReported) -> Vec<Event> {
  if call.started_by.last() != Some(&reported.execution) {
    return vec![no_change(reason::STALE_EXECUTION)];
  }
  let mut events = vec![CallUnknown { job: reported.job, execution: reported.execution, call: reported.call }.into()];
  if call.class == Some(Class::External) {
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
