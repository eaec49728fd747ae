//! The decider's lease on a partition, the epoch in it, and the note on an input that may kill its process.
//!
//! The epoch rises in this row first and is announced in the log afterwards, so no two announcements ever carry the same one. A start that finds the row not given
//! back cleanly decides the first inputs one at a time and notes each here before it decides it: a process that dies under a note is counted on it. A note for
//! another input, or for the same input after another quarantine of it, starts at zero. A process that lost its lease and lives after all takes its count back.

use pa_domain::NodeId;
use sqlx::PgPool;
use uuid::Uuid;

use super::{Holder, LEASE_SECONDS};
use crate::Error;
use crate::error::{reading, writing};

/// An input under which a process was deciding, and how many processes died so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
  pub input: Uuid,
  /// How often this input had been quarantined when it was noted.
  pub quarantined_before: i32,
  pub deaths: i32,
}

/// A term of a partition's decider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
  pub epoch: i64,
  /// The holder before gave the row back, so nothing was cut off in the middle.
  pub clean: bool,
  pub note: Option<Note>,
}

/// The answer to an attempt to take a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
  Taken(Term),
  /// Somebody else's lease still runs.
  Held {
    by: Holder,
    expires_in_ms: i64,
  },
}

/// One partition's row, for the system page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
  pub part: i16,
  pub epoch: i64,
  pub holder: Option<Holder>,
  /// The lease runs.
  pub live: bool,
  pub clean: bool,
}

/// Takes a partition if it is free, run out, or this process's own already; a `starting` process also takes what an earlier process of its node holds, at once.
/// The epoch rises by one.
pub async fn take(pool: &PgPool, part: i16, holder: Holder, starting: bool) -> Result<Take, Error> {
  // Rounds, because the statement that creates the row does not see it yet, and a row that was found taken may be given back before it is read by whom.
  for _ in 0..3 {
    if let Some(term) = try_take(pool, part, holder, starting).await? {
      return Ok(Take::Taken(term));
    }
    if let Some((by, expires_in_ms)) = held_by(pool, part).await? {
      return Ok(Take::Held { by, expires_in_ms });
    }
  }
  Ok(Take::Held { by: holder, expires_in_ms: 0 })
}

type TermRow = (i64, bool, Option<Uuid>, i32, i32);

async fn try_take(pool: &PgPool, part: i16, holder: Holder, starting: bool) -> Result<Option<Term>, Error> {
  // `before` is read under the row lock, so what it says is what this statement replaces. A death counts when the row was left behind by another process that had
  // written the note which still stands.
  let row: Option<TermRow> = sqlx::query_as(
    "WITH new AS (
       INSERT INTO ops.partition_lease (part) VALUES ($1) ON CONFLICT (part) DO NOTHING
     ), before AS (
       SELECT part, clean, (NOT clean AND note_input IS NOT NULL AND process IS DISTINCT FROM $3 AND note_process = process) AS died
       FROM ops.partition_lease
       WHERE part = $1 AND (process IS NULL OR process = $3 OR expires_at <= clock_timestamp() OR ($4 AND node = $2))
       FOR UPDATE
     )
     UPDATE ops.partition_lease AS lease
     SET epoch = lease.epoch + 1, node = $2, process = $3, clean = false,
         expires_at = clock_timestamp() + make_interval(secs => $5),
         note_deaths = lease.note_deaths + before.died::int,
         note_dead_process = CASE WHEN before.died THEN lease.process ELSE lease.note_dead_process END
     FROM before
     WHERE lease.part = before.part
     RETURNING lease.epoch, before.clean, lease.note_input, lease.note_quarantined_before, lease.note_deaths",
  )
  .bind(part)
  .bind(holder.node.0)
  .bind(holder.process)
  .bind(starting)
  .bind(LEASE_SECONDS)
  .fetch_optional(pool)
  .await
  .map_err(writing("take a partition's lease"))?;
  Ok(row.map(|(epoch, clean, input, quarantined_before, deaths)| Term { epoch, clean, note: input.map(|input| Note { input, quarantined_before, deaths }) }))
}

async fn held_by(pool: &PgPool, part: i16) -> Result<Option<(Holder, i64)>, Error> {
  let row: Option<(Uuid, Uuid, i64)> = sqlx::query_as(
    "SELECT node, process, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint
     FROM ops.partition_lease WHERE part = $1 AND process IS NOT NULL AND expires_at > clock_timestamp()",
  )
  .bind(part)
  .fetch_optional(pool)
  .await
  .map_err(reading("read a partition's lease"))?;
  Ok(row.map(|(node, process, expires_in_ms)| (Holder { node: NodeId(node), process }, expires_in_ms)))
}

/// Whether the last holder gave the partition back, or nobody ever held it: it is there for whoever has room for it.
pub async fn is_given_back(pool: &PgPool, part: i16) -> Result<bool, Error> {
  let held: Option<bool> = sqlx::query_scalar("SELECT process IS NOT NULL FROM ops.partition_lease WHERE part = $1")
    .bind(part)
    .fetch_optional(pool)
    .await
    .map_err(reading("look whether a partition was given back"))?;
  Ok(!held.unwrap_or(false))
}

