//! Building a read schema from the beginning of the log: a missing one, that of a version which has not started yet, the same one afresh, or one agent's part of it.
//!
//! It is filled beside the one in use, by the same code that keeps that one up to date, in larger batches and with its indexes made afterwards; then it takes the other's
//! name in one transaction. Whoever projects meanwhile finds another position under its feet and goes on from there.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::{AgentId, Timestamp};
use pa_eventlog::meta::hash::partition_of;
use pa_eventlog::{EventLog, Partition};
use pa_projections::commit::PostgresStore;
use pa_projections::schema::{self, Indexes, Lock, Schemas};
use pa_store::ops::nodes;
use pa_store::{ReadSchema, Role};
use tokio::task::JoinSet;

use super::upto::Upto;
use super::{Error, PartitionProjector, Parts, Step, Trouble};

/// Partitions that are folded at the same time while nobody is served: one for each core of a small machine.
const AT_ONCE: usize = 2;
/// The same beside processes that serve people: one core is theirs.
const AT_ONCE_BESIDE: usize = 1;
/// How often it is looked whether another process has built the missing schema.
const BUILT_ELSEWHERE: Duration = Duration::from_millis(500);

/// What was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Built {
  pub facts: u64,
}

/// What a record that this binary does not know does to a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
  /// The schema in use is better than one that lacks what it has.
  Fail,
  /// Nothing is in use: its partition stands still there, as it would while it is kept up to date, and the others are shown.
  LeaveStanding,
}

/// Builds the schema if it is still missing once nobody else builds it.
///
/// # Errors
/// As [`rebuild`].
pub async fn build_missing(parts: &Parts, schemas: &Schemas, schema: &ReadSchema) -> Result<Built, Error> {
  let lock = lock(schemas, schema).await?;
  let built = if schemas.exists(schema).await? { Ok(Built::default()) } else { fill_and_take(parts, schemas, schema, Unknown::LeaveStanding).await };
  lock.release().await;
  built
}

/// Builds this binary's schema while another binary serves from its own, or brings it up to the end of the log if it is there already: this binary then starts without
/// building.
///
/// # Errors
/// As [`rebuild`].
pub async fn prepare(parts: &Parts, schemas: &Schemas) -> Result<Built, Error> {
  let schema = schema::current();
  let lock = lock(schemas, &schema).await?;
  let built = match schemas.exists(&schema).await {
    Ok(true) => catch_up(parts, &schema).await,
    Ok(false) => fill_and_take(parts, schemas, &schema, Unknown::Fail).await,
    Err(error) => Err(error.into()),
  };
  lock.release().await;
  built
}

/// Builds this binary's schema afresh and puts it in the place of the one in use.
///
/// # Errors
/// Log or database fail, or the log holds what this binary does not know. The schema in use stays as it is then.
pub async fn rebuild(parts: &Parts, schemas: &Schemas) -> Result<Built, Error> {
  let schema = schema::current();
  let lock = lock(schemas, &schema).await?;
  let built = fill_and_take(parts, schemas, &schema, Unknown::Fail).await;
  lock.release().await;
  built
}

/// Builds one agent's rows afresh, and lets it go on if it was parked.
///
/// # Errors
/// As [`rebuild`].
pub async fn rebuild_agent(parts: &Parts, schemas: &Schemas, agent: AgentId) -> Result<Built, Error> {
  let schema = schema::current();
  let lock = lock(schemas, &schema).await?;
  let built = rebuild_rows(parts, schemas, &schema, agent).await;
  lock.release().await;
  built
}

/// Empties the schema in use because it was folded from another log, and notes why. Nothing happens when somebody else did it first.
pub(super) async fn begin_again(schemas: &Schemas, schema: &ReadSchema, because: &str, at: Timestamp) -> Result<(), Error> {
  let seen = schemas.positions(schema).await?;
  if schemas.reset(schema, &seen, because, at.0).await? {
    tracing::info!(schema = schema.name(), "the read schema is empty and will be folded anew");
  }
  Ok(())
}

async fn fill_and_take(parts: &Parts, schemas: &Schemas, schema: &ReadSchema, unknown: Unknown) -> Result<Built, Error> {
  let scratch = scratch(schema, "build");
  schemas.drop(&scratch).await?;
  schemas.create(&scratch, Indexes::Later).await?;
  let store = Arc::new(PostgresStore::new(&parts.database, &scratch));
  let partitions = parts.log.identity().await?.partitions;
  let mut built = fill(parts, &store, partitions, unknown).await?;
  schemas.finish(&scratch).await?;
  // What came in while the indexes were made; what comes in from here on is little, and the projector's own work.
  built.facts += fill(parts, &store, partitions, unknown).await?.facts;
  store.close().await;
  schemas.replace(&scratch, schema).await?;
  Ok(built)
}

