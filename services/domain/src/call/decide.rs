//! What is decided on asks and reports about calls.

use super::{Input, ask, outcome};
use crate::event::Event;
use crate::ids::Timestamp;
use crate::meta::Meta;
use crate::state::{Root, Thing};
use crate::task;

pub(crate) fn decide(root: &Root, thing: &Thing, meta: &Meta, input: &Input, at: Timestamp) -> Vec<Event> {
  match input {
    Input::CallAsked(asked) => match thing {
      Thing::Task(task) => task::ask(root, task, meta, asked, at),
      Thing::Reply(_) | Thing::Absent => ask::ask(thing, asked, at),
    },
    Input::CallOutcomeReported(reported) => outcome::report(root, thing, meta, reported),
    Input::CallReconcileGiven(given) => outcome::reconcile(root, thing, meta, given),
  }
}
