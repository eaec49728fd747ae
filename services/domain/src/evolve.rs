//! `evolve`: folds one event into the state. No rules here, exhaustive.

use crate::event::Event;
use crate::meta::Meta;
use crate::state::State;

/// The state after `event`; `meta` is the event's.
pub fn evolve(state: State, _meta: &Meta, _event: &Event) -> State {
  state
}
