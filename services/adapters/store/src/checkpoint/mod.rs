//! What a decider writes down of its partition, so that a start reads only the tail of the log.
//!
//! Invariants:
//! - A write is one synchronous transaction: changed things, keys, causes and the mark move together or not at all.
//! - It is guarded by the partition's lease row (this process, this epoch) and by the position that the last checkpoint had: a decider that lost its term, or never
//!   saw what another wrote, writes nothing.
//! - Things are read in one statement with the checkpoint's position, so a thing of another checkpoint than the one the decider stands on is noticed.
//! - A dropped checkpoint takes its things, keys and causes along.
//!
//! States are opaque bytes here; the decider alone knows what is in them.

#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;
use sqlx::{Acquire as _, PgPool};
use uuid::Uuid;

pub use write::{write, write_beside};

use crate::Error;
use crate::error::{reading, writing};

/// The thing id under which an agent's root is kept.
pub const ROOT: Uuid = Uuid::nil();

/// Which partition's state, folded by which version of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
  pub part: i16,
  pub fold_version: i32,
}

/// Where a checkpoint stands: the next input to decide, and the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
  pub next_input: i64,
  pub next_position: i64,
  pub epoch: i64,
  pub seq: i64,
  /// SHA-256 of the whole record before `next_position`.
  pub last: [u8; 32],
}

/// A root or thing with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThingState {
  pub agent: AgentId,
  pub thing: Uuid,
  pub state: Vec<u8>,
}

/// Things as one checkpoint has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
  /// The checkpoint's position at that very moment; `None` when there is no checkpoint (and then no thing either).
  pub next_position: Option<i64>,
  pub things: Vec<ThingState>,
}

/// An idempotency key that a decision recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputKey {
  pub agent: AgentId,
  pub producer: String,
  pub key: [u8; 32],
  /// The input's position, and its id.
  pub position: i64,
  pub cause: Uuid,
  /// The hash of the business fields, for keys that a client made.
  pub content: Option<[u8; 32]>,
  pub at_ms: i64,
}

/// One checkpoint to write.
#[derive(Clone, Debug)]
pub struct Write {
  pub scope: Scope,
  /// The guard: the process and epoch in which the partition is held.
  pub process: Uuid,
  pub lease_epoch: i64,
  /// The position of the checkpoint that this one follows; `None` for the first.
  pub expected: Option<i64>,
  pub mark: Mark,
  /// Things changed since; an empty state removes the thing.
  pub things: Vec<ThingState>,
  pub keys: Vec<InputKey>,
  /// For each input position decided by a decision not marked held: the id of that input. Of two for one position the later in the list stands.
  pub causes: Vec<(i64, Uuid)>,
  /// Keys older than this leave.
  pub keys_expire_before_ms: i64,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
  Written,
  /// The partition is no longer held by this process in this epoch: the term is over.
  LeaseLost,
  /// Another checkpoint stands than the one expected: the term is over.
  Moved,
}

/// Reads a partition's checkpoint.
pub async fn load(pool: &PgPool, scope: Scope) -> Result<Option<Mark>, Error> {
  let row: Option<(i64, i64, i64, i64, Vec<u8>)> =
    sqlx::query_as("SELECT next_input, next_position, epoch, seq, last FROM ops.decider_checkpoint WHERE part = $1 AND fold_version = $2")
      .bind(scope.part)
      .bind(scope.fold_version)
      .fetch_optional(pool)
      .await
      .map_err(reading("load a checkpoint"))?;
  Ok(row.map(|(next_input, next_position, epoch, seq, last)| Mark { next_input, next_position, epoch, seq, last: hash(&last) }))
}

