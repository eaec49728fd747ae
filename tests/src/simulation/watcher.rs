//! Readers: what each of them was shown, at any time, must be the beginning of what stands in the end.
//!
//! A watcher looks at one agent's conversation again and again, at whatever the read model shows now, and notes each look that showed more than the one before. Where
//! the read model stands never goes back, and a message that its sender was told of is there once the read model has reached it.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::AgentId;
use pa_projections::commit::MemoryStore;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;
use uuid::Uuid;

use super::world::World;

/// What one look at an agent showed.
#[derive(Clone, Debug)]
pub(super) struct Look {
  pub(super) agent: AgentId,
  /// How far the read model was.
  pub(super) upto: i64,
  /// Place and id of every entry, in order.
  pub(super) entries: Vec<(i64, Uuid)>,
}

impl Look {
  pub(super) fn at(store: &MemoryStore, agent: AgentId) -> Self {
    let mut entries: Vec<(i64, Uuid)> = store.all_entries(agent).into_iter().filter(|row| row.shown).map(|row| (row.place, row.id)).collect();
    entries.sort_unstable();
    Self { agent, upto: store.progress(agent), entries }
  }

  /// Whether it shows exactly the beginning of another, later look.
  pub(super) fn begins(&self, end: &Self) -> bool {
    let upto = end.entries.partition_point(|(place, _)| *place <= self.upto);
    self.entries == end.entries[..upto]
  }
}

/// Watches one agent for as long as the simulation runs.
pub(super) async fn watch(world: Arc<World>, agent: AgentId, seed: u64) {
  let mut random = StdRng::seed_from_u64(seed);
  let mut last: Option<(Arc<MemoryStore>, i64)> = None;
  loop {
    sleep(Duration::from_millis(random.random_range(50..1_500))).await;
    let store = world.shared.model.store();
    let look = Look::at(&store, agent);
    // Another schema is another reader's beginning.
    let before = last.as_ref().filter(|(before, _)| Arc::ptr_eq(before, &store)).map_or(0, |(_, upto)| *upto);
    if look.upto < before {
      world.record.problem(format!("{agent} was shown up to {before}, and then up to {}", look.upto));
    }
    for (ordinal, message) in world.record.visible(agent) {
      if ordinal <= look.upto && !look.entries.iter().any(|(_, id)| *id == message) {
        world.record.problem(format!("message {message} of {agent} is not shown at {}, though it was admitted at {ordinal}", look.upto));
      }
    }
    if look.upto > before {
      last = Some((store, look.upto));
      world.record.look(look);
    }
  }
}
