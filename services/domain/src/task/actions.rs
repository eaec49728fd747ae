//! Cards: an external call is held until the owner decides about exactly that action (D11, D12, D34).
//!
//! An approval stays on its call and is used up by the next ask of the same canonical action; other content opens a new card. What the owner rejected is not asked
//! for again until their next instruction. Only the owner's decision on a card approves; no text does.

use super::orders::Orders;
use super::run::{returned, suspended, waits};
use super::{ActionApproved, ActionDecisionGiven, ActionRejected, ActionWithdrawn, Decision, Status, Task, WaitReason, WithdrawReason};
use crate::call::{self, Answer, Call, CallAsked, CallHeld, CallSkipped, CallStatus, Card, Class, Gate, GateKind, SkipReason, Standing};
use crate::canonical;
use crate::codes::reason;
use crate::conversation::Author;
use crate::event::Event;
use crate::ids::{ActionId, CallId, RecordId, TaskId, Timestamp, derived, named};
use crate::limits::{CARDS_MAX, KEY_CHARS_MAX, TARGET_BYTES_MAX};
use crate::meta::{Meta, Origin};
use crate::settle::refused;
use crate::state::{Root, Thing};
use crate::text;

/// What a task may use that someone else than the owner caused: the web, and what is its own (D35).
pub const TOOLS_OF_A_PERSON: [&str; 4] = ["pa_web_search", "pa_web_fetch", "pa_checkpoint", "pa_history"];

/// Decides on the ask of a task's call.
pub(crate) fn ask(root: &Root, task: &Task, meta: &Meta, asked: &CallAsked, at: Timestamp) -> Vec<Event> {
  let is_external = asked.class == Class::External;
  let standing = Standing { over: over(task.status), halted: task.halted, may_be_held: is_external };
  match call::answer(&task.work, &standing, asked) {
    Answer::Refuse(reason) if reason == reason::CALL_HELD => held_already(root, task, asked),
    Answer::Refuse(reason) => vec![refused(reason)],
    Answer::Skip(reason) => skipped(root, meta, task, (asked, reason)),
    Answer::Start if is_barred(task, &asked.tool) => skipped(root, meta, task, (asked, SkipReason::Rejected)),
    Answer::Start if is_external => gated(root, task, meta, asked, at),
    Answer::Start => vec![call::started(asked, None, at)],
  }
}

/// Tools that no ask of this task can have.
fn is_barred(task: &Task, tool: &str) -> bool {
  Orders::of(tool).is_some() || (task.author != Author::Owner && !TOOLS_OF_A_PERSON.contains(&tool))
}

/// What an ask leads to when the task isn't at work. While it waits, the execution that asks is over.
fn over(status: Status) -> Option<SkipReason> {
  match status {
    Status::Active | Status::Waiting(_) => None,
    Status::Paused(_) => Some(SkipReason::Paused),
    Status::Stopped => Some(SkipReason::Stopped),
    Status::Completed | Status::Failed => Some(SkipReason::Lost),
  }
}

/// The call will not begin; if it was the last that ran, what follows for the task follows now.
fn skipped(root: &Root, meta: &Meta, task: &Task, what: (&CallAsked, SkipReason)) -> Vec<Event> {
  let (asked, reason) = what;
  let mut events = vec![call::skipped(asked, reason)];
  if task.work.calls.get(&asked.call).is_some_and(|known| known.status == CallStatus::Started) {
    let follows = super::after_call(root, meta, (asked.job.into(), task), &events, (asked.call, super::run::Left::Settled));
    events.extend(follows);
  }
  events
}

/// The card is open: the execution has nothing more to do, unless another of its calls runs.
fn held_already(root: &Root, task: &Task, asked: &CallAsked) -> Vec<Event> {
  let id = asked.job.into();
  let over = suspended(task, id, None);
  match task.blocked(None, &[]) {
    Some(reason) if task.status == Status::Active && !over.is_empty() => over.into_iter().chain(waits(root, id, reason)).collect(),
    Some(_) | None => vec![refused(reason::CALL_HELD)],
  }
}

