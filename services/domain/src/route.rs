//! The only wiring between things: what follows elsewhere from an event, as an input of its own.

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
pub fn route(_meta: &Meta, _event: &Event) -> Option<Routed> {
  None
}
