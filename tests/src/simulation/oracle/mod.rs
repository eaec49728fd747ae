//! The oracle: what must be true of a world that has settled, whatever went wrong before.
//!
//! It reads the log with the product's own reader, from the beginning, and looks at what that accepts: [`log`] at its order, [`people`] at what was told, [`effects`]
//! at what happened outside, [`replies`] at turns and ends, [`lives`] at calls, timers and losses, [`kept`] at checkpoints and read models. A guard that is off is off here as well: what it lets through
//! must break one of these.

mod effects;
mod kept;
mod lives;
mod log;
mod people;
mod replies;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pa_eventlog::fence::FenceState;
use pa_eventlog::opener::Opener;
use pa_eventlog::reader::{Decision, Item, Reader};
use pa_eventlog::{Partition, Position, Stored, Stream};

use super::chaos::Kinds;
use super::gate::GatedLog;
use super::run::Stats;
use super::world::{PARTITIONS, Shared, World};

/// One partition as it stands in the end.
pub(super) struct Accepted {
  pub(super) partition: Partition,
  pub(super) inputs: BTreeMap<Position, Arc<Stored>>,
  pub(super) events: BTreeMap<Position, Arc<Stored>>,
  pub(super) items: Vec<Item>,
}

impl Accepted {
  /// Reads a partition from its beginning.
  pub(super) async fn read(shared: &Shared, partition: Partition) -> Result<Self, String> {
    let of = |stream| shared.log.records(stream, partition).into_iter().map(|stored| (stored.position, stored)).collect::<BTreeMap<_, _>>();
    let opener = Arc::new(Opener::new(Arc::new(shared.keys.clone()), shared.sealed));
    let mut reader = Reader::new(Arc::new(GatedLog::of_the_judge(shared)), opener, partition, FenceState::START);
    let mut items = Vec::new();
    loop {
      let some = reader.poll().await.map_err(|error| format!("partition {partition} can't be read: {error:?}"))?;
      if some.is_empty() {
        break;
      }
      items.extend(some);
    }
    Ok(Self { partition, inputs: of(Stream::Inputs), events: of(Stream::Events), items })
  }

  pub(super) fn decisions(&self) -> impl Iterator<Item = &Arc<Decision>> {
    self.items.iter().filter_map(|item| match item {
      Item::Decision(decision) => Some(decision),
      Item::Erased(_) | Item::Unreadable { .. } | Item::Announced(_) | Item::Void(_) => None,
    })
  }

  pub(super) fn voids(&self) -> usize {
    self.items.iter().filter(|item| matches!(item, Item::Void(_))).count()
  }
}

/// Reads every partition.
pub(super) async fn accepted(shared: &Shared) -> Result<Vec<Accepted>, String> {
  let mut all = Vec::new();
  for partition in 0..PARTITIONS {
    all.push(Accepted::read(shared, partition).await?);
  }
  Ok(all)
}

/// Judges the log, what is kept of it, and what was told, of a world in which work may be left.
pub(super) async fn judge_log(world: &World, kinds: Kinds) -> Result<(), String> {
  let all = accepted(&world.shared).await?;
  for partition in &all {
    log::check(partition, kinds)?;
    if !kinds.cuts && !kinds.restores {
      log::never_other_bytes(partition)?;
    }
    kept::checkpoint(partition, &world.shared)?;
  }
  chains(&all, &world.shared).await?;
  if kinds.cuts { Ok(()) } else { people::check(&all, world) }
}

/// Judges what people are shown.
pub(super) async fn judge_read_model(world: &World) -> Result<(), String> {
  kept::read_model(&accepted(&world.shared).await?, &world.shared).await
}

/// Judges a world that has settled.
pub(super) async fn judge(world: &World, kinds: Kinds) -> Result<Stats, String> {
  // Where a log loses what it acknowledged, it may lose an agent.
  if let Some(problem) = world.record.problems().first().filter(|_| !kinds.cuts) {
    return Err(problem.clone());
  }
  let all = accepted(&world.shared).await?;
  for partition in &all {
    log::check(partition, kinds)?;
    if !kinds.cuts && !kinds.restores {
      log::never_other_bytes(partition)?;
    }
    replies::check(partition)?;
    kept::checkpoint(partition, &world.shared)?;
  }
  chains(&all, &world.shared).await?;
  kept::read_model(&all, &world.shared).await?;
  erased(&all, world)?;
  kept::views(&all, world)?;
  kept::leases(world)?;
  lives::check(&all, world, !kinds.cuts)?;
  if !kinds.cuts {
    people::check(&all, world)?;
    people::looks(world)?;
    effects::check(&all, world)?;
  }
  let count = |count: fn(&Accepted) -> usize| all.iter().map(count).sum();
  Ok(Stats {
    inputs: count(|partition| partition.inputs.len()),
    events: count(|partition| partition.events.len()),
    voids: count(Accepted::voids),
    effects: world.shared.ledger.effects().len(),
    fingerprint: fingerprint(&all),
  })
}

/// Positions, types, places and causes; stored bytes differ in their random nonces.
fn fingerprint(all: &[Accepted]) -> u64 {
  let mut hasher = DefaultHasher::new();
  for (position, stored) in all.iter().flat_map(|accepted| accepted.events.iter().chain(&accepted.inputs)) {
    let place = stored.meta().map(|meta| (meta.place.epoch, meta.place.seq, meta.core.cause)).ok();
    (position, &stored.record.type_name, stored.record.id, place).hash(&mut hasher);
  }
  hasher.finish()
}

/// The chain of every agent holds, also of erased ones, as `pa verify` sees it.
async fn chains(all: &[Accepted], shared: &Shared) -> Result<(), String> {
  let log = GatedLog::of_the_judge(shared);
  for accepted in all {
    let broken = pa_pipeline::chains::check(&log, accepted.partition, Position::MAX).await.map_err(|error| error.to_string())?;
    ensure!(broken.is_empty(), "chains are broken: {broken:?}");
  }
  Ok(())
}

/// Nothing of an erased agent can be read, is kept, or is shown.
fn erased(all: &[Accepted], world: &World) -> Result<(), String> {
  for agent in world.record.all_erased() {
    let read = all.iter().flat_map(Accepted::decisions).any(|decision| decision.agent == agent);
    ensure!(!read, "the erased agent {agent} can be read");
    let store = world.shared.model.store();
    let shown = store.progress(agent) != 0 || !store.all_entries(agent).is_empty() || !store.conversations(agent).is_empty();
    ensure!(!shown, "the erased agent {agent} is shown");
    let rows = world.shared.database.copy();
    let things = rows.things.keys().filter(|(_, owner, thing)| *owner == agent && !thing.is_nil()).count();
    ensure!(things == 0, "{things} things of the erased agent {agent} are kept");
    ensure!(!rows.keys.keys().any(|(_, owner, _, _)| *owner == agent), "keys of the erased agent {agent} are kept");
  }
  Ok(())
}

/// Fails with a text unless a condition holds.
macro_rules! ensure {
  ($holds:expr, $($text:tt)+) => {
    if !$holds {
      return Err(format!($($text)+));
    }
  };
}
pub(super) use ensure;