/// Reads some things, together with the checkpoint's position.
pub async fn things(pool: &PgPool, scope: Scope, wanted: &[(AgentId, Uuid)]) -> Result<Loaded, Error> {
  let agents: Vec<Uuid> = wanted.iter().map(|(agent, _)| agent.0).collect();
  let things: Vec<Uuid> = wanted.iter().map(|(_, thing)| *thing).collect();
  let rows = sqlx::query_as(
    "SELECT mark.next_position, state.agent, state.thing, state.state
     FROM ops.decider_checkpoint AS mark
     LEFT JOIN (unnest($3::uuid[], $4::uuid[]) AS wanted (agent, thing)
       JOIN ops.entity_state AS state ON state.part = $1 AND state.fold_version = $2 AND state.agent = wanted.agent AND state.thing = wanted.thing) ON true
     WHERE mark.part = $1 AND mark.fold_version = $2",
  )
  .bind(scope.part)
  .bind(scope.fold_version)
  .bind(agents)
  .bind(things)
  .fetch_all(pool)
  .await
  .map_err(reading("load things"))?;
  Ok(loaded(rows))
}

/// Reads all things of an agent, together with the checkpoint's position.
pub async fn things_of(pool: &PgPool, scope: Scope, agent: AgentId) -> Result<Loaded, Error> {
  let rows = sqlx::query_as(
    "SELECT mark.next_position, state.agent, state.thing, state.state
     FROM ops.decider_checkpoint AS mark
     LEFT JOIN ops.entity_state AS state ON state.part = mark.part AND state.fold_version = mark.fold_version AND state.agent = $3
     WHERE mark.part = $1 AND mark.fold_version = $2",
  )
  .bind(scope.part)
  .bind(scope.fold_version)
  .bind(agent.0)
  .fetch_all(pool)
  .await
  .map_err(reading("load an agent's things"))?;
  Ok(loaded(rows))
}

type KeyRow = (Uuid, String, Vec<u8>, i64, Uuid, Option<Vec<u8>>, i64);

/// Looks up keys; those never recorded, or expired, are missing from the answer.
pub async fn keys(pool: &PgPool, scope: Scope, wanted: &[(AgentId, &str, [u8; 32])]) -> Result<Vec<InputKey>, Error> {
  let agents: Vec<Uuid> = wanted.iter().map(|(agent, _, _)| agent.0).collect();
  let producers: Vec<&str> = wanted.iter().map(|(_, producer, _)| *producer).collect();
  let hashes: Vec<&[u8]> = wanted.iter().map(|(_, _, key)| key.as_slice()).collect();
  let rows: Vec<KeyRow> = sqlx::query_as(
    "SELECT found.agent, found.producer, found.key, found.position, found.cause, found.content, found.at_ms
     FROM unnest($3::uuid[], $4::text[], $5::bytea[]) AS wanted (agent, producer, key)
     JOIN ops.input_keys AS found ON found.part = $1 AND found.fold_version = $2
       AND found.agent = wanted.agent AND found.producer = wanted.producer AND found.key = wanted.key",
  )
  .bind(scope.part)
  .bind(scope.fold_version)
  .bind(agents)
  .bind(producers)
  .bind(hashes)
  .fetch_all(pool)
  .await
  .map_err(reading("look up input keys"))?;
  let key = |(agent, producer, key, position, cause, content, at_ms): KeyRow| InputKey {
    agent: AgentId(agent),
    producer,
    key: hash(&key),
    position,
    cause,
    content: content.as_deref().map(hash),
    at_ms,
  };
  Ok(rows.into_iter().map(key).collect())
}

/// The first bytes of all keys of these agents, at most `max` for each; keys are keyed hashes, so that eight bytes tell them apart nearly always.
pub async fn keys_of(pool: &PgPool, scope: Scope, agents: &[AgentId], max: i64) -> Result<Vec<(AgentId, [u8; 8])>, Error> {
  let agents: Vec<Uuid> = agents.iter().map(|agent| agent.0).collect();
  let rows: Vec<(Uuid, Vec<u8>)> = sqlx::query_as(
    "SELECT wanted.agent, substring(recorded.key FOR 8) FROM unnest($3::uuid[]) AS wanted (agent)
     CROSS JOIN LATERAL (SELECT key FROM ops.input_keys WHERE part = $1 AND fold_version = $2 AND agent = wanted.agent LIMIT $4) AS recorded",
  )
  .bind(scope.part)
  .bind(scope.fold_version)
  .bind(agents)
  .bind(max)
  .fetch_all(pool)
  .await
  .map_err(reading("read an agent's input keys"))?;
  let short = |key: Vec<u8>| key.try_into().expect("the table's check allows 32 bytes only");
  Ok(rows.into_iter().map(|(agent, key)| (AgentId(agent), short(key))).collect())
}

