//! What is remembered of calls.

use super::{Call, CallHeld, CallStarted, CallStatus, Card, Event, Outcome};
use crate::execution::Work;
use crate::ids::CallId;
use crate::meta::Meta;
use crate::state::Thing;

pub(crate) fn evolve(thing: &mut Thing, meta: &Meta, event: &Event) {
  if let (Some(reply), Event::CallReturned(returned)) = (thing.reply_mut(), event) {
    reply.has_read(returned.call, meta.ordinal);
  }
  let Some(work) = thing.work_mut() else { return };
  match event {
    Event::CallStarted(started) => start(work, meta, started),
    Event::CallHeld(held) => hold(work, held),
    Event::CallSkipped(skipped) => {
      let call = work.calls.entry(skipped.call).or_insert_with(|| unknown((skipped.step, skipped.index), &skipped.tool));
      call.status = CallStatus::Skipped;
      call.card = None;
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

fn start(work: &mut Work, meta: &Meta, started: &CallStarted) {
  let call = work.calls.entry(started.call).or_insert_with(|| unknown((started.step, started.index), &started.tool));
  call.class = Some(started.class);
  call.status = CallStatus::Started;
  call.started_by.push(started.execution);
  call.begun = meta.ordinal;
  call.card = None;
}

fn hold(work: &mut Work, held: &CallHeld) {
  let card = Card { id: held.card, gate: held.gate.clone(), action: held.action.clone() };
  let call = Call { class: Some(held.class), card: Some(Box::new(card)), status: CallStatus::Held, ..unknown((held.step, held.index), &held.tool) };
  work.calls.insert(held.call, call);
}

/// A call of which nothing is known but that it is not to begin.
fn unknown(at: (i32, i32), tool: &str) -> Call {
  let (step, index) = at;
  Call { step, index, tool: tool.to_owned(), class: None, started_by: Vec::new(), begun: 0, card: None, status: CallStatus::Skipped }
}

fn set(work: &mut Work, call: CallId, status: CallStatus) {
  if let Some(call) = work.calls.get_mut(&call) {
    call.status = status;
  }
}
