//! What follows when a timer elapses.

use super::{Input, Purpose, TimerElapsed, TimerFired};
use crate::codes::reason;
use crate::event::Event;
use crate::execution;
use crate::ids::JobId;
use crate::meta::Meta;
use crate::settle::no_change;
use crate::state::{Root, Thing};

pub(crate) fn decide(root: &Root, thing: &Thing, meta: &Meta, input: &Input) -> Vec<Event> {
  match input {
    Input::TimerFired(fired) => elapse(root, thing, meta, fired),
  }
}

/// When it is due is the scheduler's to say: a clock that is read here again could only disagree.
fn elapse(root: &Root, thing: &Thing, meta: &Meta, fired: &TimerFired) -> Vec<Event> {
  let Some(set) = root.timers.get(&fired.timer) else { return vec![no_change(reason::NOT_SET)] };
  if set.thing != fired.thing {
    return vec![no_change(reason::WRONG_THING)];
  }
  match (set.purpose, set.thing) {
    (Purpose::AttemptLimit, Some(job)) => execution::limit_reached(root, thing, meta, JobId(job.0), set.timer),
    (Purpose::AttemptLimit, None) => vec![TimerElapsed { timer: set.timer }.into()],
  }
}
