//! Appending: statements for what waits in a stream's lane; `waiting.rs` says what goes into each.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use pa_store::Disposition;
use pa_store::pool::Kept;
use sqlx::{AssertSqlSafe, PgPool, Row};
use tokio::sync::{mpsc, oneshot};

use super::waiting::Waiting;
use super::{Tail, remote};
use crate::port::AppendError;
use crate::record::{Partition, Position, Record, Stream};

/// Appends that a lane has taken in; beyond it they wait in its channel.
const WAITING_MAX: usize = 1_024;

pub(super) struct Request {
  pub(super) partition: Partition,
  pub(super) records: Vec<Record>,
  pub(super) reply: oneshot::Sender<Result<Vec<Position>, AppendError>>,
}

pub(super) struct Lane {
  pub(super) stream: Stream,
  pub(super) pool: PgPool,
  /// A statement's own connection, as long as one follows the other.
  pub(super) kept: Kept,
  pub(super) tails: Arc<HashMap<(Stream, Partition), Tail>>,
  pub(super) remote: Arc<AtomicBool>,
}

#[expect(clippy::disallowed_methods, reason = "a lane lives as long as its log: it ends by itself when the last sender is gone")]
pub(super) fn spawn(lane: Lane, requests: mpsc::Receiver<Request>) {
  tokio::spawn(async move { lane.run(requests).await });
}

fn statement(stream: Stream) -> String {
  let name = stream.name();
  format!(
    "WITH moved AS (\
       UPDATE log.heads AS h SET next = h.next + w.n FROM unnest($1::int2[], $2::int8[]) AS w(part, n) \
       WHERE h.stream = '{name}' AND h.part = w.part RETURNING h.part, h.next - w.n AS base), \
     landed AS (\
       INSERT INTO log.{name} (part, pos, id, type, source, meta, trace, value) \
       SELECT r.part, m.base + r.n, r.id, r.type, r.source, r.meta, r.trace, r.value \
       FROM unnest($3::int2[], $4::int8[], $5::uuid[], $6::text[], $7::text[], $8::bytea[], $9::text[], $10::bytea[]) \
         AS r(part, n, id, type, source, meta, trace, value) JOIN moved m ON m.part = r.part) \
     SELECT part, base FROM moved"
  )
}

/// The batch as columns.
#[derive(Default)]
struct Columns<'a> {
  moved_parts: Vec<i16>,
  moved_by: Vec<i64>,
  part: Vec<i16>,
  n: Vec<i64>,
  id: Vec<uuid::Uuid>,
  type_name: Vec<&'a str>,
  source: Vec<&'a str>,
  meta: Vec<&'a [u8]>,
  trace: Vec<Option<&'a str>>,
  value: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
  /// Records of one partition keep the order of their requests; rows are locked in the order of partitions.
  fn of(batch: &'a [Request]) -> Self {
    let mut counts: std::collections::BTreeMap<i16, i64> = std::collections::BTreeMap::new();
    let mut columns = Self::default();
    for request in batch {
      let part = sql_part(request.partition);
      let count = counts.entry(part).or_default();
      for record in &request.records {
        columns.part.push(part);
        columns.n.push(*count);
        columns.id.push(record.id);
        columns.type_name.push(&record.type_name);
        columns.source.push(&record.source);
        columns.meta.push(&record.meta);
        columns.trace.push(record.traceparent.as_deref());
        columns.value.push(&record.value);
        *count += 1;
      }
    }
    (columns.moved_parts, columns.moved_by) = counts.into_iter().unzip();
    columns
  }
}

impl Lane {
  /// Takes what is there, without waiting: batches size themselves by the length of the commit before.
  async fn run(&self, mut requests: mpsc::Receiver<Request>) {
    let statement = &statement(self.stream);
    let (mut waiting, mut writing, mut open) = (Waiting::default(), FuturesUnordered::new(), true);
    loop {
      while let Some((batch, written)) = waiting.next() {
        writing.push(async move {
          self.write(statement, batch).await;
          written
        });
      }
      tokio::select! {
        biased;
        Some(written) = writing.next(), if !writing.is_empty() => waiting.over(written),
        request = requests.recv(), if open && waiting.len() < WAITING_MAX => match request {
          Some(request) => waiting.push(request),
          None => open = false,
        },
        else => return,
      }
      while waiting.len() < WAITING_MAX
        && let Ok(request) = requests.try_recv()
      {
        waiting.push(request);
      }
    }
  }

