//! What is decided on asks and reports about calls.

use super::{Input, ask, outcome};
use crate::event::Event;
use crate::ids::Timestamp;
use crate::meta::Meta;
use crate::state::Thing;

pub(crate) fn decide(thing: &Thing, meta: &Meta, input: &Input, at: Timestamp) -> Vec<Event> {
  match input {
    Input::CallAsked(asked) => vec![ask::ask(thing, asked, at)],
    Input::CallOutcomeReported(reported) => outcome::report(thing, meta, reported),
    Input::CallReconcileGiven(given) => vec![outcome::reconcile(thing, meta, given)],
  }
}
