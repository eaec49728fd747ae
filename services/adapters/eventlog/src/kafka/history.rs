//! Reading what lies further back than the tail: consumers that are lent for one read and kept where they stopped, so that whoever reads on finds the next records fetched.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::sync::Semaphore;

use super::context::Quiet;
use super::message::{self, Names};
use super::ring::Part;
use crate::port::LogError;
use crate::record::{Position, Stored};

/// Readers far behind at once: a rebuild reads every partition side by side. Each has a few threads of the library.
const CURSORS_MAX: usize = 16;
/// One that was not used for so long may be sent elsewhere.
const IDLE: Duration = Duration::from_secs(2);
/// One that was not used for so long is ended.
const IDLE_MAX: Duration = Duration::from_secs(20);
/// Records of one read at most, whatever the caller asks for.
const RECORDS_MAX: usize = 4_096;
/// Longer than any broker takes for a fetch from its disk.
const READ_MAX: Duration = Duration::from_secs(10);
/// How long a read that has something waits for more.
const MORE_WITHIN: Duration = Duration::from_millis(1);

/// The consumers.
pub(super) struct History {
  settings: ClientConfig,
  idle: Mutex<Vec<Cursor>>,
  lent: Semaphore,
}

struct Cursor {
  consumer: BaseConsumer<Quiet>,
  /// What it reads next.
  at: Option<(Arc<Part>, Position)>,
  names: Names,
  since: Instant,
}

/// Why a read brought nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
  /// The log does not hold the position: it begins behind it, or ends before it.
  #[error("the log does not hold this position")]
  NotHeld,
  #[error("reading from kafka")]
  Kafka(#[from] KafkaError),
  #[error("kafka gave no record in {0:?}")]
  Late(Duration),
  #[error("{0}")]
  Foreign(String),
}

impl Error {
  pub(super) fn into_log_error(self) -> LogError {
    match self {
      Self::Foreign(why) => LogError::Unusable(why),
      error => LogError::Away(Box::new(error)),
    }
  }
}

impl History {
  pub(super) fn new(settings: ClientConfig) -> Self {
    Self { settings, idle: Mutex::new(Vec::new()), lent: Semaphore::new(CURSORS_MAX) }
  }

  /// Reads up to `max` records from `from` on, none at or after `until`, which the log reaches.
  pub(super) async fn read(self: &Arc<Self>, part: &Arc<Part>, from: Position, until: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, Error> {
    let Ok(_lent) = self.lent.acquire().await else { return Ok(Arc::from([])) };
    let (history, part) = (Arc::clone(self), Arc::clone(part));
    // The library blocks.
    let read = tokio::task::spawn_blocking(move || {
      let mut cursor = history.lend(&part, from)?;
      let read = cursor.read(&part, from, until, max.min(RECORDS_MAX));
      // One that failed is ended, whatever it holds.
      if read.is_ok() {
        cursor.since = Instant::now();
        history.idle.lock().push(cursor);
      }
      read
    });
    read.await.unwrap_or_else(|_| Err(Error::Late(READ_MAX)))
  }

  /// Ends what was not used for a while. Blocks.
  pub(super) fn sweep(&self) {
    let ended: Vec<Cursor> = self.idle.lock().extract_if(.., |cursor| cursor.since.elapsed() > IDLE_MAX).collect();
    drop(ended);
  }

  /// The cursor that stands there, or one that nobody needs, or a new one.
  fn lend(&self, part: &Arc<Part>, from: Position) -> Result<Cursor, KafkaError> {
    let lent = {
      let mut idle = self.idle.lock();
      let there = idle.iter().position(|cursor| cursor.at.as_ref().is_some_and(|(at, next)| Arc::ptr_eq(at, part) && *next == from));
      let full = idle.len() + (CURSORS_MAX - self.lent.available_permits()) > CURSORS_MAX;
      let oldest =
        || idle.iter().enumerate().filter(|(_, cursor)| full || cursor.since.elapsed() > IDLE).min_by_key(|(_, cursor)| cursor.since).map(|(at, _)| at);
      there.or_else(oldest).map(|at| idle.swap_remove(at))
    };
    match lent {
      Some(cursor) => Ok(cursor),
      None => Ok(Cursor { consumer: self.settings.create_with_context(Quiet)?, at: None, names: Names::default(), since: Instant::now() }),
    }
  }
}

impl Cursor {
  fn read(&mut self, part: &Arc<Part>, from: Position, until: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, Error> {
    if self.at.take().is_none_or(|(at, next)| !Arc::ptr_eq(&at, part) || next != from) {
      let mut begin = TopicPartitionList::new();
      begin.add_partition_offset(&part.topic, i32::from(part.partition), Offset::Offset(from))?;
      self.consumer.assign(&begin)?;
    }
    let (mut read, mut next) = (Vec::new(), from);
    let deadline = Instant::now() + READ_MAX;
    while read.len() < max && next < until {
      let wait = if read.is_empty() { deadline.saturating_duration_since(Instant::now()) } else { MORE_WITHIN };
      match self.consumer.poll(wait) {
        Some(Ok(message)) => {
          let ours = *part.topic == *message.topic() && i32::from(part.partition) == message.partition() && message.offset() >= next;
          if ours {
            let foreign =
              |error| Error::Foreign(format!("position {} of {}/{} is not a record of ours: {error}", message.offset(), part.topic, part.partition));
            let record = message::record(&message, &mut self.names).map_err(foreign)?;
            next = message.offset() + 1;
            read.push(Arc::new(Stored::new(message.offset(), record)));
          }
        }
        // Behind the last record lie only marks of the log itself.
        Some(Err(KafkaError::PartitionEOF(_))) if read.is_empty() => break,
        Some(Err(KafkaError::PartitionEOF(_))) => {}
        Some(Err(error)) => heed(error)?,
        None if read.is_empty() => return Err(Error::Late(READ_MAX)),
        None => break,
      }
    }
    if next < until {
      self.at = Some((Arc::clone(part), next));
    } else {
      // From here on it is the tail: nothing more is to be fetched.
      self.consumer.unassign()?;
    }
    // What lies behind belongs to the tail.
    let own = read.into_iter().filter(|stored: &Arc<Stored>| stored.position < until);
    Ok(own.collect())
  }
}

fn heed(error: KafkaError) -> Result<(), Error> {
  match error.rdkafka_error_code() {
    Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => Err(Error::NotHeld),
    // It mends connections by itself; the deadline ends it.
    Some(
      RDKafkaErrorCode::BrokerTransportFailure
      | RDKafkaErrorCode::AllBrokersDown
      | RDKafkaErrorCode::Resolve
      | RDKafkaErrorCode::OperationTimedOut
      | RDKafkaErrorCode::CoordinatorNotAvailable
      | RDKafkaErrorCode::NotCoordinator
      | RDKafkaErrorCode::GroupAuthorizationFailed
      | RDKafkaErrorCode::NotLeaderForPartition
      | RDKafkaErrorCode::LeaderNotAvailable,
    ) => {
      tracing::debug!(error = &error as &dyn std::error::Error, "reading the log");
      Ok(())
    }
    _ => Err(Error::Kafka(error)),
  }
}