/// An external call: it starts by an approval of exactly this action or within an allowed scope; else it is held.
fn gated(root: &Root, task: &Task, meta: &Meta, asked: &CallAsked, at: Timestamp) -> Vec<Event> {
  let id = TaskId::from(asked.job);
  let Some(gate) = asked.gate.as_ref().and_then(usable).filter(|_| canonical::is_canonical(&asked.action)) else {
    return vec![refused(reason::VALUE_INVALID)];
  };
  let card = task.work.calls.get(&asked.call).and_then(|known| known.card.as_deref());
  let withdraw = |reason| card.map(|card| ActionWithdrawn { task: id, card: card.id, call: asked.call, reason }.into());
  if gate.valid_until_ms.is_some_and(|until| until < at) {
    return withdraw(WithdrawReason::Expired).into_iter().chain([call::skipped(asked, SkipReason::Expired)]).collect();
  }
  let approved = card.filter(|card| card.action == asked.action && card.gate.target == gate.target).map(|card| card.id);
  let allowed = gate.scope.as_ref().and_then(|scope| task.allowed.get(scope)).copied();
  if let Some(card) = approved.or(allowed) {
    return vec![if call::may_begin(&task.work, asked) { call::started(asked, Some(card), at) } else { refused(reason::CALL_OUT_OF_ORDER) }];
  }
  if remembered(id, &asked.tool, &gate, &asked.action).is_some_and(|remembered| task.rejected.contains(&remembered)) {
    return withdraw(WithdrawReason::Changed).into_iter().chain([call::skipped(asked, SkipReason::Rejected)]).collect();
  }
  if task.carded().len() >= CARDS_MAX && card.is_none() {
    return vec![refused(reason::CALL_OUT_OF_ORDER)];
  }
  let mut events: Vec<Event> = withdraw(WithdrawReason::Changed).into_iter().collect();
  let new = ActionId(derived(meta.id, u32::try_from(events.len()).expect("a decision has at most 64 events")));
  events.push(held(asked, new, gate).into());
  events.extend(waits_for_the_card(root, task, asked));
  events
}

/// The execution ends with the card when nothing else of it runs and no approved call stands before this one.
fn waits_for_the_card(root: &Root, task: &Task, asked: &CallAsked) -> Vec<Event> {
  let id = asked.job.into();
  let first = task.carded().into_iter().find(|(call, _)| *call != asked.call);
  let may_go_on = first.is_some_and(|(_, known)| known.status == CallStatus::Approved && (known.step, known.index) < (asked.step, asked.index));
  let over = if may_go_on { Vec::new() } else { suspended(task, id, None) };
  if over.is_empty() { over } else { over.into_iter().chain(waits(root, id, WaitReason::Approval)).collect() }
}

fn held(asked: &CallAsked, card: ActionId, gate: Gate) -> CallHeld {
  CallHeld {
    job: asked.job,
    execution: asked.execution,
    step: asked.step,
    index: asked.index,
    call: asked.call,
    card,
    tool: text::clean(&asked.tool),
    class: asked.class,
    gate,
    action: text::clean(&asked.action),
    limit_millis: call::limit(asked),
  }
}

/// What is said about an outside effect, if it can stand on a card. Email is never allowed for a whole task (D11).
fn usable(gate: &Gate) -> Option<Gate> {
  let target = text::clean(&gate.target);
  if target.trim().is_empty() || target.len() > TARGET_BYTES_MAX {
    return None;
  }
  let scope = gate.scope.as_deref().map(|scope| text::first_chars(scope, KEY_CHARS_MAX)).filter(|scope| !scope.trim().is_empty());
  let scope = match gate.kind {
    GateKind::Email => None,
    GateKind::Computer | GateKind::Session => scope,
  };
  Some(Gate { kind: gate.kind, target, scope, valid_until_ms: gate.valid_until_ms })
}

