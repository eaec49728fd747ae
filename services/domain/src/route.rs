//! The only wiring between things: what follows elsewhere from an event, as an input of its own.

use crate::account;
use crate::agent::AgentCreateAsked;
use crate::event::{Event, Input};
use crate::ids::AgentId;
use crate::meta::Meta;

/// An input that an event leads to. The decider process appends it after read-back with producer `decider` and the event's id as key, so that a repetition after a crash is a repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed {
  pub agent: AgentId,
  pub input: Input,
}

/// What follows from `event` for another thing or agent.
pub fn route(_meta: &Meta, event: &Event) -> Option<Routed> {
  match event {
    Event::Account(account::Event::AccountAdded(added)) => {
      Some(Routed { agent: added.account, input: AgentCreateAsked { owner_name: added.name.clone() }.into() })
    }
    Event::Agent(_) | Event::Settings(_) | Event::Log(_) | Event::Timer(_) | Event::Conversation(_) | Event::Execution(_) | Event::Call(_) => None,
  }
}
