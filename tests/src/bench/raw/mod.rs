//! The control: what a rival would write who needs nothing but ordered, durable records, on the engine that is measured.
//!
//! [`postgres`] is a multi-row insert, [`kafka`] an idempotent producer and an assigned consumer. Both are handed finished bytes and seal nothing, encode nothing, check
//! nothing; both are as durable as ours (`synchronous_commit` on; acks from all) and take together what waits at the same time, as ours do. Their module comments say how
//! each was tuned and why that is fair.

mod kafka;
mod postgres;

use anyhow::Result;
use pa_eventlog::{Partition, Position, Record};

use super::engine::Place;
use super::server::Fresh;

/// A raw log.
pub(super) enum RawLog {
  Postgres(postgres::Log),
  Kafka(kafka::Log),
}

/// One append's bytes, as the engine's client takes them: made before the clock runs.
#[derive(Clone)]
pub(super) enum Finished {
  Postgres(Vec<Record>),
  Kafka(Vec<kafka::Message>),
}

/// Reads one partition of a raw log, or of a log of the product.
pub(super) enum RawReader {
  Postgres(postgres::Reader),
  Kafka(kafka::Reader),
}

impl RawLog {
  pub(super) async fn open(fresh: &Fresh, partitions: Partition) -> Result<Self> {
    match &fresh.place {
      Place::Embedded => postgres::Log::open(&fresh.database, partitions).await.map(Self::Postgres),
      Place::Kafka { brokers, prefix } => kafka::Log::open(brokers, prefix, partitions).await.map(Self::Kafka),
    }
  }

  /// Makes records ready to be appended.
  pub(super) fn finish(&self, records: Vec<Record>) -> Finished {
    match self {
      Self::Postgres(_) => Finished::Postgres(records),
      Self::Kafka(_) => Finished::Kafka(records.iter().map(kafka::Message::of).collect()),
    }
  }

  /// Appends finished bytes; durable when it returns.
  pub(super) async fn append(&self, partition: Partition, finished: Finished) -> Result<Position> {
    match (self, finished) {
      (Self::Postgres(log), Finished::Postgres(records)) => log.append(partition, records).await,
      (Self::Kafka(log), Finished::Kafka(messages)) => log.append(partition, messages).await,
      (Self::Postgres(_) | Self::Kafka(_), _) => anyhow::bail!("these bytes were made ready for another engine"),
    }
  }

  /// A reader of one of its partitions, from its end on.
  pub(super) async fn reader(&self, fresh: &Fresh, partition: Partition) -> Result<RawReader> {
    match self {
      Self::Postgres(log) => postgres::Reader::following(log, &fresh.database, partition).await.map(RawReader::Postgres),
      Self::Kafka(log) => log.follow(partition).map(RawReader::Kafka),
    }
  }
}

impl RawReader {
  /// A reader of the events of a log of the product, from their beginning.
  pub(super) async fn of_events(fresh: &Fresh, partition: Partition) -> Result<Self> {
    match &fresh.place {
      Place::Embedded => postgres::Reader::open(&fresh.database, partition).await.map(Self::Postgres),
      Place::Kafka { brokers, prefix } => kafka::Reader::open(brokers, &format!("{prefix}events"), partition).map(Self::Kafka),
    }
  }

  /// Waits until the log has something new, and reads it.
  pub(super) async fn follow(&mut self) -> Result<()> {
    match self {
      Self::Postgres(reader) => reader.follow().await,
      Self::Kafka(reader) => reader.follow().await,
    }
  }

  /// Reads everything from the beginning and touches each byte; the number of records and the sum of their bytes.
  pub(super) async fn drain(&mut self) -> Result<(u64, u64)> {
    match self {
      Self::Postgres(reader) => reader.drain().await,
      Self::Kafka(reader) => reader.drain().await,
    }
  }
}
