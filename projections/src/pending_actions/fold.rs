//! From a fact to changes of actions. Pure.

use pa_domain::call::{self, CallHeld, CallStarted, Class, GateKind};
use pa_domain::{CallId, Event, JobId, Meta, Timestamp, task};
use uuid::Uuid;

use super::{Kind, State};
use crate::code::Code as _;

/// A change of an action's row.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
  /// A row appears; an effect that is there already begins again.
  Put(Box<ActionRow>),
  Patched(Patch),
}

/// A whole row.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionRow {
  pub id: Uuid,
  pub kind: Kind,
  pub job: JobId,
  pub call: CallId,
  pub card: Option<Uuid>,
  pub tool: String,
  pub gate: Option<GateKind>,
  pub target: String,
  pub scope: Option<String>,
  pub valid_until: Option<Timestamp>,
  pub action: String,
  pub state: State,
  pub reason: String,
  pub place: i64,
  pub changed: i64,
  pub created: Timestamp,
  pub settled: Option<Timestamp>,
}

/// What changes in a row that stands already.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
  pub id: Uuid,
  pub changed: i64,
  pub state: State,
  pub reason: String,
  pub settled: Option<Timestamp>,
}

/// What a fact changes here. For a call that is not external there is no row to change.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<Change> {
  match event {
    Event::Call(event) => of_call(meta, event),
    Event::Task(event) => of_task(meta, event),
    Event::Account(_) | Event::Agent(_) | Event::Conversation(_) | Event::Execution(_) | Event::Log(_) | Event::Settings(_) | Event::Timer(_) => None,
  }
}

fn of_call(meta: &Meta, event: &call::Event) -> Option<Change> {
  use call::Event as E;
  Some(match event {
    E::CallHeld(held) => Change::Put(Box::new(card(meta, held))),
    E::CallStarted(started) if started.class == Class::External => Change::Put(Box::new(effect(meta, started))),
    E::CallReturned(event) => settled(meta, event.call.0, State::Settled, "EXECUTED"),
    E::CallFailed(event) => settled(meta, event.call.0, State::Settled, &event.code),
    E::CallUnknown(event) => Change::Patched(Patch { id: event.call.0, changed: meta.ordinal, state: State::Unknown, reason: String::new(), settled: None }),
    E::CallReconciled(event) => settled(meta, event.call.0, State::Reconciled, if event.executed { "EXECUTED" } else { "NOT_EXECUTED" }),
    // A card's end is told by the task; a late report changes nothing that the owner decided.
    E::CallStarted(_) | E::CallSkipped(_) | E::CallOutcomeNoted(_) => return None,
  })
}

fn of_task(meta: &Meta, event: &task::Event) -> Option<Change> {
  use task::Event as E;
  Some(match event {
    E::ActionApproved(event) => settled(meta, event.card.0, if event.scope.is_some() { State::Allowed } else { State::Approved }, ""),
    E::ActionRejected(event) => settled(meta, event.card.0, State::Rejected, ""),
    E::ActionWithdrawn(event) => settled(meta, event.card.0, State::Withdrawn, event.reason.code()),
    E::TaskOrdered(_)
    | E::TaskLookedUp(_)
    | E::TaskStarted(_)
    | E::TaskInstructed(_)
    | E::TaskQueued(_)
    | E::TaskRunRequested(_)
    | E::TaskWaiting(_)
    | E::TaskPaused(_)
    | E::TaskResumed(_)
    | E::TaskStopped(_)
    | E::TaskCompleted(_)
    | E::TaskFailed(_)
    | E::OrderRefused(_)
    | E::OrderRepeated(_)
    | E::CheckpointRecorded(_)
    | E::OutputDelivered(_) => return None,
  })
}

fn settled(meta: &Meta, id: Uuid, state: State, reason: &str) -> Change {
  Change::Patched(Patch { id, changed: meta.ordinal, state, reason: reason.to_owned(), settled: Some(meta.at) })
}

fn card(meta: &Meta, held: &CallHeld) -> ActionRow {
  ActionRow {
    id: held.card.0,
    kind: Kind::Card,
    job: held.job,
    call: held.call,
    card: None,
    tool: held.tool.clone(),
    gate: Some(held.gate.kind),
    target: held.gate.target.clone(),
    scope: held.gate.scope.clone(),
    valid_until: held.gate.valid_until_ms,
    action: held.action.clone(),
    state: State::Pending,
    reason: String::new(),
    place: meta.ordinal,
    changed: meta.ordinal,
    created: meta.at,
    settled: None,
  }
}

fn effect(meta: &Meta, started: &CallStarted) -> ActionRow {
  ActionRow {
    id: started.call.0,
    kind: Kind::Effect,
    job: started.job,
    call: started.call,
    card: started.card.map(|card| card.0),
    tool: started.tool.clone(),
    gate: None,
    target: String::new(),
    scope: None,
    valid_until: None,
    action: started.action.clone(),
    state: State::Started,
    reason: String::new(),
    place: meta.ordinal,
    changed: meta.ordinal,
    created: meta.at,
    settled: None,
  }
}
