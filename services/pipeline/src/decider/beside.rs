//! The decider's state of a version that has not started yet, built while a decider of another version decides.
//!
//! Invariants
//! - It is folded by the code of a term that opens, from accepted records alone, and written in the same checkpoints: the decider that starts on it can't tell it from its
//!   own, and reads on from there.
//! - No lease is taken, nothing is appended and nothing carried out. A decider that keeps the same version wins: what it writes moves the checkpoint, and this stops.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};
use pa_domain::{AgentId, route};
use pa_eventlog::meta::partition_of;
use pa_eventlog::opener::Opened;
use pa_eventlog::reader::Item;
use pa_eventlog::seal::KeyState;
use pa_eventlog::{Partition, Position, Stream};

use super::due::PRODUCER;
use super::term::{Term, part};
use super::{End, Parts};

/// Records between two checkpoints: what is folded meanwhile is held in memory, and a checkpoint waits for the disk.
const CHECKPOINT_RECORDS: u64 = 5_000;
/// Owed events that are looked after at once.
const OWED_AT_ONCE: usize = 256;
/// No term has this epoch, and no lease guards what is written here.
const NO_EPOCH: i64 = 0;

/// What was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Built {
  /// Events that were folded.
  pub events: u64,
}

/// Folds every partition to where the log ends now, from where an earlier attempt came to.
///
/// # Errors
/// Log or database fail, the log holds what this binary does not know, or a decider that keeps this version's state runs already.
pub async fn build(parts: &Parts, partitions: Partition) -> anyhow::Result<Built> {
  let mut built = Built::default();
  for partition in 0..partitions {
    built.events += fold(parts, partition).await.map_err(why).with_context(|| format!("build the decider's state of partition {partition}"))?;
  }
  // The keys of what was led to stand in the partition that it was led to.
  for partition in 0..partitions {
    settle(parts, partition, partitions).await.map_err(why).with_context(|| format!("settle what partition {partition} led to"))?;
  }
  Ok(built)
}

fn why(end: End) -> anyhow::Error {
  match end {
    End::Away(error) | End::Fatal(error) => error,
    End::NewTerm(_) | End::Yielded | End::StepDown(_) | End::Stopped => anyhow!("a decider of this version runs already, and keeps its state itself"),
    End::LogChanged => anyhow!("the log was exchanged meanwhile"),
  }
}

async fn fold(parts: &Parts, partition: Partition) -> Result<u64, End> {
  let mut term = match open(parts, partition).await {
    Err(End::LogChanged) => {
      tracing::warn!(partition, "what was built before is not of this log; it is built anew from the beginning");
      parts.store.drop_checkpoint(part(partition)).await?;
      open(parts, partition).await?
    }
    opened => opened?,
  };
  // More comes in while it is read: that is left to whoever starts.
  let end = parts.log.end(Stream::Events, partition).await?;
  let mut events = 0;
  while term.reader.position() < end {
    let items = term.reader.poll().await?;
    if items.is_empty() {
      break;
    }
    term.agents.load(items.iter().flat_map(wanted)).await?;
    let before = term.unwritten;
    for item in &items {
      term.fold(item).await?;
    }
    events += term.unwritten - before;
    // Their positions stand in the checkpoint.
    term.due.clear();
    if term.unwritten >= CHECKPOINT_RECORDS {
      term.write_checkpoint(NO_EPOCH).await?;
    }
  }
  if term.unwritten > 0 {
    term.write_checkpoint(NO_EPOCH).await?;
  }
  Ok(events)
}

async fn open(parts: &Parts, partition: Partition) -> Result<Term, End> {
  let mut term = Term::load(parts, partition).await?;
  term.reader.check().await?;
  Ok(term)
}

/// The roots and things that an item is folded into.
fn wanted(item: &Item) -> Vec<(AgentId, Option<pa_domain::ThingId>)> {
  match item {
    Item::Decision(decision) => decision.events.iter().map(|recorded| (decision.agent, recorded.event.thing())).chain([(decision.agent, None)]).collect(),
    Item::Erased(unopened) | Item::Unreadable { head: unopened, .. } => vec![(unopened.agent, None)],
    Item::Announced(_) | Item::Void(_) => Vec::new(),
  }
}

/// Forgets of what events led to elsewhere what was decided there: a start would ask for all of it again.
async fn settle(parts: &Parts, partition: Partition, partitions: Partition) -> Result<(), End> {
  let mut term = open(parts, partition).await?;
  let mut done = Vec::new();
  for positions in term.agents.owed().chunks(OWED_AT_ONCE) {
    done.extend(decided(parts, &term, positions, partitions).await?);
  }
  if done.is_empty() {
    return Ok(());
  }
  for position in done {
    term.agents.paid(position);
  }
  term.write_checkpoint(NO_EPOCH).await
}

/// Which of these events' inputs were decided.
async fn decided(parts: &Parts, term: &Term, positions: &[Position], partitions: Partition) -> Result<Vec<Position>, End> {
  let mut asked: BTreeMap<Partition, Vec<(AgentId, [u8; 32], Position)>> = BTreeMap::new();
  for &position in positions {
    let Some(Opened::Event(recorded)) = term.event_at(position).await? else { continue };
    let Some(routed) = route(recorded.core(), &recorded.event) else { continue };
    let KeyState::Ready(keys) = parts.keys.keys(routed.agent).await.map_err(|error| End::Away(error.into()))? else { continue };
    let key = keys.hash_key(recorded.core().id.to_string().as_bytes());
    asked.entry(partition_of(routed.agent, partitions)).or_default().push((routed.agent, key, position));
  }
  let mut done = Vec::new();
  for (partition, asked) in asked {
    let wanted: Vec<_> = asked.iter().map(|(agent, key, _)| (*agent, PRODUCER, *key)).collect();
    let found = parts.store.keys(part(partition), &wanted).await?;
    done.extend(asked.iter().filter(|(agent, key, _)| found.iter().any(|known| known.agent == *agent && known.key == *key)).map(|(_, _, position)| *position));
  }
  Ok(done)
}
