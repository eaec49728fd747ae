//! How the decider sets inputs aside, and in which order they come back.
//!
//! The decider notices what the rules can't: that they panic, that bytes can't be opened. So it calls these instead of [`crate::decide`].

use super::{HeldAt, HeldInput, InputHeld, InputQuarantined};
use crate::codes::{notice, reason};
use crate::conversation;
use crate::event::{Event, Input};
use crate::limits::{CODE_CHARS_MAX, HELD_INPUTS_MAX, QUARANTINE_DETAIL_CHARS_MAX};
use crate::meta::Meta;
use crate::settle::refused;
use crate::state::{Life, Root};
use crate::text;
use crate::{agent, log};

/// Whether inputs of this agent are set aside: until the list is empty, all but the exempt ones are.
pub fn is_holding(root: &Root) -> bool {
  !root.quarantine.held.is_empty()
}

/// Whether the input is decided at once even so: a release and an erasure.
pub fn exempt(input: &Input) -> bool {
  match input {
    Input::Agent(agent::Input::AgentEraseAsked(_)) | Input::Log(log::Input::QuarantineReleaseAsked(_)) => true,
    Input::Agent(agent::Input::AgentCreateAsked(_))
    | Input::Account(_)
    | Input::Settings(_)
    | Input::Conversation(_)
    | Input::Execution(_)
    | Input::Call(_)
    | Input::Task(_)
    | Input::Timer(_) => false,
  }
}

/// The held input to decide next, before any new one of the agent, once a release was decided.
pub fn next_to_drain(root: &Root) -> Option<HeldAt> {
  root.quarantine.held.first().filter(|_| root.quarantine.draining).copied()
}

/// The decision on an input that can't be decided: it becomes the first held one.
pub fn quarantined(held: HeldInput, reason: &str, detail: &str) -> Vec<Event> {
  let reason = text::first_chars(reason, CODE_CHARS_MAX);
  vec![InputQuarantined { reason, detail: text::first_chars(detail, QUARANTINE_DETAIL_CHARS_MAX), held }.into()]
}

/// The decision that holds an input.
pub fn held(held: HeldInput) -> Vec<Event> {
  vec![InputHeld { held }.into()]
}

/// The decision on an input that arrives while others are held. `input` is `None` when it can't be read.
///
/// The list has a limit for what can be told so: commands are refused and channel messages admitted as failed. Other reports are held always, since they can't come again.
pub fn set_aside(root: &Root, meta: &Meta, input: Option<&Input>, bytes: HeldInput) -> Vec<Event> {
  match input {
    Some(input) if root.quarantine.held.len() >= HELD_INPUTS_MAX => beyond_the_limit(root, meta, input, bytes),
    Some(_) | None => held(bytes),
  }
}

fn beyond_the_limit(root: &Root, meta: &Meta, input: &Input, bytes: HeldInput) -> Vec<Event> {
  match input {
    Input::Conversation(conversation::Input::MessageReceived(received)) if root.life == Life::Alive => {
      conversation::admitted_as_failed(root, meta, received, notice::QUEUE_FULL, HELD_INPUTS_MAX)
    }
    Input::Account(_)
    | Input::Agent(_)
    | Input::Log(_)
    | Input::Settings(_)
    | Input::Conversation(_)
    | Input::Execution(_)
    | Input::Call(_)
    | Input::Task(_)
    | Input::Timer(_) => {
      if input.is_command() {
        vec![refused(reason::QUEUE_FULL)]
      } else {
        held(bytes)
      }
    }
  }
}
