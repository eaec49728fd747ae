//! h: one bare append → read on the same Postgres, in the same run: finished bytes in, a waiting reader has them out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use tokio::time::sleep_until;

use super::Bench;
use super::measure::{histogram, record};
use super::raw::{RawLog, RawReader};
use super::samples::{Author, PARTITIONS};

/// Rows that the reader asks for.
const LIMIT: i64 = 500;

/// The raw way through the log.
pub(super) struct Bare {
  log: Arc<RawLog>,
  reader: RawReader,
  author: Author,
}

impl Bare {
  pub(super) async fn open(bench: &Bench) -> Result<Self> {
    let fresh = bench.server.fresh().await?;
    let (log, author) = (RawLog::open(&fresh.database, PARTITIONS).await?, Author::new(1, 1).await?);
    let reader = RawReader::open(&fresh.database, author.partition).await?;
    Ok(Self { log: Arc::new(log), reader, author })
  }

  /// So many appends, one every `spacing`: the time until each was read.
  pub(super) async fn probe(&mut self, count: u32, spacing: Duration) -> Result<Histogram<u64>> {
    let (mut latencies, begun) = (histogram(), Instant::now());
    for number in 0..count {
      sleep_until((begun + spacing * number).into()).await;
      let records = self.author.compose()?;
      let (from, mut end) = (self.reader.position, self.log.end());
      let sent = Instant::now();
      // The reader is woken by the acknowledgement, as readers of the product are.
      let read = async {
        end.wait_for(|end| *end > from).await.context("the raw log has ended")?;
        self.reader.read(LIMIT).await
      };
      let (appended, read) = tokio::join!(self.log.append(self.author.partition, records), read);
      record(&mut latencies, sent.elapsed());
      appended.and(read)?;
    }
    Ok(latencies)
  }
}
