//! The control in Postgres: the rows and nothing but the rows.
//!
//! *As durable as ours:* the same server, commits that wait for the disk. *As much to carry:* the same tables with the same index (in a database of its own), the same
//! bytes, and the same head row locked by each append: without it a rival's readers would see gaps or miss rows that commit out of order, so that leaving it out would be a
//! promise less. *As quick:* lanes that take what waits and commit it in one prepared `UNNEST` statement, each on a connection of its own, one filling while the other waits for the
//! disk. `COPY` was left out, since it can't hand back positions in the same round trip; so was `synchronous_commit = off`, which is not durable. A reader has a
//! connection and a prepared statement of its own and touches the bytes where they lie in the driver's buffer.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use pa_eventlog::reader::READ_RECORDS_MAX;
use pa_eventlog::{Partition, Position, Record};
use pa_store::{Database, Role};
use sqlx::Connection as _;
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};
use tokio::sync::{mpsc, oneshot, watch};

/// The embedded log has one for each stream; a rival who writes nothing else would take two.
const LANES: u16 = 2;
const LANE_QUEUE: usize = 1_024;
const BATCH_RECORDS_MAX: usize = 1_024;

const INSERT: &str = "WITH moved AS (\
   UPDATE log.heads AS h SET next = h.next + w.n FROM unnest($1::int2[], $2::int8[]) AS w(part, n) \
   WHERE h.stream = 'events' AND h.part = w.part RETURNING h.part, h.next - w.n AS base), \
 landed AS (\
   INSERT INTO log.events (part, pos, id, type, source, meta, trace, value) \
   SELECT r.part, m.base + r.n, r.id, r.type, r.source, r.meta, NULL, r.value \
   FROM unnest($3::int2[], $4::int8[], $5::uuid[], $6::text[], $7::text[], $8::bytea[], $9::bytea[]) \
     AS r(part, n, id, type, source, meta, value) JOIN moved m ON m.part = r.part) \
 SELECT part, base FROM moved";

const READ: &str = "SELECT pos, id, type, source, meta, value FROM log.events WHERE part = $1 AND pos >= $2 ORDER BY pos LIMIT $3";

struct Request {
  part: i16,
  records: Vec<Record>,
  reply: oneshot::Sender<Position>,
}

/// Lanes that insert.
pub(in super::super) struct Log {
  lanes: Vec<mpsc::Sender<Request>>,
  /// The end that was acknowledged, for who waits at it.
  end: watch::Sender<Position>,
}

impl Log {
  pub(super) async fn open(database: &Database, partitions: Partition) -> Result<Self> {
    let end = watch::Sender::new(0);
    let mut lanes = Vec::new();
    for lane in 0..LANES {
      let mut connection = PgConnection::connect_with(&database.connect_options(Role::Log, None)).await.context("connect a lane")?;
      if lane == 0 {
        sqlx::query("INSERT INTO log.heads (stream, part) SELECT 'events', part FROM generate_series(0, $1::int2 - 1) AS part ON CONFLICT DO NOTHING")
          .bind(i16::try_from(partitions).context("few partitions")?)
          .execute(&mut connection)
          .await
          .context("make the raw log's heads")?;
      }
      let (sender, receiver) = mpsc::channel(LANE_QUEUE);
      lanes.push(sender);
      spawn(write(connection, receiver, end.clone()));
    }
    Ok(Self { lanes, end })
  }

  /// Appends finished records; durable when it returns.
  pub(super) async fn append(&self, partition: Partition, records: Vec<Record>) -> Result<Position> {
    let (reply, answer) = oneshot::channel();
    let part = i16::try_from(partition).context("few partitions")?;
    self.lanes[usize::from(partition % LANES)].send(Request { part, records, reply }).await.context("the lane has ended")?;
    answer.await.context("the raw append failed")
  }
}

/// Reads finished rows.
pub(in super::super) struct Reader {
  connection: PgConnection,
  part: i16,
  position: Position,
  /// The end that was acknowledged, for a reader that follows.
  end: Option<watch::Receiver<Position>>,
}

impl Reader {
  pub(super) async fn open(database: &Database, partition: Partition) -> Result<Self> {
    let connection = PgConnection::connect_with(&database.connect_options(Role::Log, None)).await.context("connect a reader")?;
    Ok(Self { connection, part: i16::try_from(partition).context("few partitions")?, position: 0, end: None })
  }