/// Opens a new term: the epoch becomes one more than the higher of the row's and `above` (the highest that the log accepted). `None` when the row is no longer
/// this process's own.
pub async fn new_term(pool: &PgPool, part: i16, process: Uuid, above: i64) -> Result<Option<i64>, Error> {
  sqlx::query_scalar(
    "UPDATE ops.partition_lease
     SET epoch = greatest(epoch, $3) + 1, expires_at = clock_timestamp() + make_interval(secs => $4)
     WHERE part = $1 AND process = $2
     RETURNING epoch",
  )
  .bind(part)
  .bind(process)
  .bind(above)
  .bind(LEASE_SECONDS)
  .fetch_optional(pool)
  .await
  .map_err(writing("open a new term"))
}

/// Renews the leases that are still this process's own, and names them with their epochs. One that ran out and was taken by nobody is still its own.
pub async fn renew(pool: &PgPool, process: Uuid, parts: &[i16]) -> Result<Vec<(i16, i64)>, Error> {
  sqlx::query_as(
    "UPDATE ops.partition_lease
     SET expires_at = clock_timestamp() + make_interval(secs => $3)
     WHERE process = $1 AND part = ANY($2)
     RETURNING part, epoch",
  )
  .bind(process)
  .bind(parts)
  .bind(LEASE_SECONDS)
  .fetch_all(pool)
  .await
  .map_err(writing("renew partition leases"))
}

/// Gives a partition back cleanly: the next holder takes it at once and need not look for a deadly input. `false` when it was no longer this process's own.
pub async fn give_back(pool: &PgPool, part: i16, process: Uuid, epoch: i64) -> Result<bool, Error> {
  let done = sqlx::query(
    "UPDATE ops.partition_lease
     SET node = NULL, process = NULL, clean = true, expires_at = '-infinity',
         note_input = NULL, note_process = NULL, note_deaths = 0, note_quarantined_before = 0, note_dead_process = NULL
     WHERE part = $1 AND process = $2 AND epoch = $3",
  )
  .bind(part)
  .bind(process)
  .bind(epoch)
  .execute(pool)
  .await
  .map_err(writing("give a partition back"))?;
  Ok(done.rows_affected() == 1)
}

/// Notes the input that is decided next, before it is decided. `false` when the row is no longer this process's own in this epoch. How many died under this same
/// note before is in the [`Term`] of the take.
pub async fn note(pool: &PgPool, part: i16, process: Uuid, epoch: i64, input: Uuid, quarantined_before: i32) -> Result<bool, Error> {
  let done = sqlx::query(
    "UPDATE ops.partition_lease
     SET note_deaths = CASE WHEN note_input = $4 AND note_quarantined_before = $5 THEN note_deaths ELSE 0 END,
         note_dead_process = CASE WHEN note_input = $4 AND note_quarantined_before = $5 THEN note_dead_process END,
         note_input = $4, note_quarantined_before = $5, note_process = $2
     WHERE part = $1 AND process = $2 AND epoch = $3",
  )
  .bind(part)
  .bind(process)
  .bind(epoch)
  .bind(input)
  .bind(quarantined_before)
  .execute(pool)
  .await
  .map_err(writing("note an input"))?;
  Ok(done.rows_affected() == 1)
}

/// Removes the note: from here on nothing is noted. `false` when the row is no longer this process's own.
pub async fn clear_note(pool: &PgPool, part: i16, process: Uuid, epoch: i64) -> Result<bool, Error> {
  let done = sqlx::query(
    "UPDATE ops.partition_lease
     SET note_input = NULL, note_process = NULL, note_deaths = 0, note_quarantined_before = 0, note_dead_process = NULL
     WHERE part = $1 AND process = $2 AND epoch = $3",
  )
  .bind(part)
  .bind(process)
  .bind(epoch)
  .execute(pool)
  .await
  .map_err(writing("clear a note"))?;
  Ok(done.rows_affected() == 1)
}

/// A process that finds its lease taken, and so lives, takes back the death that its taker counted; also one that is about to end by itself. `true` when there was
/// one.
pub async fn lost_alive(pool: &PgPool, part: i16, process: Uuid) -> Result<bool, Error> {
  let done = sqlx::query(
    "UPDATE ops.partition_lease
     SET note_deaths = greatest(note_deaths - 1, 0), note_dead_process = NULL
     WHERE part = $1 AND note_dead_process = $2",
  )
  .bind(part)
  .bind(process)
  .execute(pool)
  .await
  .map_err(writing("take back a counted death"))?;
  Ok(done.rows_affected() == 1)
}

type StateRow = (i16, i64, Option<Uuid>, Option<Uuid>, bool, bool);

/// All partitions' rows, for the system page.
pub async fn read(pool: &PgPool) -> Result<Vec<Row>, Error> {
  let rows: Vec<StateRow> = sqlx::query_as(
    "SELECT part, epoch, node, process, (process IS NOT NULL AND expires_at > clock_timestamp()), clean
     FROM ops.partition_lease ORDER BY part",
  )
  .fetch_all(pool)
  .await
  .map_err(reading("read the partition leases"))?;
  let row = |(part, epoch, node, process, live, clean): StateRow| Row {
    part,
    epoch,
    holder: node.zip(process).map(|(node, process)| Holder { node: NodeId(node), process }),
    live,
    clean,
  };
  Ok(rows.into_iter().map(row).collect())
}
