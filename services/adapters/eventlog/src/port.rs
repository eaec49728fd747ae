//! The log port: what an engine must do. No consumer groups, no transactions.

use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::record::{Partition, Position, Record, Stored, Stream};

/// Bytes of one record at most; inputs stay far enough below it that a held one fits into the event that holds it.
pub const RECORD_BYTES_MAX: usize = 768 * 1024;
/// Bytes of one input record at most, so that `InputHeld` with its bytes stays below [`RECORD_BYTES_MAX`].
pub const INPUT_BYTES_MAX: usize = 640 * 1024;
/// Records in one append at most: one decision has at most 64, a batch holds several.
pub const APPEND_RECORDS_MAX: usize = 1_024;

/// Which log this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
  /// `postgres`, `kafka`, `sim`.
  pub kind: String,
  pub id: Uuid,
  pub partitions: Partition,
  /// Values are sealed under the agents' keys.
  pub sealed: bool,
}

/// An append that did not return positions.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
  /// Certainly not in the log; the same records may be appended again.
  #[error("append to {stream}/{partition} refused: {reason}")]
  Refused { stream: &'static str, partition: Partition, reason: String },
  /// The records may or may not be in the log, now or later.
  #[error("the fate of an append to {stream}/{partition} is unknown")]
  Unknown {
    stream: &'static str,
    partition: Partition,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
  },
}

/// Refuses what no engine takes, before it reaches one.
///
/// # Errors
/// No records, more than [`APPEND_RECORDS_MAX`], or one that is too large.
pub fn check_append(stream: Stream, partition: Partition, records: &[Record]) -> Result<(), AppendError> {
  let refused = |reason: String| Err(AppendError::Refused { stream: stream.name(), partition, reason });
  if records.is_empty() || records.len() > APPEND_RECORDS_MAX {
    return refused(format!("{} records in one append; 1 to {APPEND_RECORDS_MAX} are allowed", records.len()));
  }
  let limit = if stream == Stream::Inputs { INPUT_BYTES_MAX } else { RECORD_BYTES_MAX };
  match records.iter().map(Record::size_bytes).max() {
    Some(size) if size > limit => refused(format!("a record of {size} bytes; at most {limit} are allowed")),
    _ => Ok(()),
  }
}

/// A read that failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
  /// The engine can't be reached now; try again.
  #[error("the log is away")]
  Away(#[source] Box<dyn std::error::Error + Send + Sync>),
  /// The log is not what it was, or not as it must be: nothing may go on.
  #[error("the log is not usable: {0}")]
  Unusable(String),
}

/// An engine that keeps the log.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
  /// Appends records together, in order; durable when it returns. For one caller and partition, appends land in call order.
  ///
  /// # Errors
  /// An unknown fate is said as such and never reported as a refusal.
  async fn append(&self, stream: Stream, partition: Partition, records: Vec<Record>) -> Result<Vec<Position>, AppendError>;

  /// Reads up to `max` records from position `from` on; an empty answer means that there are none now. Positions may have gaps, and the order is theirs.
  async fn read(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError>;

  /// Returns when there may be a record at or after `from`; it may return early, and returns within a second or so at the latest.
  async fn wait(&self, stream: Stream, partition: Partition, from: Position);

  /// The position after the last record.
  async fn end(&self, stream: Stream, partition: Partition) -> Result<Position, LogError>;

  /// Which log this is.
  async fn identity(&self) -> Result<Identity, LogError>;

  /// Whether a reader far behind gains by asking for its next batch while it works on one: the engine reads beside the reader, and not ahead by itself.
  fn reads_ahead(&self) -> bool {
    false
  }
}