  pub(super) async fn following(log: &Log, database: &Database, partition: Partition) -> Result<Self> {
    let mut reader = Self::open(database, partition).await?;
    reader.end = Some(log.end.subscribe());
    Ok(reader)
  }

  /// Is woken by the acknowledgement, as readers of the product are, and reads.
  pub(super) async fn follow(&mut self) -> Result<()> {
    let position = self.position;
    self.end.as_mut().context("this reader does not follow")?.wait_for(|end| *end > position).await.context("the raw log has ended")?;
    self.read().await.map(drop)
  }

  pub(super) async fn drain(&mut self) -> Result<(u64, u64)> {
    self.position = 0;
    let (mut records, mut sum) = (0, 0_u64);
    loop {
      let (rows, bytes) = self.read().await?;
      if rows == 0 {
        return Ok((records, sum));
      }
      records += rows;
      sum = sum.wrapping_add(bytes);
    }
  }

  /// Reads on and touches each byte; the number of rows and the sum of their bytes.
  async fn read(&mut self) -> Result<(u64, u64)> {
    let limit = i64::try_from(READ_RECORDS_MAX).unwrap_or(i64::MAX);
    let rows: Vec<PgRow> = sqlx::query(READ).bind(self.part).bind(self.position).bind(limit).fetch_all(&mut self.connection).await.context("read raw rows")?;
    let mut sum = 0;
    for row in &rows {
      let (meta, value): (&[u8], &[u8]) = (row.try_get(4)?, row.try_get(5)?);
      sum += meta.iter().chain(value).map(|byte| u64::from(*byte)).sum::<u64>();
    }
    if let Some(last) = rows.last() {
      self.position = last.try_get::<i64, _>(0)? + 1;
    }
    Ok((rows.len() as u64, sum))
  }
}

#[expect(clippy::disallowed_methods, reason = "a lane ends by itself when its log is dropped")]
fn spawn(lane: impl Future<Output = ()> + Send + 'static) {
  tokio::spawn(lane);
}

async fn write(mut connection: PgConnection, mut requests: mpsc::Receiver<Request>, end: watch::Sender<Position>) {
  let mut left_over = None;
  loop {
    let first = match left_over.take() {
      Some(request) => Some(request),
      None => requests.recv().await,
    };
    let Some(first) = first else { return };
    let mut records = first.records.len();
    let mut batch = vec![first];
    while let Ok(next) = requests.try_recv() {
      records += next.records.len();
      if records > BATCH_RECORDS_MAX {
        left_over = Some(next);
        break;
      }
      batch.push(next);
    }
    match insert(&mut connection, &batch).await {
      Ok(mut bases) => {
        for request in batch {
          let Some(base) = bases.get_mut(&request.part) else { continue };
          let first = *base;
          *base += i64::try_from(request.records.len()).unwrap_or(0);
          end.send_replace(*base);
          if request.reply.send(first).is_err() {
            eprintln!("bench: the caller of a raw append went away");
          }
        }
      }
      // The callers hear it as a lane that has ended.
      Err(error) => return eprintln!("bench: a raw append failed: {error}"),
    }
  }
}

async fn insert(connection: &mut PgConnection, batch: &[Request]) -> Result<BTreeMap<i16, i64>, sqlx::Error> {
  let mut counts: BTreeMap<i16, i64> = BTreeMap::new();
  let (mut part, mut n, mut id) = (Vec::new(), Vec::new(), Vec::new());
  let (mut type_name, mut source) = (Vec::<&str>::new(), Vec::<&str>::new());
  let (mut meta, mut value) = (Vec::<&[u8]>::new(), Vec::<&[u8]>::new());
  for request in batch {
    let count = counts.entry(request.part).or_default();
    for record in &request.records {
      part.push(request.part);
      n.push(*count);
      id.push(record.id);
      type_name.push(&record.type_name);
      source.push(&record.source);
      meta.push(&record.meta);
      value.push(&record.value);
      *count += 1;
    }
  }
  let (moved, by): (Vec<i16>, Vec<i64>) = counts.into_iter().unzip();
  let rows =
    sqlx::query(INSERT).bind(moved).bind(by).bind(part).bind(n).bind(id).bind(type_name).bind(source).bind(meta).bind(value).fetch_all(connection).await?;
  rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}
