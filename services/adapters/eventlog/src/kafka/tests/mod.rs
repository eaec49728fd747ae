//! The suite that every engine passes, on a real Apache Kafka, and what only this one can get wrong.

mod bad_input;
mod client;
mod settings;

use std::sync::Arc;

use pa_store::testing::TestDb;

use super::{Config, KafkaLog, testing};
use crate::port::{EventLog, LogError};
use crate::record::Partition;

/// A fresh database and a prefix of its own.
struct Place {
  db: TestDb,
  config: Config,
}

impl Place {
  async fn new() -> Self {
    let config = tokio::task::spawn_blocking(testing::config).await.expect("a real Kafka");
    Self { db: TestDb::new().await, config }
  }

  async fn try_open(&self, partitions: Partition) -> Result<Arc<KafkaLog>, LogError> {
    KafkaLog::open(&self.config, &self.db.database, partitions, true).await
  }

  async fn open(&self, partitions: Partition) -> Arc<KafkaLog> {
    self.try_open(partitions).await.expect("open the log")
  }

  /// Why it is refused.
  async fn refused(&self, partitions: Partition) -> String {
    match self.try_open(partitions).await.map(|_| ()) {
      Err(LogError::Unusable(why)) => why,
      other => panic!("it must be refused: {other:?}"),
    }
  }
}

/// Each case on a log of its own; a database stays as long as the suite runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pr_18_the_log_on_a_real_kafka_passes_the_suite() {
  let kept = Arc::new(parking_lot::Mutex::new(Vec::new()));
  crate::conformance::run(async |partitions| {
    let place = Place::new().await;
    let log = place.open(partitions).await as Arc<dyn EventLog>;
    kept.lock().push(place);
    log
  })
  .await;
}
