//! Counts and hashes of what a log holds of each agent, by which two logs are compared whatever their engines, partitions, terms and positions are.
//!
//! The hash of an agent runs over all that moving keeps: each accepted event's id, type, source, trace, metadata and stored value, in order, with the bounds of its
//! decisions. Left out is only where it stands: epoch, seq, and the input's position unless the input had been held.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Context, SHA256};
use pa_domain::AgentId;

use crate::meta::{self, NO_INPUT, PaMeta, Place, digest};
use crate::opener::Opener;
use crate::port::EventLog;
use crate::record::{Record, Stored};

use super::{Ends, Error, Walk};

/// What a log holds of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfAgent {
  pub events: u64,
  /// The last event's number.
  pub ordinal: i64,
  pub hash: [u8; 32],
}

/// What a log holds, agent by agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
  pub agents: BTreeMap<AgentId, OfAgent>,
}

/// A record's place as far as it moves along.
pub(super) fn moved(meta: &PaMeta, epoch: i64, seq: i64) -> PaMeta {
  let input = if meta.place.held { meta.place.input } else { NO_INPUT };
  PaMeta::new(meta.core.clone(), meta.prevhash, Place { input, epoch, seq, ..meta.place })
}

impl OfAgent {
  /// Adds the agent's next accepted event.
  ///
  /// # Errors
  /// Its headers can't be read.
  pub fn add(&mut self, stored: &Stored) -> Result<(), meta::Error> {
    let meta = stored.meta()?;
    let record = Record { meta: meta::encode(&moved(meta, 0, 0))?, ..stored.record.clone() };
    let mut context = Context::new(&SHA256);
    context.update(b"pa/tally/1");
    context.update(&self.hash);
    context.update(&digest(&record));
    self.hash = context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes");
    self.events += 1;
    self.ordinal = meta.core.ordinal;
    Ok(())
  }
}

impl Tally {
  /// Reads a whole log up to its ends, from nothing but the log.
  ///
  /// # Errors
  /// The log can't be read.
  pub async fn of(log: &dyn EventLog, opener: &Opener, ends: &Ends) -> Result<Self, Error> {
    let mut tally = Self::default();
    for partition in 0..ends.partitions() {
      let mut walk = Walk::new(log, opener, partition, ends.events[usize::from(partition)]);
      while let Some(batch) = walk.next().await? {
        for stored in batch.iter().flatten() {
          tally.agents.entry(stored.meta()?.core.agent).or_default().add(stored)?;
        }
      }
    }
    Ok(tally)
  }

  /// How many events there are.
  pub fn events(&self) -> u64 {
    self.agents.values().map(|of| of.events).sum()
  }

  /// One hash over all agents, in the order of their ids.
  pub fn hash(&self) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    context.update(b"pa/tally/1");
    for (agent, of) in &self.agents {
      context.update(agent.0.as_bytes());
      context.update(&of.events.to_be_bytes());
      context.update(&of.hash);
    }
    context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
  }

  /// The agents of which the two do not hold the same.
  pub fn differing(&self, other: &Self) -> Vec<AgentId> {
    let all: std::collections::BTreeSet<_> = self.agents.keys().chain(other.agents.keys()).copied().collect();
    all.into_iter().filter(|agent| self.agents.get(agent) != other.agents.get(agent)).collect()
  }
}
