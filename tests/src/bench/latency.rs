//! h: one bare append → read on the same log, in the same run: finished bytes in, a waiting reader has them out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use tokio::time::sleep_until;

use super::Bench;
use super::measure::{histogram, record};
use super::raw::{RawLog, RawReader};
use super::samples::{Author, PARTITIONS};

/// Appends that come before those that count: a producer of Kafka asks for its id at the first.
const WARM: u32 = 3;

/// The raw way through the log.
pub(super) struct Bare {
  log: Arc<RawLog>,
  reader: RawReader,
  author: Author,
}

impl Bare {
  pub(super) async fn open(bench: &Bench) -> Result<Self> {
    let fresh = bench.server.fresh().await?;
    let (log, author) = (RawLog::open(&fresh, PARTITIONS).await?, Author::new(1, 1).await?);
    let reader = log.reader(&fresh, author.partition).await?;
    let mut bare = Self { log: Arc::new(log), reader, author };
    bare.probe(WARM, Duration::ZERO).await?;
    Ok(bare)
  }

  /// So many appends, one every `spacing`: the time until each was read.
  pub(super) async fn probe(&mut self, count: u32, spacing: Duration) -> Result<Histogram<u64>> {
    let (mut latencies, begun) = (histogram(), Instant::now());
    for number in 0..count {
      sleep_until((begun + spacing * number).into()).await;
      let finished = self.log.finish(self.author.compose()?);
      let sent = Instant::now();
      let (appended, read) = tokio::join!(self.log.append(self.author.partition, finished), self.reader.follow());
      record(&mut latencies, sent.elapsed());
      appended.and(read.map(|()| 0))?;
    }
    Ok(latencies)
  }
}