async fn catch_up(parts: &Parts, schema: &ReadSchema) -> Result<Built, Error> {
  let store = Arc::new(PostgresStore::new(&parts.database, schema));
  let partitions = parts.log.identity().await?.partitions;
  let built = fill(parts, &store, partitions, Unknown::Fail).await;
  store.close().await;
  built
}

/// Folds every partition to the end of the log.
async fn fill(parts: &Parts, store: &Arc<PostgresStore>, partitions: Partition, unknown: Unknown) -> Result<Built, Error> {
  let at_once = at_once(parts).await?;
  let mut built = Built::default();
  let mut tasks = JoinSet::new();
  for partition in 0..partitions {
    while tasks.len() >= at_once {
      built.facts += joined(tasks.join_next().await)?;
    }
    let (log, opener, store) = (Arc::clone(&parts.log), Arc::clone(&parts.opener), Arc::clone(store));
    tasks.spawn(async move {
      let projector = PartitionProjector::open(log, opener, store, partition).await?.for_building(None);
      match to_the_end(projector).await {
        Err(error) if unknown == Unknown::LeaveStanding && error.trouble() == Trouble::Final => {
          tracing::error!(partition, error = &error as &dyn std::error::Error, "a partition is built only so far");
          Ok(0)
        }
        facts => facts,
      }
    });
  }
  while !tasks.is_empty() {
    built.facts += joined(tasks.join_next().await)?;
  }
  Ok(built)
}

async fn at_once(parts: &Parts) -> Result<usize, Error> {
  let pool = parts.database.pool(Role::Tool);
  let alive = nodes::alive(&pool).await.map_err(pa_projections::Error::from);
  pool.close().await;
  let others = alive?.iter().any(|node| node.holder.process != parts.process);
  Ok(if others { AT_ONCE_BESIDE } else { AT_ONCE })
}

fn joined(ended: Option<Result<Result<u64, Error>, tokio::task::JoinError>>) -> Result<u64, Error> {
  match ended {
    None => Ok(0),
    Some(Ok(facts)) => facts,
    Some(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
  }
}

/// Steps until there is nothing to read, and says how many facts there were.
pub(super) async fn to_the_end(mut projector: PartitionProjector<PostgresStore>) -> Result<u64, Error> {
  loop {
    match projector.step().await? {
      Step::Idle => return Ok(projector.facts()),
      Step::Committed(_) | Step::Stale => {}
    }
  }
}

async fn rebuild_rows(parts: &Parts, schemas: &Schemas, schema: &ReadSchema, agent: AgentId) -> Result<Built, Error> {
  let scratch = scratch(schema, "agent");
  schemas.drop(&scratch).await?;
  schemas.create(&scratch, Indexes::Now).await?;
  let store = Arc::new(PostgresStore::new(&parts.database, &scratch));
  let partition = partition_of(agent, parts.log.identity().await?.partitions);
  let open = |log: Arc<dyn EventLog>| PartitionProjector::open(log, Arc::clone(&parts.opener), Arc::clone(&store), partition);
  let before = schemas.position(schema, partition).await?;
  let upto = |end| -> Arc<dyn EventLog> { Arc::new(Upto::new(Arc::clone(&parts.log), end)) };
  let mut facts = to_the_end(open(upto(before.next_position)).await?.for_building(Some(agent))).await?;
  // The partition stands still from here to the exchange, and what is left to fold is what came in meanwhile.
  let exchange = schemas.exchange(schema, partition).await?;
  facts += to_the_end(open(upto(exchange.mark().next_position)).await?.for_building(Some(agent))).await?;
  exchange.finish(&scratch, agent).await?;
  store.close().await;
  schemas.drop(&scratch).await?;
  Ok(Built { facts })
}

pub(super) fn scratch(schema: &ReadSchema, suffix: &str) -> ReadSchema {
  schema.beside(suffix).expect("lower-case letters are a suffix")
}

/// Waits until no other process builds or compares beside a schema.
pub(super) async fn lock(schemas: &Schemas, schema: &ReadSchema) -> Result<Lock, Error> {
  loop {
    if let Some(lock) = schemas.try_lock(schema).await? {
      return Ok(lock);
    }
    tokio::time::sleep(BUILT_ELSEWHERE).await;
  }
}
