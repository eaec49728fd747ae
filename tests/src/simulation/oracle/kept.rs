//! What is derived equals what the log gives when it is read from its beginning: checkpoints, read models, workers' views.

use std::collections::{BTreeMap, HashMap, HashSet};

use pa_domain::state::Life;
use pa_domain::{AgentId, Event, Root, Thing, Timestamp};
use pa_eventlog::Position;
use pa_eventlog::fence::NextInput;
use pa_eventlog::reader::{Decision, Item};
use pa_projections::commit::MemoryStore;
use pa_projections::{Batch, Mark, ReadStore};
use serde::Deserialize;
use uuid::Uuid;

use super::super::client::FOR_EVER;
use super::super::model::project;
use super::super::view::Folded;
use super::super::world::{Shared, World};
use super::{Accepted, ensure};

/// A root as the decider keeps it; the fields after these are its own affair.
#[derive(Debug, PartialEq, Deserialize)]
struct Kept {
  root: Root,
  ordinal: i64,
  chain: [u8; 32],
  at: Timestamp,
}

#[derive(Default)]
struct Upto {
  folded: Folded,
  ends: HashMap<AgentId, (i64, [u8; 32], Timestamp)>,
  /// Where the events of erased agents go on.
  buried: HashMap<AgentId, (i64, [u8; 32])>,
  /// Those whose erasure stands in the log: a cut may have taken it while the keys are gone for good.
  erasures: HashSet<AgentId>,
  /// The first input decided under each key.
  keys: HashMap<(AgentId, String, [u8; 32]), Uuid>,
  causes: BTreeMap<Position, Uuid>,
  next: Option<NextInput>,
  epoch: i64,
}

impl Upto {
  /// The state that the log gives up to a position.
  fn position(accepted: &Accepted, position: Position) -> Self {
    let mut upto = Self { next: Some(NextInput::START), ..Self::default() };
    for item in &accepted.items {
      match item {
        Item::Announced(announced) if announced.position < position => {
          upto.epoch = announced.epoch;
          upto.next = upto.next.map(|next| next.announced(announced.counts, announced.inputs_from));
        }
        Item::Decision(decision) if decision.last < position => upto.decision(decision),
        Item::Erased(unopened) if unopened.last < position => {
          upto.buried.insert(unopened.agent, (unopened.ordinal + i64::from(unopened.parts) - 1, unopened.chain()));
          if unopened.last_stored().record.type_name.starts_with("pa.agent.AgentErased.") {
            upto.erasures.insert(unopened.agent);
          }
        }
        Item::Erased(_) | Item::Unreadable { .. } | Item::Void(_) | Item::Announced(_) | Item::Decision(_) => {}
      }
      if let Some(head) = item.decided().filter(|head| head.last < position) {
        upto.next = upto.next.map(|next| next.decided(head.input, head.held));
        if !head.held {
          upto.causes.insert(head.input, head.cause);
        }
      }
    }
    upto
  }

  fn decision(&mut self, decision: &Decision) {
    self.folded.fold(decision);
    self.ends.insert(decision.agent, (decision.last_ordinal(), decision.chain(), decision.at));
    let Some(first) = decision.events.first() else { return };
    let core = first.core();
    if let Some(key) = core.key.first_chunk::<32>().filter(|_| records_key(&first.event)) {
      self.keys.entry((core.agent, core.producer.clone(), *key)).or_insert(core.cause);
    }
  }
}

/// A hold, a repeat or a conflict says nothing about its key.
fn records_key(event: &Event) -> bool {
  use pa_domain::log::{Event as LogEvent, InputSettled, Settlement};
  match event {
    Event::Log(LogEvent::InputHeld(_) | LogEvent::InputQuarantined(_)) => false,
    Event::Log(LogEvent::InputSettled(InputSettled { outcome, reason, .. })) => *outcome != Settlement::Repeated && reason != "REQUEST_KEY_CONFLICT",
    _ => true,
  }
}

