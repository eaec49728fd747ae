//! The guarded transaction that writes a checkpoint.

use std::collections::BTreeMap;

use pa_domain::AgentId;
use sqlx::postgres::PgConnection;
use sqlx::{PgPool, Postgres, Transaction};
use uuid::Uuid;

use super::{InputKey, Outcome, Scope, ThingState, Write};
use crate::Error;
use crate::error::{reading, writing};

/// How many causes are kept below the next input: a start compares until 1,000 in a row agree, so this bounds how far a cut of the input log is traced.
const CAUSES_KEPT: i64 = 100_000;

/// Writes a checkpoint, if the partition is still held and the expected checkpoint still stands.
pub async fn write(pool: &PgPool, write: Write) -> Result<Outcome, Error> {
  let mut tx = pool.begin().await.map_err(reading("begin a checkpoint"))?;
  if !holds_lease(&mut tx, &write).await? {
    return Ok(Outcome::LeaseLost);
  }
  finish(tx, &write).await
}

/// Writes a checkpoint beside the decider that holds the partition, which keeps another fold version: nobody who keeps this one may have moved it, or nothing is written.
pub async fn write_beside(pool: &PgPool, write: Write) -> Result<Outcome, Error> {
  let tx = pool.begin().await.map_err(reading("begin a checkpoint"))?;
  finish(tx, &write).await
}

async fn finish(mut tx: Transaction<'_, Postgres>, write: &Write) -> Result<Outcome, Error> {
  if !move_mark(&mut tx, write).await? {
    return Ok(Outcome::Moved);
  }
  write_things(&mut tx, write.scope, &write.things).await?;
  write_keys(&mut tx, write).await?;
  write_causes(&mut tx, write).await?;
  tx.commit().await.map_err(writing("commit a checkpoint"))?;
  Ok(Outcome::Written)
}

async fn holds_lease(connection: &mut PgConnection, write: &Write) -> Result<bool, Error> {
  // Shared: a renewal waits for this short transaction, a takeover too, and then finds the checkpoint written.
  let held: Option<i32> = sqlx::query_scalar("SELECT 1 FROM ops.partition_lease WHERE part = $1 AND process = $2 AND epoch = $3 FOR SHARE")
    .bind(write.scope.part)
    .bind(write.process)
    .bind(write.lease_epoch)
    .fetch_optional(connection)
    .await
    .map_err(reading("check the lease for a checkpoint"))?;
  Ok(held.is_some())
}

async fn move_mark(connection: &mut PgConnection, write: &Write) -> Result<bool, Error> {
  let statement = if write.expected.is_some() {
    "UPDATE ops.decider_checkpoint
     SET next_input = $3, next_position = $4, epoch = $5, seq = $6, last = $7, written_at = now()
     WHERE part = $1 AND fold_version = $2 AND next_position = $8"
  } else {
    "INSERT INTO ops.decider_checkpoint (part, fold_version, next_input, next_position, epoch, seq, last)
     SELECT $1, $2, $3, $4, $5, $6, $7 WHERE $8::bigint IS NULL
     ON CONFLICT (part, fold_version) DO NOTHING"
  };
  let done = sqlx::query(statement)
    .bind(write.scope.part)
    .bind(write.scope.fold_version)
    .bind(write.mark.next_input)
    .bind(write.mark.next_position)
    .bind(write.mark.epoch)
    .bind(write.mark.seq)
    .bind(write.mark.last.as_slice())
    .bind(write.expected)
    .execute(connection)
    .await
    .map_err(reading("move a checkpoint's mark"))?;
  Ok(done.rows_affected() == 1)
}

