//! The log of this process: embedded in Postgres, or on Kafka when brokers are named.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use pa_eventlog::kafka::KafkaLog;
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::{EventLog, LogError};
use pa_store::Database;

use crate::config::Config;

/// Between two tries to reach a Kafka that is not there yet.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The log, of either kind.
#[derive(Clone)]
pub(crate) enum Log {
  Embedded(Arc<PostgresLog>),
  Kafka(Arc<KafkaLog>),
}

impl Log {
  /// Opens the log that is configured; waits for an absent Kafka and says so.
  pub(crate) async fn open(config: &Config, database: &Database) -> Result<Self> {
    let (partitions, sealed) = (config.log.partitions, config.log.sealed);
    let Some(kafka) = config.kafka() else {
      return Ok(Self::Embedded(PostgresLog::open(database, partitions, sealed).await?));
    };
    loop {
      match KafkaLog::open(&kafka, database, partitions, sealed).await {
        Err(LogError::Away(error)) => {
          tracing::warn!(brokers = kafka.brokers, error = &*error as &dyn std::error::Error, "waiting for Kafka");
          tokio::time::sleep(AGAIN_AFTER).await;
        }
        opened => return Ok(Self::Kafka(opened?)),
      }
    }
  }

  /// The log as the stages see it.
  pub(crate) fn port(&self) -> Arc<dyn EventLog> {
    match self {
      Self::Embedded(log) => Arc::clone(log) as Arc<dyn EventLog>,
      Self::Kafka(log) => Arc::clone(log) as Arc<dyn EventLog>,
    }
  }

  /// The embedded log, which does not forget by itself.
  pub(crate) fn embedded(&self) -> Option<Arc<PostgresLog>> {
    match self {
      Self::Embedded(log) => Some(Arc::clone(log)),
      Self::Kafka(_) => None,
    }
  }

  /// Says whether other processes are registered. Kafka wakes readers by itself.
  pub(crate) fn set_others(&self, others: bool) {
    if let Self::Embedded(log) = self {
      log.set_others(others);
    }
  }

  /// For ever: wakes this process's readers when others append.
  pub(crate) async fn listen(self, database: &Database) {
    match self {
      Self::Embedded(log) => log.listen(database).await,
      Self::Kafka(_) => std::future::pending().await,
    }
  }
}
