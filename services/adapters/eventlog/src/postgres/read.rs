//! Reading: the shared ring at the tail, a statement elsewhere.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::TryStreamExt as _;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgPool, Row as _};

use super::append::sql_part;
use super::{STREAMS, Tail, away};
use crate::port::LogError;
use crate::record::{Partition, Position, Record, Stored, Stream};

/// Records of one statement at most, whatever the caller asks for.
const READ_RECORDS_MAX: usize = 4_096;
/// Bytes after which an answer ends, so that large records fill no memory; one record more than that always fits.
const READ_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a statement saw.
struct Seen {
  records: Arc<[Arc<Stored>]>,
  /// It saw all that there was.
  whole: bool,
}

pub(super) async fn read(pool: &PgPool, tail: &Tail, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError> {
  let mut ring = tail.ring.lock().await;
  if let Some(known) = ring.get(from, max) {
    return Ok(known);
  }
  if !ring.wants(from) {
    // A reader far behind must not hold the others up.
    drop(ring);
    return Ok(select(pool, stream, partition, from, max).await?.records);
  }
  // Asked for before the look, so that a hint that comes meanwhile counts for the next one.
  let stirred = tail.stirred.swap(false, Ordering::AcqRel);
  if !stirred && *tail.end.borrow() <= from && ring.ends_at(from) {
    return Ok(Arc::from([]));
  }
  // Under the lock, so that all readers that wait at the tail share one statement.
  let seen = match select(pool, stream, partition, from, max).await {
    Ok(seen) => seen,
    Err(error) => {
      // After a lost connection the server may be another one: nothing that was read before it counts as read again.
      ring.clear();
      return Err(error);
    }
  };
  ring.put(from, &seen.records, seen.whole);
  Ok(seen.records)
}

async fn select(pool: &PgPool, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Seen, LogError> {
  let failed = |error| away(pa_store::error::reading("read the log")(error));
  let statement = match stream {
    Stream::Inputs => "SELECT pos, id, type, source, meta, trace, value FROM log.inputs WHERE part = $1 AND pos >= $2 ORDER BY pos LIMIT $3",
    Stream::Events => "SELECT pos, id, type, source, meta, trace, value FROM log.events WHERE part = $1 AND pos >= $2 ORDER BY pos LIMIT $3",
    Stream::Pieces => "SELECT pos, id, type, source, meta, trace, value FROM log.stream WHERE part = $1 AND pos >= $2 ORDER BY pos LIMIT $3",
  };
  let max = max.min(READ_RECORDS_MAX);
  let mut rows = sqlx::query(statement).bind(sql_part(partition)).bind(from).bind(i64::try_from(max).unwrap_or(i64::MAX)).fetch(pool);
  let (mut records, mut bytes, mut names) = (Vec::new(), 0, Names::default());
  while bytes < READ_BYTES_MAX {
    let Some(row) = rows.try_next().await.map_err(failed)? else {
      return Ok(Seen { whole: records.len() < max, records: records.into() });
    };
    let stored = stored(&row, &mut names).map_err(failed)?;
    bytes += stored.record.size_bytes();
    records.push(Arc::new(stored));
  }
  Ok(Seen { records: records.into(), whole: false })
}

fn stored(row: &PgRow, names: &mut Names) -> Result<Stored, sqlx::Error> {
  let record = Record {
    id: row.try_get(1)?,
    type_name: names.shared(row.try_get(2)?),
    source: names.shared(row.try_get(3)?),
    traceparent: row.try_get::<Option<&str>, _>(5)?.map(Arc::from),
    meta: bytes::Bytes::copy_from_slice(row.try_get(4)?),
    value: bytes::Bytes::copy_from_slice(row.try_get(6)?),
  };
  Ok(Stored::new(row.try_get(0)?, record))
}

/// Type and source names repeat: one allocation each for a batch.
#[derive(Default)]
struct Names(Vec<Arc<str>>);

impl Names {
  fn shared(&mut self, name: &str) -> Arc<str> {
    if let Some(known) = self.0.iter().find(|known| known.as_ref() == name) {
      return Arc::clone(known);
    }
    let name: Arc<str> = Arc::from(name);
    self.0.push(Arc::clone(&name));
    name
  }
}

pub(super) async fn end(pool: &PgPool, stream: Stream, partition: Partition) -> Result<Position, LogError> {
  sqlx::query_scalar("SELECT next FROM log.heads WHERE stream = $1 AND part = $2")
    .bind(stream.name())
    .bind(sql_part(partition))
    .fetch_optional(pool)
    .await
    .map_err(|error| away(pa_store::error::reading("read the end of the log")(error)))
    .map(Option::unwrap_or_default)
}

pub(super) async fn make_heads(pool: &PgPool, partitions: Partition) -> Result<(), LogError> {
  for stream in STREAMS {
    sqlx::query("INSERT INTO log.heads (stream, part) SELECT $1, part FROM generate_series(0, $2::int2 - 1) AS part ON CONFLICT DO NOTHING")
      .bind(stream.name())
      .bind(sql_part(partitions))
      .execute(pool)
      .await
      .map_err(|error| away(pa_store::error::writing("make the log's partitions")(error)))?;
  }
  Ok(())
}

/// Deletes the records of a stream that were appended longer ago than `older_than_secs`, below `keep_from`. Facts are never deleted.
pub(super) async fn expire(pool: &PgPool, stream: Stream, partition: Partition, older_than_secs: i64, keep_from: Position) -> Result<u64, LogError> {
  let table = match stream {
    Stream::Inputs => "inputs",
    Stream::Pieces => "stream",
    Stream::Events => return Err(LogError::Unusable("facts are kept for ever".into())),
  };
  // Positions rise with time, so the first young record bounds the deletion.
  let statement = format!(
    "DELETE FROM log.{table} WHERE part = $1 AND pos < LEAST($2, COALESCE(\
       (SELECT pos FROM log.{table} WHERE part = $1 AND appended_at >= now() - make_interval(secs => $3) ORDER BY pos LIMIT 1), $2))"
  );
  let deleted = sqlx::query(AssertSqlSafe(statement))
    .bind(sql_part(partition))
    .bind(keep_from)
    .bind(older_than_secs as f64)
    .execute(pool)
    .await
    .map_err(|error| away(pa_store::error::writing("expire old inputs")(error)))?;
  Ok(deleted.rows_affected())
}
