//! The embedded log: a table in Postgres with the contract of Kafka, the default for one machine.
//!
//! Offsets come from a row lock in the inserting statement, so that visible order = offset order and a reader never sees a gap that fills later. Appends of all
//! callers of a stream go out together (group commit), in two statements at a time when there is enough for two. Commits are synchronous: [`PostgresLog::open`] refuses
//! a server that would lose an acknowledged append. Wake-up is in memory; a NOTIFY goes out only while another process is registered. What readers of this process fetch
//! at the tail is fetched once and shared, and what this process appended itself is not fetched at all (`tailring`).

mod append;
mod aside;
mod read;
mod remote;
mod tailring;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use pa_store::Disposition;
use pa_store::ops::log_identity as identity;
use pa_store::pool::{Database, Kept, Role, assert_durable};
use sqlx::PgPool;
use tokio::sync::{Notify, mpsc, watch};

use crate::port::{AppendError, EventLog, Identity, LogError, check_append};
use crate::record::{Partition, Position, Record, Stored, Stream};
use tailring::TailRing;

/// Appends waiting in one lane; beyond it callers wait, which is the back-pressure of the log.
const LANE_QUEUE: usize = 1_024;
/// What `wait` waits at the most, so that a lost wake-up costs little.
const WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// The name of this kind of log.
const KIND: &str = "postgres";

const STREAMS: [Stream; 3] = [Stream::Inputs, Stream::Events, Stream::Pieces];

/// The log in Postgres.
pub struct PostgresLog {
  pool: PgPool,
  identity: Identity,
  /// One for each stream.
  lanes: HashMap<Stream, mpsc::Sender<append::Request>>,
  tails: Arc<HashMap<(Stream, Partition), Tail>>,
  remote: Arc<AtomicBool>,
  /// It is being filled, and not this database's log yet.
  aside: bool,
}

/// What this process knows of one partition's tail.
struct Tail {
  /// The highest end that this process has heard of.
  end: watch::Sender<Position>,
  ring: tokio::sync::Mutex<TailRing>,
  woken: Notify,
  /// Another process said that it appended: the next read asks the database.
  stirred: AtomicBool,
}

impl Tail {
  /// Takes in that the log reaches at least to `end`.
  fn reaches(&self, end: Position) {
    self.end.send_if_modified(|known| {
      let higher = end > *known;
      *known = end.max(*known);
      higher
    });
  }
}

impl PostgresLog {
  /// Opens the log of this database, making it with `partitions` partitions if there is none.
  ///
  /// # Errors
  /// [`LogError::Unusable`] when the database holds another kind of log, another number of partitions or another way of sealing, or when the server may lose acknowledged commits.
  pub async fn open(database: &Database, partitions: Partition, sealed: bool) -> Result<Arc<Self>, LogError> {
    let pool = database.pool(Role::Log);
    assert_durable(&pool).await.map_err(unusable)?;
    let identity = establish(&pool, partitions, sealed).await?;
    Self::start(pool, identity, false).await
  }

  async fn start(pool: PgPool, identity: Identity, aside: bool) -> Result<Arc<Self>, LogError> {
    let mut tails = HashMap::new();
    for stream in STREAMS {
      for partition in 0..identity.partitions {
        let tail =
          Tail { end: watch::Sender::new(0), ring: tokio::sync::Mutex::new(TailRing::default()), woken: Notify::new(), stirred: AtomicBool::new(false) };
        tails.insert((stream, partition), tail);
      }
    }
    read::make_heads(&pool, identity.partitions).await?;
    let tails = Arc::new(tails);
    let remote = Arc::new(AtomicBool::new(false));
    let mut lanes = HashMap::new();
    for stream in STREAMS {
      let (sender, receiver) = mpsc::channel(LANE_QUEUE);
      let kept = Kept::new(pool.clone(), waiting::HALVES);
      append::spawn(append::Lane { stream, pool: pool.clone(), kept, tails: Arc::clone(&tails), remote: Arc::clone(&remote) }, receiver);
      lanes.insert(stream, sender);
    }
    Ok(Arc::new(Self { pool, identity, lanes, tails, remote, aside }))
  }