/// The causes recorded below an input position, downwards from it.
pub async fn causes_below(pool: &PgPool, scope: Scope, position: i64, limit: i64) -> Result<Vec<(i64, Uuid)>, Error> {
  sqlx::query_as(
    "SELECT position, cause FROM ops.input_causes
     WHERE part = $1 AND fold_version = $2 AND position < $3 ORDER BY position DESC LIMIT $4",
  )
  .bind(scope.part)
  .bind(scope.fold_version)
  .bind(position)
  .bind(limit)
  .fetch_all(pool)
  .await
  .map_err(reading("read the causes of decided inputs"))
}

/// Drops a partition's checkpoint with its things, keys and causes: the next start reads the log from its beginning.
pub async fn drop(pool: &PgPool, scope: Scope) -> Result<(), Error> {
  let mut tx = pool.begin().await.map_err(reading("begin to drop a checkpoint"))?;
  for statement in [
    "DELETE FROM ops.decider_checkpoint WHERE part = $1 AND fold_version = $2",
    "DELETE FROM ops.entity_state WHERE part = $1 AND fold_version = $2",
    "DELETE FROM ops.input_keys WHERE part = $1 AND fold_version = $2",
    "DELETE FROM ops.input_causes WHERE part = $1 AND fold_version = $2",
  ] {
    let connection = tx.acquire().await.map_err(reading("drop a checkpoint"))?;
    sqlx::query(statement).bind(scope.part).bind(scope.fold_version).execute(connection).await.map_err(reading("drop a checkpoint"))?;
  }
  tx.commit().await.map_err(writing("commit dropping a checkpoint"))
}

/// Forgets the things and keys of an erased agent, and whatever other fold versions have of it. The root of this one stays: it is, or the next checkpoint makes it, the
/// tombstone that the agent's ordinals and chain go on from. Causes stay too: they hold ids of inputs only.
pub async fn forget_agent(pool: &PgPool, scope: Scope, agent: AgentId) -> Result<(), Error> {
  sqlx::query(
    "WITH states AS (DELETE FROM ops.entity_state WHERE part = $1 AND agent = $3 AND (fold_version <> $2 OR thing <> $4))
     DELETE FROM ops.input_keys WHERE part = $1 AND agent = $3",
  )
  .bind(scope.part)
  .bind(scope.fold_version)
  .bind(agent.0)
  .bind(ROOT)
  .execute(pool)
  .await
  .map_err(writing("forget an erased agent's states"))?;
  Ok(())
}

/// The fold versions that a partition has a checkpoint of.
pub async fn fold_versions(pool: &PgPool, part: i16) -> Result<Vec<i32>, Error> {
  sqlx::query_scalar("SELECT fold_version FROM ops.decider_checkpoint WHERE part = $1 ORDER BY fold_version")
    .bind(part)
    .fetch_all(pool)
    .await
    .map_err(reading("read the fold versions"))
}

type ThingRow = (i64, Option<Uuid>, Option<Uuid>, Option<Vec<u8>>);

fn loaded(rows: Vec<ThingRow>) -> Loaded {
  let next_position = rows.first().map(|row| row.0);
  let thing = |(_, agent, thing, state): ThingRow| Some(ThingState { agent: AgentId(agent?), thing: thing?, state: state? });
  Loaded { next_position, things: rows.into_iter().filter_map(thing).collect() }
}

fn hash(bytes: &[u8]) -> [u8; 32] {
  bytes.try_into().expect("the table's check allows 32 bytes only")
}