  async fn write(&self, statement: &str, batch: Vec<Request>) {
    let result = self.insert(statement, &batch).await;
    match result {
      Ok(bases) => self.acknowledge(batch, bases),
      Err(error) => {
        let unknown = error.disposition() == Disposition::Unknown;
        tracing::warn!(stream = self.stream.name(), unknown, error = &error as &dyn std::error::Error, "append failed");
        metrics::counter!("pa_log_append_failures_total", "stream" => self.stream.name()).increment(1);
        self.forget(&batch).await;
        for request in batch {
          let (stream, partition) = (self.stream.name(), request.partition);
          let answer = if unknown {
            AppendError::Unknown { stream, partition, source: None }
          } else {
            AppendError::Refused { stream, partition, reason: error.to_string() }
          };
          answer_caller(request.reply, Err(answer));
        }
      }
    }
  }

  async fn insert(&self, statement: &str, batch: &[Request]) -> Result<HashMap<i16, Position>, pa_store::Error> {
    // Getting the connection is not yet sending: a failure here is certain.
    let mut connection = self.kept.acquire().await.map_err(pa_store::error::reading("reach the log"))?;
    let columns = Columns::of(batch);
    let rows = sqlx::query(AssertSqlSafe(statement))
      .bind(&columns.moved_parts)
      .bind(&columns.moved_by)
      .bind(&columns.part)
      .bind(&columns.n)
      .bind(&columns.id)
      .bind(&columns.type_name)
      .bind(&columns.source)
      .bind(&columns.meta)
      .bind(&columns.trace)
      .bind(&columns.value)
      .fetch_all(&mut *connection)
      .await
      .map_err(pa_store::error::writing("append to the log"))?;
    let mut bases = HashMap::with_capacity(rows.len());
    for row in rows {
      let part: i16 = row.try_get(0).map_err(pa_store::error::writing("append to the log"))?;
      let base: i64 = row.try_get(1).map_err(pa_store::error::writing("append to the log"))?;
      bases.insert(part, base);
    }
    self.kept.keep(connection);
    Ok(bases)
  }

  /// After a failure the server may be another one: readers ask it.
  async fn forget(&self, batch: &[Request]) {
    self.kept.give_back();
    for request in batch {
      if let Some(tail) = self.tails.get(&(self.stream, request.partition)) {
        tail.ring.lock().await.clear();
      }
    }
  }

  fn acknowledge(&self, batch: Vec<Request>, mut next: HashMap<i16, Position>) {
    metrics::counter!("pa_log_records_total", "stream" => self.stream.name()).increment(batch.iter().map(|request| request.records.len() as u64).sum());
    let mut answers = Vec::with_capacity(batch.len());
    for request in batch {
      let Some(position) = next.get_mut(&sql_part(request.partition)) else {
        let reason = "the log has no such partition".to_owned();
        answers.push((request.reply, Err(AppendError::Refused { stream: self.stream.name(), partition: request.partition, reason })));
        continue;
      };
      let first = *position;
      *position += i64::try_from(request.records.len()).unwrap_or(i64::MAX);
      if let Some(tail) = self.tails.get(&(self.stream, request.partition)) {
        // While somebody reads, that read or the next brings these records.
        if let Ok(mut ring) = tail.ring.try_lock() {
          ring.append(first, request.records);
        }
        tail.reaches(*position);
      }
      answers.push((request.reply, Ok((first..*position).collect())));
    }
    if self.remote.load(Ordering::Relaxed) {
      let parts = next.keys().copied().collect();
      remote::tell(&self.pool, self.stream, parts);
    }
    for (reply, answer) in answers {
      answer_caller(reply, answer);
    }
  }
}

/// A caller that went away doesn't mind; the records stay appended.
fn answer_caller(reply: oneshot::Sender<Result<Vec<Position>, AppendError>>, answer: Result<Vec<Position>, AppendError>) {
  if reply.send(answer).is_err() {
    tracing::debug!("the caller of an append went away");
  }
}

pub(super) fn sql_part(partition: Partition) -> i16 {
  i16::try_from(partition).unwrap_or(i16::MAX)
}
