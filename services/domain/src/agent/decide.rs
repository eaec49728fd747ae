//! How an agent's life begins and ends.

use super::{AgentCreateAsked, AgentCreated, AgentEraseAsked, AgentErased, Input};
use crate::codes::reason;
use crate::conversation::{ConversationKind, ConversationOpened};
use crate::event::Event;
use crate::ids::{ConversationId, INSTALLATION, derived};
use crate::limits::{DECISION_EVENTS_MAX, NAME_CHARS_MAX};
use crate::meta::Meta;
use crate::settings;
use crate::settle::{no_change, refused};
use crate::state::{Life, Root};
use crate::text;
use crate::timer::TimerCancelled;

pub(crate) fn decide(root: &Root, meta: &Meta, input: &Input) -> Vec<Event> {
  match input {
    Input::AgentCreateAsked(asked) => create(root, meta, asked),
    Input::AgentEraseAsked(asked) => erase(root, meta, asked),
  }
}

fn create(root: &Root, meta: &Meta, asked: &AgentCreateAsked) -> Vec<Event> {
  if meta.agent == INSTALLATION || !meta.origin.administers() {
    return vec![refused(reason::NOT_ALLOWED)];
  }
  match root.life {
    Life::Absent => vec![
      AgentCreated { owner_name: text::first_chars(&asked.owner_name, NAME_CHARS_MAX) }.into(),
      ConversationOpened { conversation: ConversationId(derived(meta.id, 1)), kind: ConversationKind::Main, title: String::new(), connection: String::new() }
        .into(),
      settings::at_start().into(),
    ],
    Life::Alive => vec![no_change(reason::ALREADY_DONE)],
    Life::Erased => vec![refused(reason::NOT_ALLOWED)],
  }
}

/// The erasure stands last in its decision: readers skip everything behind it. Timers that find no room before it end with it all the same.
fn erase(root: &Root, meta: &Meta, asked: &AgentEraseAsked) -> Vec<Event> {
  if root.life != Life::Alive {
    return vec![refused(reason::NOT_FOUND)];
  }
  if !meta.origin.administers() {
    return vec![refused(reason::NOT_ALLOWED)];
  }
  if asked.confirmation.trim() != root.owner_name.trim() {
    return vec![refused(reason::VALUE_INVALID)];
  }
  let cancelled = root.timers.keys().take(DECISION_EVENTS_MAX - 1).map(|&timer| TimerCancelled { timer }.into());
  cancelled.chain([AgentErased {}.into()]).collect()
}