  fn tail(&self, stream: Stream, partition: Partition) -> Result<&Tail, LogError> {
    self.tails.get(&(stream, partition)).ok_or_else(|| LogError::Unusable(format!("there is no partition {partition}")))
  }
}

async fn establish(pool: &PgPool, partitions: Partition, sealed: bool) -> Result<Identity, LogError> {
  let wanted = identity::LogIdentity { kind: KIND.into(), id: uuid_of_new_log(), partitions: i32::from(partitions), sealed };
  let found = match identity::load(pool).await.map_err(away)? {
    Some(found) => found,
    None => identity::create(pool, &wanted).await.map_err(away)?,
  };
  if found.kind != wanted.kind {
    return Err(LogError::Unusable(format!("this database belongs to a log of kind {}; `pa log copy` moves a log to another kind", found.kind)));
  }
  if found.partitions != wanted.partitions {
    return Err(LogError::Unusable(format!(
      "the log was created with {} partitions and {} are configured; the number is fixed for a log's life: set PA__LOG__PARTITIONS={} or leave it unset (`pa log copy` to a Kafka may change it)",
      found.partitions, wanted.partitions, found.partitions
    )));
  }
  if found.sealed != sealed {
    return Err(LogError::Unusable(
      "sealing was chosen otherwise when this log was created, and stays for its life: set PA__LOG__SEALED as it was then".into(),
    ));
  }
  let partitions = Partition::try_from(found.partitions).map_err(|_| LogError::Unusable("the number of partitions is out of range".into()))?;
  Ok(Identity { kind: found.kind, id: found.id, partitions, sealed: found.sealed })
}

#[expect(clippy::disallowed_methods, reason = "a log's id is made once, by whoever creates it, and decides nothing")]
fn uuid_of_new_log() -> uuid::Uuid {
  uuid::Uuid::now_v7()
}

fn unusable(error: pa_store::Error) -> LogError {
  match error.disposition() {
    Disposition::Retry | Disposition::Unknown => away(error),
    Disposition::Fail => LogError::Unusable(error.to_string()),
  }
}

fn away(error: pa_store::Error) -> LogError {
  LogError::Away(Box::new(error))
}

#[async_trait]
impl EventLog for PostgresLog {
  async fn append(&self, stream: Stream, partition: Partition, records: Vec<Record>) -> Result<Vec<Position>, AppendError> {
    check_append(stream, partition, &records)?;
    let gone = |unknown: bool| {
      if unknown {
        AppendError::Unknown { stream: stream.name(), partition, source: None }
      } else {
        AppendError::Refused { stream: stream.name(), partition, reason: "the log is closed or has no such partition".into() }
      }
    };
    let lane = self.lanes.get(&stream).filter(|_| partition < self.identity.partitions).ok_or_else(|| gone(false))?;
    let (reply, answer) = tokio::sync::oneshot::channel();
    lane.send(append::Request { partition, records, reply }).await.map_err(|_| gone(false))?;
    answer.await.map_err(|_| gone(true))?
  }

  async fn read(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError> {
    let tail = self.tail(stream, partition)?;
    read::read(&self.pool, tail, stream, partition, from, max).await
  }

  async fn wait(&self, stream: Stream, partition: Partition, from: Position) {
    let Ok(tail) = self.tail(stream, partition) else { return };
    let mut end = tail.end.subscribe();
    let heard = async { end.wait_for(|end| *end > from).await.is_ok() };
    tokio::select! {
      _ = heard => {}
      () = tail.woken.notified() => {}
      () = tokio::time::sleep(WAIT_MAX) => {}
    }
  }

  async fn end(&self, stream: Stream, partition: Partition) -> Result<Position, LogError> {
    let tail = self.tail(stream, partition)?;
    let end = read::end(&self.pool, stream, partition).await?;
    tail.reaches(end);
    Ok(end)
  }

  async fn identity(&self) -> Result<Identity, LogError> {
    // Read anew: a database that was replaced behind this process must be noticed.
    let found = identity::load(&self.pool).await.map_err(away)?;
    match found {
      Some(found) if self.aside || found.id == self.identity.id => Ok(self.identity.clone()),
      Some(_) | None => Err(LogError::Unusable("the log was replaced while this process used it".into())),
    }
  }

  fn reads_ahead(&self) -> bool {
    true
  }
}
