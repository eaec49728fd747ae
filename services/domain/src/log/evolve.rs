//! How the list of held inputs grows and drains.

use super::{Event, HeldAt, HeldInput};
use crate::meta::Meta;
use crate::state::Root;

/// Takes an input off the list when its decision, marked `held`, begins. Only the first of its position: where an input log was cut, a position comes again.
pub(crate) fn drain(root: &mut Root, meta: &Meta) {
  if !meta.held || meta.part != 1 {
    return;
  }
  let quarantine = &mut root.quarantine;
  if let Some(index) = quarantine.held.iter().position(|held| held.input == meta.input) {
    quarantine.held.remove(index);
  }
  quarantine.draining &= !quarantine.held.is_empty();
}

pub(crate) fn evolve(root: &mut Root, meta: &Meta, event: &Event) {
  let quarantine = &mut root.quarantine;
  match event {
    Event::EpochAnnounced(_) | Event::InputSettled(_) => {}
    Event::InputQuarantined(quarantined) => {
      quarantine.held.insert(0, at(meta, &quarantined.held));
      quarantine.draining = false;
    }
    Event::InputHeld(held) => quarantine.held.push(at(meta, &held.held)),
    Event::QuarantineReleased(released) => {
      if released.drop_first && !quarantine.held.is_empty() {
        quarantine.held.remove(0);
      }
      quarantine.draining = !quarantine.held.is_empty();
    }
  }
}

fn at(meta: &Meta, held: &HeldInput) -> HeldAt {
  HeldAt { input: held.position, ordinal: meta.ordinal }
}
