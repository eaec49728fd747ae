//! Who gets an account.

use super::{AccountAddAsked, AccountAdded, Input};
use crate::codes::reason;
use crate::event::Event;
use crate::ids::{AgentId, INSTALLATION, derived};
use crate::limits::NAME_CHARS_MAX;
use crate::meta::Meta;
use crate::settle::refused;
use crate::text;

pub(crate) fn decide(meta: &Meta, input: &Input) -> Vec<Event> {
  match input {
    Input::AccountAddAsked(asked) => vec![add(meta, asked)],
  }
}

fn add(meta: &Meta, asked: &AccountAddAsked) -> Event {
  if meta.agent != INSTALLATION || !meta.origin.administers() {
    return refused(reason::NOT_ALLOWED);
  }
  match text::name(&asked.name, NAME_CHARS_MAX) {
    None => refused(reason::VALUE_INVALID),
    Some(name) => AccountAdded { account: AgentId(derived(meta.id, 0)), name, role: asked.role }.into(),
  }
}
