//! What the installation's root remembers of accounts.

use super::Event;
use crate::state::Root;

pub(crate) fn evolve(root: &mut Root, event: &Event) {
  match event {
    Event::AccountAdded(_) => root.accounts += 1,
  }
}
