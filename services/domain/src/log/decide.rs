//! When held inputs are decided again.

use super::{Input, QuarantineReleaseAsked, QuarantineReleased};
use crate::codes::reason;
use crate::event::Event;
use crate::meta::Meta;
use crate::settle::{no_change, refused};
use crate::state::Root;

pub(crate) fn decide(root: &Root, meta: &Meta, input: &Input) -> Vec<Event> {
  match input {
    Input::QuarantineReleaseAsked(asked) => vec![release(root, meta, *asked)],
  }
}

fn release(root: &Root, meta: &Meta, asked: QuarantineReleaseAsked) -> Event {
  if !meta.origin.administers() {
    refused(reason::NOT_ALLOWED)
  } else if root.quarantine.held.is_empty() {
    refused(reason::NO_QUARANTINE)
  } else if root.quarantine.draining {
    no_change(reason::ALREADY_DONE)
  } else {
    QuarantineReleased { drop_first: asked.drop_first }.into()
  }
}
