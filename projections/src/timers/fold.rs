//! From a fact to changes of timers. Pure.

use pa_domain::timer::{self, Purpose};
use pa_domain::{Event, Meta, ThingId, TimerId, Timestamp};

/// A change of a timer's row.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
  Set(TimerRow),
  Gone(TimerId),
}

/// A timer that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerRow {
  pub id: TimerId,
  pub purpose: Purpose,
  pub due: Timestamp,
  pub thing: Option<ThingId>,
  pub changed: i64,
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<Change> {
  match event {
    Event::Timer(timer::Event::TimerSet(set)) => {
      Some(Change::Set(TimerRow { id: set.timer, purpose: set.purpose, due: set.due_ms, thing: set.thing, changed: meta.ordinal }))
    }
    Event::Timer(timer::Event::TimerCancelled(cancelled)) => Some(Change::Gone(cancelled.timer)),
    Event::Timer(timer::Event::TimerElapsed(elapsed)) => Some(Change::Gone(elapsed.timer)),
    Event::Account(_)
    | Event::Agent(_)
    | Event::Call(_)
    | Event::Conversation(_)
    | Event::Execution(_)
    | Event::Log(_)
    | Event::Settings(_)
    | Event::Task(_) => None,
  }
}
