//! `evolve`: folds one event into the state. No rules here, exhaustive.

use crate::event::Event;
use crate::meta::Meta;
use crate::state::State;
use crate::{account, agent, call, conversation, execution, log, settings, task, timer};

/// The state after `event`; `meta` is the event's, and `state.thing` the one that [`Event::thing`] names, if it names one.
pub fn evolve(mut state: State, meta: &Meta, event: &Event) -> State {
  log::drain(&mut state.root, meta);
  match event {
    Event::Account(event) => account::evolve(&mut state.root, event),
    Event::Agent(event) => agent::evolve(&mut state.root, event),
    Event::Settings(event) => settings::evolve(&mut state.root, event),
    Event::Log(event) => log::evolve(&mut state.root, meta, event),
    Event::Timer(event) => timer::evolve(&mut state.root, event),
    Event::Conversation(event) => conversation::evolve(&mut state, meta, event),
    Event::Execution(event) => execution::evolve(&mut state.thing, meta, event),
    Event::Call(event) => call::evolve(&mut state.thing, meta, event),
    Event::Task(event) => task::evolve(&mut state, meta, event),
  }
  state
}
