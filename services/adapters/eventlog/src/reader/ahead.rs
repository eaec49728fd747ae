//! The batch after the one that a reader works on, asked for meanwhile.
//!
//! A reader far behind would otherwise wait for the engine and the engine for the reader, in turns. Invariants
//! - One batch at the most is ahead, and only after a full one of no more than [`BYTES_MAX`] bytes: at the tail nothing is asked for that is not there yet.
//! - It is what a read at its position would have answered; at any other position, and when it holds nothing, the log is asked anew.
//! - It goes with its reader: dropped, the request ends.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::port::{EventLog, LogError};
use crate::record::{Partition, Position, Stored, Stream};

/// Bytes of a batch after which the next one is not asked for early: large records keep a reader waiting too little to be worth twice the memory.
const BYTES_MAX: usize = 8 * 1024 * 1024;

type Batch = Arc<[Arc<Stored>]>;

/// Where a reader reads, batch by batch.
pub(super) struct Batches {
  log: Arc<dyn EventLog>,
  partition: Partition,
  pub(super) records_max: usize,
  ahead: Option<Ahead>,
}

/// A batch that was asked for.
struct Ahead {
  from: Position,
  records_max: usize,
  read: JoinHandle<Result<Batch, LogError>>,
}

impl Drop for Ahead {
  fn drop(&mut self) {
    self.read.abort();
  }
}

impl Batches {
  pub(super) fn new(log: Arc<dyn EventLog>, partition: Partition, records_max: usize) -> Self {
    Self { log, partition, records_max, ahead: None }
  }

  /// The records from `from` on; none when there are none now. Cancel-safe.
  pub(super) async fn read(&mut self, from: Position) -> Result<Batch, LogError> {
    let batch = match self.asked_for(from).await? {
      Some(batch) => batch,
      None => self.log.read(Stream::Events, self.partition, from, self.records_max).await?,
    };
    self.ask_ahead(&batch);
    Ok(batch)
  }

  /// What was asked for at this position, if that holds anything.
  async fn asked_for(&mut self, from: Position) -> Result<Option<Batch>, LogError> {
    let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.from == from && ahead.records_max == self.records_max) else {
      self.ahead = None;
      return Ok(None);
    };
    let read = (&mut ahead.read).await;
    self.ahead = None;
    match read {
      Ok(read) => read.map(|batch| (!batch.is_empty()).then_some(batch)),
      // The request's task was ended, as with its runtime: nothing is known of what it would have read.
      Err(_) => Ok(None),
    }
  }

  #[expect(clippy::disallowed_methods, reason = "it ends with its one read, or is aborted with its reader")]
  fn ask_ahead(&mut self, batch: &Batch) {
    let Some(last) = batch.last().filter(|_| batch.len() >= self.records_max && self.log.reads_ahead()) else { return };
    if batch.iter().map(|stored| stored.record.size_bytes()).sum::<usize>() > BYTES_MAX {
      return;
    }
    let (log, partition, from, records_max) = (Arc::clone(&self.log), self.partition, last.position + 1, self.records_max);
    let read = tokio::spawn(async move { log.read(Stream::Events, partition, from, records_max).await });
    self.ahead = Some(Ahead { from, records_max, read });
  }
}

#[cfg(test)]
mod tests;
