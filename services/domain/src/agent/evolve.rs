//! What the root remembers of the agent's life.

use super::Event;
use crate::state::{Life, Root};

pub(crate) fn evolve(root: &mut Root, event: &Event) {
  match event {
    Event::AgentCreated(created) => {
      root.life = Life::Alive;
      root.owner_name.clone_from(&created.owner_name);
    }
    Event::AgentErased(_) => *root = Root { life: Life::Erased, ..Root::default() },
  }
}