/// The id of what a rejection is remembered by: for email the target alone, else tool, target and action without what changes with every try (D34).
fn remembered(task: TaskId, tool: &str, gate: &Gate, action: &str) -> Option<RecordId> {
  let action = match gate.kind {
    GateKind::Email => String::new(),
    GateKind::Computer | GateKind::Session => canonical::without_volatile(action)?,
  };
  let target = canonical::folded(&gate.target);
  Some(RecordId(named(task.0, &format!("rejected/{}:{tool}{}:{target}{action}", tool.len(), target.len()))))
}

/// Decides on the owner's word about a card.
pub(super) fn decide(root: &Root, thing: &Thing, meta: &Meta, given: &ActionDecisionGiven, at: Timestamp) -> Vec<Event> {
  if meta.origin != Origin::Owner {
    return vec![refused(reason::NOT_ALLOWED)];
  }
  let Some(task) = thing.task() else { return vec![refused(reason::NOT_FOUND)] };
  let open = task.carded().into_iter().find_map(|(call, known)| {
    let card = known.card.as_deref().filter(|card| card.id == given.card && known.status == CallStatus::Held)?;
    Some((call, known, card))
  });
  // Decided before, in another tab, or withdrawn.
  let Some((call, known, card)) = open else { return vec![refused(reason::STATE_CHANGED)] };
  let id = given.task;
  let is_expired = given.decision != Decision::Reject && card.gate.valid_until_ms.is_some_and(|until| until < at);
  if is_expired {
    let events = [ActionWithdrawn { task: id, card: card.id, call, reason: WithdrawReason::Expired }.into(), skip(id, (call, known), SkipReason::Expired)];
    return goes_on((root, meta), (id, task), events.to_vec(), (Some(call), &[]));
  }
  match given.decision {
    Decision::ApproveOnce => {
      let events = vec![ActionApproved { task: id, card: card.id, call, scope: None }.into()];
      goes_on((root, meta), (id, task), events, (None, &[call]))
    }
    Decision::AllowForTask => match &card.gate.scope {
      None => vec![refused(reason::NOT_ALLOWED)],
      Some(scope) => allow((root, meta), (id, task), call, scope),
    },
    Decision::Reject => {
      let remembered = remembered(id, &known.tool, &card.gate, &card.action).unwrap_or(RecordId(call.0));
      let events = vec![ActionRejected { task: id, card: card.id, call, remembered }.into(), skip(id, (call, known), SkipReason::Rejected)];
      goes_on((root, meta), (id, task), events, (Some(call), &[]))
    }
  }
}

/// Every open card of the scope is approved at once, the one that was decided on first.
fn allow(at: (&Root, &Meta), of: (TaskId, &Task), chosen: CallId, scope: &str) -> Vec<Event> {
  let (id, task) = of;
  let is_of_scope = |known: &Call| known.status == CallStatus::Held && known.card.as_ref().is_some_and(|card| card.gate.scope.as_deref() == Some(scope));
  let others = task.carded().into_iter().filter(|(call, known)| *call != chosen && is_of_scope(known)).map(|(call, _)| call);
  let calls: Vec<CallId> = [chosen].into_iter().chain(others).collect();
  let approve = |call: &CallId| {
    let card: &Card = task.work.calls.get(call)?.card.as_deref()?;
    Some(ActionApproved { task: id, card: card.id, call: *call, scope: Some(scope.to_owned()) }.into())
  };
  let events = calls.iter().filter_map(approve).collect();
  goes_on(at, of, events, (None, &calls))
}

fn skip(task: TaskId, call: (CallId, &Call), reason: SkipReason) -> Event {
  let (call, known) = call;
  CallSkipped { job: task.into(), call, step: known.step, index: known.index, tool: known.tool.clone(), reason }.into()
}

/// A task that waits for approvals goes on once the first of its calls with a card is decided. A pause or an unknown effect is not overridden (SID-18).
fn goes_on(at: (&Root, &Meta), of: (TaskId, &Task), mut events: Vec<Event>, decided: (Option<CallId>, &[CallId])) -> Vec<Event> {
  let ((root, meta), (_, task)) = (at, of);
  if task.status == Status::Waiting(WaitReason::Approval) && task.blocked(decided.0, decided.1).is_none() {
    let follows = returned(root, meta, of, events.len());
    events.extend(follows);
  }
  events
}
