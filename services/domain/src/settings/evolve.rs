//! What the root remembers of settings: all of them.

use super::Event;
use crate::state::Root;

pub(crate) fn evolve(root: &mut Root, event: &Event) {
  match event {
    Event::SettingsChanged(changed) => root.settings = Some(changed.clone()),
  }
}
