//! The way from one log into another.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use crate::meta::partition_of;
use crate::opener::Opener;
use crate::port::EventLog;
use crate::record::{Partition, Position, Record, Stream};

use super::tally::Tally;
use super::target::Target;
use super::{Ends, Error, Walk};

/// Inputs of one read, and of one append.
const INPUTS_AT_ONCE: usize = 500;

/// The log that is moved, up to its ends.
pub struct Source<'a> {
  pub log: &'a dyn EventLog,
  pub opener: &'a Opener,
  pub ends: Ends,
}

/// What came of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
  /// What the source holds.
  pub tally: Tally,
  /// Events that were written by this pass; the others were there.
  pub written: u64,
  /// From where on the inputs of each partition of the source are not decided.
  pub inputs_from: Vec<Position>,
}

impl Copied {
  /// The partitions with inputs that are not decided: where they begin and where they end.
  pub fn undecided(&self, ends: &Ends) -> Vec<(Partition, Position, Position)> {
    let of = |(partition, (from, end)): (Partition, (&Position, &Position))| (from < end).then_some((partition, *from, *end));
    (0..).zip(self.inputs_from.iter().zip(&ends.inputs)).filter_map(of).collect()
  }
}

/// Brings every event of `source` into `target`, which holds `held` already. `told` hears how many of the source were passed.
///
/// # Errors
/// [`Error::OtherHistory`] when the target holds what the source has not; failures of either log. It can be done again, with a target taken anew.
pub async fn copy(source: &Source<'_>, target: &mut Target, held: &Tally, mut told: impl FnMut(u64)) -> Result<Copied, Error> {
  let mut copied = Copied::default();
  let mut passed = 0;
  for partition in 0..source.ends.partitions() {
    let mut walk = Walk::new(source.log, source.opener, partition, source.ends.end(Stream::Events, partition));
    let mut batch = walk.next().await?;
    while let Some(decisions) = batch {
      for decision in &decisions {
        let is_new = follow(&mut copied.tally, held, decision)?;
        passed += decision.len() as u64;
        if is_new {
          target.put(decision)?;
        }
      }
      told(passed);
      // What was read is written while the next is read.
      let (written, next) = tokio::join!(target.write(false), walk.next());
      written?;
      batch = next?;
    }
    copied.inputs_from.push(walk.inputs_from().await?);
  }
  target.write(true).await?;
  copied.written = target.written();
  let beyond = held.agents.iter().find(|(agent, of)| copied.tally.agents.get(agent).is_none_or(|source| source.events < of.events));
  match beyond {
    Some((agent, _)) => Err(Error::OtherHistory { agent: *agent }),
    None => Ok(copied),
  }
}

/// Counts a decision of the source. False: the target holds it.
fn follow(tally: &mut Tally, held: &Tally, decision: &[Arc<crate::Stored>]) -> Result<bool, Error> {
  let Some(first) = decision.first() else { return Ok(false) };
  let agent = first.meta()?.core.agent;
  let of = tally.agents.entry(agent).or_default();
  let there = held.agents.get(&agent).copied().unwrap_or_default();
  let is_new = of.events >= there.events;
  for stored in decision {
    of.add(stored)?;
  }
  // Either the target has the whole decision or nothing of it, and where it ends its history is the source's.
  if !is_new && (of.events > there.events || (of.events == there.events && *of != there)) {
    return Err(Error::OtherHistory { agent });
  }
  Ok(is_new)
}

/// Carries the source's inputs from `inputs_from` on over, as they are, behind each other: they are decided by whoever leads the new log. Those that it holds already are
/// left out. Answers how many were written.
///
/// # Errors
/// Failures of either log. It can be done again.
pub async fn carry(source: &Source<'_>, target: &Target, inputs_from: &[Position]) -> Result<u64, Error> {
  let there = ids(target.log().as_ref(), target.partitions()).await?;
  let mut written = 0;
  for (partition, from) in (0..).zip(inputs_from) {
    let (mut from, end) = (*from, source.ends.end(Stream::Inputs, partition));
    while from < end {
      let batch = source.log.read(Stream::Inputs, partition, from, INPUTS_AT_ONCE).await?;
      let Some(last) = batch.last() else { break };
      from = last.position + 1;
      // One partition's after the other would take an agent's inputs apart; each goes to its own in the order of the source.
      let mut to: Vec<Vec<Record>> = vec![Vec::new(); usize::from(target.partitions())];
      for stored in batch.iter().filter(|stored| stored.position < end && !there.contains(&stored.record.id)) {
        to[usize::from(partition_of(stored.meta()?.core.agent, target.partitions()))].push(stored.record.clone());
      }
      for (goal, records) in (0..).zip(to).filter(|(_, records)| !records.is_empty()) {
        written += records.len() as u64;
        target.log().append(Stream::Inputs, goal, records).await?;
      }
    }
  }
  Ok(written)
}

async fn ids(log: &dyn EventLog, partitions: Partition) -> Result<HashSet<Uuid>, Error> {
  let mut ids = HashSet::new();
  for partition in 0..partitions {
    let (mut from, end) = (0, log.end(Stream::Inputs, partition).await?);
    while from < end {
      let batch = log.read(Stream::Inputs, partition, from, INPUTS_AT_ONCE).await?;
      let Some(last) = batch.last() else { break };
      from = last.position + 1;
      ids.extend(batch.iter().map(|stored| stored.record.id));
    }
  }
  Ok(ids)
}
