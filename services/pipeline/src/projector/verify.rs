//! Comparing the read model with the log: is every row what the log says, and is every agent's chain whole?
//!
//! The tables in use are hashed as of one instant; a copy is folded from the beginning of the log to exactly their positions and hashed likewise. Nobody is held up.
//! The chains are checked to the end of the log, and so is what stands there without counting: damage that no row shows yet.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::AgentId;
use pa_eventlog::{Partition, Stream};
use pa_projections::commit::PostgresStore;
use pa_projections::schema::{self, Indexes, Schemas, Snapshot};
use pa_store::ReadSchema;

use super::build::{lock, scratch, to_the_end};
use super::upto::Upto;
use super::{Error, PartitionProjector, Parts};
use crate::chains::{self, Broken, Unheard};

/// A stale decider's record is void, and its input is decided again a moment later: what is still so after this time is no passing thing.
const DECIDED_AGAIN_WITHIN: Duration = Duration::from_secs(3);

/// One way in which the read model is not what the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
  /// An agent's rows of a table.
  Rows { table: &'static str, agent: AgentId, rows: i64, rows_by_log: i64 },
  /// A partition's position: the log has another history there.
  Position { partition: Partition, next_position: i64 },
  /// The partition was folded from another log.
  OtherLog { partition: Partition },
  /// An agent's chain breaks at this ordinal.
  Chain(Broken),
  /// An agent's next event stands in the log and does not count.
  Void(Unheard),
}

impl Difference {
  /// Whom it concerns, if it is one agent.
  pub fn agent(&self) -> Option<AgentId> {
    match self {
      Self::Rows { agent, .. } => Some(*agent),
      Self::Chain(broken) => Some(broken.agent),
      Self::Void(unheard) => Some(unheard.agent),
      Self::Position { .. } | Self::OtherLog { .. } => None,
    }
  }
}

impl fmt::Display for Difference {
  fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match self {
      Self::Rows { table, agent, rows, rows_by_log } if rows == rows_by_log => write!(f, "table {table} agent {agent}: a row differs ({rows} rows)"),
      Self::Rows { table, agent, rows, rows_by_log } => write!(f, "table {table} agent {agent}: {rows} rows, {rows_by_log} by the log"),
      Self::Position { partition, next_position } => write!(f, "partition {partition}: position {next_position} is not one of the log's"),
      Self::OtherLog { partition } => write!(f, "partition {partition}: folded from another log"),
      Self::Chain(Broken { agent, ordinal, partition, position }) => {
        write!(f, "chain of agent {agent}: broken at ordinal {ordinal} (partition {partition}, position {position})")
      }
      Self::Void(Unheard { agent, ordinal, partition, position }) => write!(
        f,
        "agent {agent}: its event {ordinal} does not count, and nothing stands for it (partition {partition}, position {position}): its place in its term was changed, or its input was not decided again"
      ),
    }
  }
}

/// Compares the schema of this binary with the log; none: they agree.
///
/// # Errors
/// It could not be compared: the schema is missing, log or database fail, or the log holds what this binary does not know.
pub async fn verify(parts: &Parts, schemas: &Schemas) -> Result<Vec<Difference>, Error> {
  let schema = schema::current();
  let lock = lock(schemas, &schema).await?;
  let differences = compare(parts, schemas, &schema).await;
  lock.release().await;
  differences
}

async fn compare(parts: &Parts, schemas: &Schemas, schema: &ReadSchema) -> Result<Vec<Difference>, Error> {
  let in_use = schemas.snapshot(schema).await?;
  let log = parts.log.identity().await?;
  let mut differences = Vec::new();
  let scratch = scratch(schema, "verify");
  schemas.drop(&scratch).await?;
  schemas.create(&scratch, Indexes::Later).await?;
  let store = Arc::new(PostgresStore::new(&parts.database, &scratch));
  for (partition, (mark, folded_from)) in &in_use.positions {
    if *folded_from != log.id {
      differences.push(Difference::OtherLog { partition: *partition });
      continue;
    }
    let upto = Arc::new(Upto::new(Arc::clone(&parts.log), mark.next_position));
    let projector = PartitionProjector::open(upto, Arc::clone(&parts.opener), Arc::clone(&store), *partition).await?;
    to_the_end(projector.for_building(None)).await?;
    differences.extend(of_partition(parts, *partition).await?);
  }
  store.close().await;
  let by_log = schemas.snapshot(&scratch).await?;
  schemas.drop(&scratch).await?;
  differences.extend(differing(&in_use, &by_log));
  Ok(differences)
}

/// Checks every agent's chain to the end of the log, and looks for events that do not count; none: all is whole.
///
/// # Errors
/// The log fails.
pub async fn chains(parts: &Parts) -> Result<Vec<Difference>, Error> {
  let mut differences = Vec::new();
  for partition in 0..parts.log.identity().await?.partitions {
    differences.extend(of_partition(parts, partition).await?);
  }
  Ok(differences)
}

async fn of_partition(parts: &Parts, partition: Partition) -> Result<Vec<Difference>, Error> {
  let log = parts.log.as_ref();
  let end = log.end(Stream::Events, partition).await?;
  let mut found = chains::examine(log, partition, end).await?;
  if !found.unheard.is_empty() {
    tokio::time::sleep(DECIDED_AGAIN_WITHIN).await;
    let end = log.end(Stream::Events, partition).await?;
    let again = chains::examine(log, partition, end).await?;
    found.unheard.retain(|unheard| again.unheard.contains(unheard));
  }
  Ok(found.broken.into_iter().map(Difference::Chain).chain(found.unheard.into_iter().map(Difference::Void)).collect())
}

fn differing(in_use: &Snapshot, by_log: &Snapshot) -> Vec<Difference> {
  let mut differences = Vec::new();
  for (partition, (mark, _)) in &in_use.positions {
    if by_log.positions.get(partition).is_some_and(|(there, _)| there != mark) {
      differences.push(Difference::Position { partition: *partition, next_position: mark.next_position });
    }
  }
  for (table, rows) in &in_use.tables {
    let log_rows = &by_log.tables[table];
    let agents: BTreeSet<_> = rows.keys().chain(log_rows.keys()).collect();
    for agent in agents {
      let (ours, theirs) = (rows.get(agent), log_rows.get(agent));
      if ours != theirs {
        let count = |hash: Option<&schema::TableHash>| hash.map_or(0, |hash| hash.rows);
        differences.push(Difference::Rows { table, agent: *agent, rows: count(ours), rows_by_log: count(theirs) });
      }
    }
  }
  differences
}