async fn write_things(connection: &mut PgConnection, scope: Scope, things: &[ThingState]) -> Result<(), Error> {
  let (kept, removed): (Vec<&ThingState>, Vec<&ThingState>) = things.iter().partition(|thing| !thing.state.is_empty());
  let ids = |things: &[&ThingState]| -> (Vec<Uuid>, Vec<Uuid>) { things.iter().map(|thing| (thing.agent.0, thing.thing)).unzip() };
  if !kept.is_empty() {
    let (agents, names) = ids(&kept);
    let states: Vec<&[u8]> = kept.iter().map(|thing| thing.state.as_slice()).collect();
    sqlx::query(
      "INSERT INTO ops.entity_state (part, fold_version, agent, thing, state)
       SELECT $1, $2, agent, thing, state FROM unnest($3::uuid[], $4::uuid[], $5::bytea[]) AS changed (agent, thing, state)
       ON CONFLICT (part, fold_version, agent, thing) DO UPDATE SET state = excluded.state",
    )
    .bind(scope.part)
    .bind(scope.fold_version)
    .bind(agents)
    .bind(names)
    .bind(states)
    .execute(&mut *connection)
    .await
    .map_err(reading("write things"))?;
  }
  if !removed.is_empty() {
    let (agents, names) = ids(&removed);
    sqlx::query(
      "DELETE FROM ops.entity_state AS state USING unnest($3::uuid[], $4::uuid[]) AS gone (agent, thing)
       WHERE state.part = $1 AND state.fold_version = $2 AND state.agent = gone.agent AND state.thing = gone.thing",
    )
    .bind(scope.part)
    .bind(scope.fold_version)
    .bind(agents)
    .bind(names)
    .execute(connection)
    .await
    .map_err(reading("remove things"))?;
  }
  Ok(())
}

async fn write_keys(connection: &mut PgConnection, write: &Write) -> Result<(), Error> {
  // A key that came again after its window is in the list twice at most: the later one stands, as in the table.
  let latest: BTreeMap<(AgentId, &str, [u8; 32]), &InputKey> = write.keys.iter().map(|key| ((key.agent, key.producer.as_str(), key.key), key)).collect();
  let keys: Vec<&InputKey> = latest.into_values().collect();
  if !keys.is_empty() {
    sqlx::query(
      "INSERT INTO ops.input_keys (part, fold_version, agent, producer, key, position, cause, content, at_ms)
       SELECT $1, $2, agent, producer, key, position, cause, content, at_ms
       FROM unnest($3::uuid[], $4::text[], $5::bytea[], $6::bigint[], $7::uuid[], $8::bytea[], $9::bigint[])
         AS recorded (agent, producer, key, position, cause, content, at_ms)
       ON CONFLICT (part, fold_version, agent, producer, key)
       DO UPDATE SET position = excluded.position, cause = excluded.cause, content = excluded.content, at_ms = excluded.at_ms",
    )
    .bind(write.scope.part)
    .bind(write.scope.fold_version)
    .bind(keys.iter().map(|key| key.agent.0).collect::<Vec<_>>())
    .bind(keys.iter().map(|key| key.producer.as_str()).collect::<Vec<_>>())
    .bind(keys.iter().map(|key| key.key.as_slice()).collect::<Vec<_>>())
    .bind(keys.iter().map(|key| key.position).collect::<Vec<_>>())
    .bind(keys.iter().map(|key| key.cause).collect::<Vec<_>>())
    .bind(keys.iter().map(|key| key.content.as_ref().map(<[u8; 32]>::as_slice)).collect::<Vec<_>>())
    .bind(keys.iter().map(|key| key.at_ms).collect::<Vec<_>>())
    .execute(&mut *connection)
    .await
    .map_err(reading("write input keys"))?;
  }
  sqlx::query("DELETE FROM ops.input_keys WHERE part = $1 AND fold_version = $2 AND at_ms < $3")
    .bind(write.scope.part)
    .bind(write.scope.fold_version)
    .bind(write.keys_expire_before_ms)
    .execute(connection)
    .await
    .map_err(reading("expire input keys"))?;
  Ok(())
}

async fn write_causes(connection: &mut PgConnection, write: &Write) -> Result<(), Error> {
  let latest: BTreeMap<i64, Uuid> = write.causes.iter().copied().collect();
  if !latest.is_empty() {
    let (positions, causes): (Vec<i64>, Vec<Uuid>) = latest.into_iter().unzip();
    sqlx::query(
      "INSERT INTO ops.input_causes (part, fold_version, position, cause)
       SELECT $1, $2, position, cause FROM unnest($3::bigint[], $4::uuid[]) AS decided (position, cause)
       ON CONFLICT (part, fold_version, position) DO UPDATE SET cause = excluded.cause",
    )
    .bind(write.scope.part)
    .bind(write.scope.fold_version)
    .bind(positions)
    .bind(causes)
    .execute(&mut *connection)
    .await
    .map_err(reading("write the causes of decided inputs"))?;
  }
  sqlx::query("DELETE FROM ops.input_causes WHERE part = $1 AND fold_version = $2 AND position < $3")
    .bind(write.scope.part)
    .bind(write.scope.fold_version)
    .bind(write.mark.next_input - CAUSES_KEPT)
    .execute(connection)
    .await
    .map_err(reading("forget old causes"))?;
  Ok(())
}
