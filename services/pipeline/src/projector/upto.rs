//! A log that ends earlier: what a reader sees of it up to a position.

use std::sync::Arc;

use async_trait::async_trait;
use pa_eventlog::{AppendError, EventLog, Identity, LogError, Partition, Position, Record, Stored, Stream};

/// The log's events up to a position, so that a copy of the read model can be folded to exactly there.
pub struct Upto {
  log: Arc<dyn EventLog>,
  end: Position,
}

impl Upto {
  /// What stands before `end`.
  pub fn new(log: Arc<dyn EventLog>, end: Position) -> Self {
    Self { log, end }
  }
}

#[async_trait]
impl EventLog for Upto {
  async fn append(&self, stream: Stream, partition: Partition, _records: Vec<Record>) -> Result<Vec<Position>, AppendError> {
    Err(AppendError::Refused { stream: stream.name(), partition, reason: "this view of the log is for reading".to_owned() })
  }

  async fn read(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError> {
    if from >= self.end {
      return Ok(Arc::new([]));
    }
    let records = self.log.read(stream, partition, from, max).await?;
    let within = records.partition_point(|stored| stored.position < self.end);
    Ok(if within == records.len() { records } else { records[..within].into() })
  }

  async fn wait(&self, stream: Stream, partition: Partition, from: Position) {
    self.log.wait(stream, partition, from).await;
  }

  async fn end(&self, stream: Stream, partition: Partition) -> Result<Position, LogError> {
    Ok(self.log.end(stream, partition).await?.min(self.end))
  }

  async fn identity(&self) -> Result<Identity, LogError> {
    self.log.identity().await
  }

  fn reads_ahead(&self) -> bool {
    self.log.reads_ahead()
  }
}
