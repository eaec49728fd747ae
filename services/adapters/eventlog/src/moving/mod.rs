//! Moving a log: into another engine, into another number of partitions, into a folder and back.
//!
//! What moves are the accepted events, byte for byte but for their `place`: epoch and seq are those of the new log, and the input of a decision is none of the new log's
//! ([`crate::meta::NO_INPUT`]). So a new log begins with no inputs, its first input is at 0 whatever its events were decided on, and every input of the old log must have
//! been decided, or is carried over behind the events. Invariants
//! - An agent's events keep their order, ids, ordinals, chain, times and keys of repeats: what was done counts as done in the new log, too.
//! - A target tells by itself how far it is. Whoever fills it announces an epoch of its own, so nothing of an earlier attempt can land afterwards and count; what it holds
//!   already is compared with the source and passed over.
//! - Memory is bounded by batches and by the number of agents, never by the number of events.
//!
//! [`walk`] reads whole decisions, [`tally`] counts and hashes them, [`target`] writes them, [`copy`] is the way from one to the other, [`archive`] a log in a folder.

pub mod archive;
pub mod copy;
pub mod tally;
pub mod target;
#[cfg(test)]
mod tests;
pub mod walk;

use pa_domain::AgentId;
use pa_domain::ids::INSTALLATION;

use crate::meta::{self, partition_of};
use crate::port::{AppendError, EventLog, LogError};
use crate::record::{Partition, Position, Stream};
use crate::{compose, opener};

pub use archive::{Archive, ArchiveWriter};
pub use copy::{Copied, Source, carry, copy};
pub use tally::{OfAgent, Tally};
pub use target::Target;
pub use walk::Walk;

/// Moving stopped. What was written until then can be gone on from.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  #[error(transparent)]
  Log(#[from] LogError),
  #[error(transparent)]
  Append(#[from] AppendError),
  #[error("{stream}/{partition} position {position} can't be read")]
  Record {
    stream: &'static str,
    partition: Partition,
    position: Position,
    #[source]
    source: opener::Error,
  },
  #[error(transparent)]
  Compose(#[from] compose::Error),
  #[error(transparent)]
  Meta(#[from] meta::Error),
  /// The target holds events that the source has not.
  #[error("the new log holds other events of agent {agent} than the old one: it is another log's, choose another place")]
  OtherHistory { agent: AgentId },
  /// The target has inputs: somebody works with it.
  #[error("the new log has inputs of its own: it is in use, or was; choose another place")]
  InUse,
  #[error("the file {path} is not a part of a log: {what}")]
  Malformed { path: String, what: &'static str },
  #[error("could not {doing} {path}")]
  File {
    doing: &'static str,
    path: String,
    #[source]
    source: std::io::Error,
  },
}

/// Where a log ends, partition by partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
  pub events: Vec<Position>,
  pub inputs: Vec<Position>,
}

impl Ends {
  /// Looks at the ends, so that together they are one cut: every fact before it was decided on an input before it, and every input that followed from a fact is there only
  /// if that fact, or the input that it is decided on, is. Hence the events first, and the installation's inputs last: from its facts inputs of other agents follow.
  ///
  /// # Errors
  /// The log can't be asked.
  pub async fn of(log: &dyn EventLog) -> Result<Self, LogError> {
    let partitions = log.identity().await?.partitions;
    let mut ends = Self { events: Vec::new(), inputs: vec![0; usize::from(partitions)] };
    for partition in 0..partitions {
      ends.events.push(log.end(Stream::Events, partition).await?);
    }
    let last = partition_of(INSTALLATION, partitions);
    for partition in (0..partitions).filter(|partition| *partition != last).chain([last]) {
      ends.inputs[usize::from(partition)] = log.end(Stream::Inputs, partition).await?;
    }
    Ok(ends)
  }

  /// Where a partition of a stream ends; pieces of replies are never moved.
  pub fn end(&self, stream: Stream, partition: Partition) -> Position {
    let of = match stream {
      Stream::Events => &self.events,
      Stream::Inputs => &self.inputs,
      Stream::Pieces => return 0,
    };
    of.get(usize::from(partition)).copied().unwrap_or_default()
  }

  /// How many partitions the log has.
  pub fn partitions(&self) -> Partition {
    Partition::try_from(self.events.len()).expect("a log's partitions are numbered by as much")
  }
}
