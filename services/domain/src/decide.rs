//! `decide`: one input, one decision. Here only who decides; the rules stand in each context's own `decide`.

use crate::codes::reason;
use crate::event::{Event, Input};
use crate::ids::Timestamp;
use crate::meta::Meta;
use crate::state::{Life, Root, Thing};
use crate::{account, agent, call, conversation, execution, log, settings, settle, task, timer};

/// Decides on an input: 1 to 64 events, in order. `meta` is the input's, `at` the decision's instant. Pure; a refusal is `InputSettled` with a reason code.
pub fn decide(root: &Root, thing: &Thing, meta: &Meta, input: &Input, at: Timestamp) -> Vec<Event> {
  match input {
    Input::Account(input) => account::decide(meta, input),
    Input::Agent(input) => agent::decide(root, meta, input),
    Input::Log(input) => log::decide(root, meta, input),
    Input::Settings(_) | Input::Conversation(_) | Input::Execution(_) | Input::Call(_) | Input::Task(_) | Input::Timer(_) if root.life != Life::Alive => {
      vec![settle::without_effect(input, reason::NOT_FOUND)]
    }
    Input::Settings(input) => settings::decide(root, meta, input),
    Input::Conversation(input) => conversation::decide(root, thing, meta, input),
    Input::Execution(input) => execution::decide(root, thing, meta, input, at),
    Input::Call(input) => call::decide(root, thing, meta, input, at),
    Input::Task(input) => task::decide(root, thing, meta, input, at),
    Input::Timer(input) => timer::decide(root, thing, meta, input),
  }
}
