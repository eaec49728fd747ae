//! A log that is being filled.

use std::sync::Arc;

use futures::future::try_join_all;
use pa_domain::Timestamp;
use pa_domain::log::EpochAnnounced;
use uuid::Uuid;

use crate::compose::Composer;
use crate::meta::{self, partition_of};
use crate::opener::Opener;
use crate::port::{APPEND_RECORDS_MAX, EventLog};
use crate::record::{Partition, Record, Stored, Stream};

use super::tally::{Tally, moved};
use super::{Ends, Error, Walk};

/// Records that wait for one partition before they go out together.
const WAITING_RECORDS: usize = APPEND_RECORDS_MAX / 2;
/// Bytes of them.
const WAITING_BYTES: usize = 2 * 1024 * 1024;

/// The log that is being filled.
pub struct Target {
  log: Arc<dyn EventLog>,
  parts: Vec<Part>,
  written: u64,
}

/// One of its partitions.
struct Part {
  epoch: i64,
  seq: i64,
  waiting: Vec<Record>,
  bytes: usize,
}

impl Target {
  /// Takes a log to fill: looks at what an earlier attempt left in it, and announces an epoch of its own everywhere, so that nothing else counts from here on. The tally is
  /// what it holds.
  ///
  /// # Errors
  /// [`Error::InUse`] when it has inputs that [`super::carry`] did not bring; the log's own failures.
  pub async fn take(log: Arc<dyn EventLog>, opener: &Opener, at: Timestamp, holder: Uuid, ids: &dyn pa_store::clock::Ids) -> Result<(Self, Tally), Error> {
    let identity = log.identity().await?;
    let ends = Ends::of(log.as_ref()).await?;
    let composer = Composer::new(identity.sealed, "pa/copy");
    let (mut bases, mut held) = (Vec::new(), Tally::default());
    for partition in 0..identity.partitions {
      let mut walk = Walk::new(log.as_ref(), opener, partition, ends.end(Stream::Events, partition));
      while let Some(batch) = walk.next().await? {
        for stored in batch.iter().flatten() {
          held.agents.entry(stored.meta()?.core.agent).or_default().add(stored)?;
        }
      }
      // Before anything is written: an announcement would disturb whoever leads there.
      if walk.next_input().0 > 0 {
        return Err(Error::InUse);
      }
      bases.push(walk.decisions().fence().base());
    }
    let mut parts = Vec::new();
    for (partition, base) in (0..).zip(bases) {
      let epoch = base.epoch + 1;
      let announced = EpochAnnounced { inputs_from: 0, base_epoch: base.epoch, base_seq: base.seq, holder: holder.into() };
      log.append(Stream::Events, partition, vec![composer.announcement(ids.new_id(), epoch, at, announced)?]).await?;
      parts.push(Part { epoch, seq: 1, waiting: Vec::new(), bytes: 0 });
    }
    Ok((Self { log, parts, written: 0 }, held))
  }

  /// Events that were written.
  pub fn written(&self) -> u64 {
    self.written
  }

  pub(super) fn log(&self) -> &Arc<dyn EventLog> {
    &self.log
  }

  pub(super) fn partitions(&self) -> Partition {
    Partition::try_from(self.parts.len()).expect("a log's partitions are numbered by as much")
  }

  /// Puts a decision behind what waits for its partition.
  pub(super) fn put(&mut self, decision: &[Arc<Stored>]) -> Result<(), Error> {
    let Some(first) = decision.first() else { return Ok(()) };
    let partition = partition_of(first.meta()?.core.agent, self.partitions());
    let part = &mut self.parts[usize::from(partition)];
    for stored in decision {
      let meta = meta::encode(&moved(stored.meta()?, part.epoch, part.seq))?;
      let record = Record { meta, ..stored.record.clone() };
      part.bytes += record.size_bytes();
      part.waiting.push(record);
      part.seq += 1;
    }
    Ok(())
  }

  /// Writes what waits in partitions that have enough of it; all of it at the end.
  pub(super) async fn write(&mut self, all: bool) -> Result<(), Error> {
    let log = &self.log;
    let ready = (0..).zip(&mut self.parts).filter(|(_, part)| all || part.waiting.len() >= WAITING_RECORDS || part.bytes >= WAITING_BYTES);
    let written = try_join_all(ready.map(|(partition, part)| {
      let waiting = std::mem::take(&mut part.waiting);
      part.bytes = 0;
      append(log.as_ref(), partition, waiting)
    }));
    self.written += written.await?.into_iter().sum::<u64>();
    Ok(())
  }
}

/// Appends one after the other, so that they land in their order.
async fn append(log: &dyn EventLog, partition: Partition, records: Vec<Record>) -> Result<u64, Error> {
  let count = records.len() as u64;
  let mut chunk: Vec<Record> = Vec::new();
  let mut bytes = 0;
  for record in records {
    if chunk.len() >= WAITING_RECORDS || bytes >= WAITING_BYTES {
      log.append(Stream::Events, partition, std::mem::take(&mut chunk)).await?;
      bytes = 0;
    }
    bytes += record.size_bytes();
    chunk.push(record);
  }
  if !chunk.is_empty() {
    log.append(Stream::Events, partition, chunk).await?;
  }
  Ok(count)
}
