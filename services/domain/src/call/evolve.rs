//! What is remembered of calls.

use super::{Call, CallStarted, CallStatus, Event, Outcome};
use crate::execution::Work;
use crate::ids::CallId;
use crate::state::Thing;

pub(crate) fn evolve(thing: &mut Thing, event: &Event) {
  let Some(reply) = thing.reply_mut() else { return };
  let work = &mut reply.work;
  match event {
    Event::CallStarted(started) => start(work, started),
    Event::CallSkipped(skipped) => {
      let call =
        || Call { step: skipped.step, index: skipped.index, tool: skipped.tool.clone(), class: None, started_by: Vec::new(), status: CallStatus::Skipped };
      work.calls.entry(skipped.call).or_insert_with(call).status = CallStatus::Skipped;
    }
    Event::CallReturned(returned) => set(work, returned.call, CallStatus::Settled(Outcome::Returned)),
    Event::CallFailed(failed) => set(work, failed.call, CallStatus::Settled(Outcome::Failed)),
    Event::CallUnknown(unknown) => set(work, unknown.call, CallStatus::Settled(Outcome::Unknown)),
    Event::CallReconciled(reconciled) => {
      let status = if reconciled.by_owner { CallStatus::ReconciledByOwner } else { CallStatus::ReconciledByReport };
      set(work, reconciled.call, status);
    }
    Event::CallOutcomeNoted(noted) => set(work, noted.call, CallStatus::Noted),
  }
}

fn start(work: &mut Work, started: &CallStarted) {
  let CallStarted { step, index, class, .. } = *started;
  let tool = started.tool.clone();
  let call = || Call { step, index, tool, class: Some(class), started_by: Vec::new(), status: CallStatus::Started };
  let call = work.calls.entry(started.call).or_insert_with(call);
  call.started_by.push(started.execution);
}

fn set(work: &mut Work, call: CallId, status: CallStatus) {
  if let Some(call) = work.calls.get_mut(&call) {
    call.status = status;
  }
}