/// The checkpoint of a partition is the state of the log at its position.
pub(in super::super) fn checkpoint(accepted: &Accepted, shared: &Shared) -> Result<(), String> {
  let part = i16::try_from(accepted.partition).expect("few partitions");
  let rows = shared.database.copy();
  let Some(mark) = rows.marks.get(&part) else {
    ensure!(!rows.things.keys().any(|(of, _, _)| *of == part), "partition {part} has things and no checkpoint");
    return Ok(());
  };
  let upto = Upto::position(accepted, mark.next_position);
  ensure!(upto.next == Some(NextInput(mark.next_input)), "the checkpoint of {part} is at input {} and the log at {:?}", mark.next_input, upto.next);
  ensure!(upto.epoch == mark.epoch, "the checkpoint of {part} is of epoch {} and the log of {}", mark.epoch, upto.epoch);
  let before = accepted.events.range(..mark.next_position).next_back().map(|(_, stored)| stored.digest());
  ensure!(before == Some(mark.last), "the record before the checkpoint of {part} is another one");
  for (agent, (ordinal, chain, at)) in &upto.ends {
    let state = rows.things.get(&(part, *agent, Uuid::nil())).ok_or_else(|| format!("the checkpoint of {part} lacks agent {agent}"))?;
    let (kept, _) = postcard::take_from_bytes::<Kept>(state).map_err(|error| format!("the root of {agent}: {error}"))?;
    let root = upto.folded.roots.get(agent).cloned().unwrap_or_default();
    let folded = Kept { root, ordinal: *ordinal, chain: *chain, at: *at };
    ensure!(kept == folded, "the checkpoint of {part} has for {agent} {kept:?} and the log gives {folded:?}");
  }
  for (agent, (ordinal, chain)) in &upto.buried {
    let state = rows.things.get(&(part, *agent, Uuid::nil())).ok_or_else(|| format!("the checkpoint of {part} lacks the tombstone of {agent}"))?;
    let (kept, _) = postcard::take_from_bytes::<Kept>(state).map_err(|error| format!("the tombstone of {agent}: {error}"))?;
    let root = if upto.erasures.contains(agent) { Root { life: Life::Erased, ..Root::default() } } else { kept.root.clone() };
    let tombstone = Kept { root, ordinal: *ordinal, chain: *chain, at: kept.at };
    ensure!(kept == tombstone, "the checkpoint of {part} has for the erased {agent} {kept:?} and the log gives {tombstone:?}");
  }
  for ((agent, thing), folded) in &upto.folded.things {
    let state = rows.things.get(&(part, *agent, thing.0)).ok_or_else(|| format!("the checkpoint of {part} lacks {agent}/{thing}"))?;
    let kept: Thing = postcard::from_bytes(state).map_err(|error| format!("{agent}/{thing}: {error}"))?;
    ensure!(kept == *folded, "the checkpoint of {part} has for {agent}/{thing} {kept:?} and the log gives {folded:?}");
  }
  for ((_, agent, producer, key), row) in rows.keys.iter().filter(|((of, agent, _, _), _)| *of == part && upto.ends.contains_key(agent)) {
    let first = upto.keys.get(&(*agent, producer.clone(), *key));
    ensure!(first == Some(&row.cause), "a key of {producer} for {agent} is kept with input {} and was decided with {first:?}", row.cause);
  }
  for ((agent, producer, key), cause) in upto.keys.iter().filter(|((agent, _, _), _)| upto.ends.contains_key(agent)) {
    let kept = rows.keys.get(&(part, *agent, producer.clone(), *key)).map(|row| row.cause);
    ensure!(kept == Some(*cause), "a key of {producer} for {agent} was decided with input {cause} and is kept as {kept:?}");
  }
  for (position, cause) in &upto.causes {
    let kept = rows.causes.get(&(part, *position));
    ensure!(kept == Some(cause), "input {position} of {part} is kept as {kept:?} and was decided as {cause}");
  }
  Ok(())
}

/// The read model equals one that is projected from the beginning.
pub(in super::super) async fn read_model(all: &[Accepted], shared: &Shared) -> Result<(), String> {
  let (live, fresh) = (shared.model.store(), MemoryStore::new());
  let mut agents: Vec<AgentId> = Vec::new();
  for accepted in all {
    let mut batch = Batch::new(&BTreeMap::new());
    accepted.items.iter().for_each(|item| project(&mut batch, accepted.partition, item));
    agents.extend(batch.progress().map(|(agent, _)| agent));
    let loaded = fresh.load(accepted.partition, Uuid::nil()).await.map_err(|error| error.to_string())?;
    fresh.commit(accepted.partition, &loaded.mark, &Mark { next_position: 1, ..Mark::default() }, &batch).await.map_err(|error| error.to_string())?;
  }
  for agent in agents {
    ensure!(live.progress(agent) == fresh.progress(agent), "{agent} is shown up to {} of {}", live.progress(agent), fresh.progress(agent));
    let (shown, folded) = (live.all_entries(agent), fresh.all_entries(agent));
    let differs = shown.iter().zip(&folded).find(|(shown, folded)| shown != folded);
    ensure!(shown.len() == folded.len() && differs.is_none(), "{agent} is shown {} entries of {}, {differs:?}", shown.len(), folded.len());
    ensure!(live.conversations(agent) == fresh.conversations(agent), "{agent} is shown other conversations");
  }
  for accepted in all {
    let parked = live.load(accepted.partition, Uuid::nil()).await.map_err(|error| error.to_string())?.parked;
    ensure!(parked.is_empty(), "agents of partition {} are parked although every record is whole: {parked:?}", accepted.partition);
  }
  ensure!(live.jobs() == fresh.jobs(), "the queue is {:?} and the log gives {:?}", live.jobs(), fresh.jobs());
  ensure!(live.calls() == fresh.calls(), "open calls are {:?} and the log gives {:?}", live.calls(), fresh.calls());
  ensure!(live.due(FOR_EVER) == fresh.due(FOR_EVER), "timers are {:?} and the log gives {:?}", live.due(FOR_EVER), fresh.due(FOR_EVER));
  Ok(())
}

/// Nobody holds a lease on work that is over, and no partition's epoch in the database is below the one in the log.
pub(in super::super) fn leases(world: &World) -> Result<(), String> {
  let rows = world.shared.database.copy();
  let left: Vec<_> = rows.work.values().map(|(lease, _)| (lease.job, lease.holder)).collect();
  ensure!(left.is_empty(), "leases of work that is over are left: {left:?}");
  for (part, mark) in &rows.marks {
    let epoch = rows.leases.get(part).map_or(0, |lease| lease.epoch);
    ensure!(epoch >= mark.epoch, "the lease row of {part} is at epoch {epoch} and its checkpoint at {}", mark.epoch);
  }
  Ok(())
}

/// What processes folded for themselves is what the log gives.
pub(in super::super) fn views(all: &[Accepted], world: &World) -> Result<(), String> {
  let mut folded = Folded::default();
  all.iter().flat_map(Accepted::decisions).for_each(|decision| folded.fold(decision));
  for process in (0..world.nodes()).filter_map(|node| world.alive(node)).filter(|process| process.roles.works) {
    for (agent, root) in &folded.roots {
      let view = process.view.root(*agent);
      ensure!(view.as_ref() == Some(root), "process {} has {view:?} of {agent} and the log gives {root:?}", process.holder.process);
    }
  }
  Ok(())
}
