//! What this process knows of one partition: the last records that were read back, and how far the log reaches.
//!
//! Invariants
//! - A ring holds what a consumer read, without a gap in what was read: a read from within it sees what the log holds there.
//! - `known_end` only rises, by acknowledged appends and by the broker's word, until the log is found to be cut: then everything is forgotten and whoever reads is told
//!   that the log was away, so that it compares what it knows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::record::{Partition, Position, Stored, Stream};

/// Records kept: readers at the tail are at most a batch or two apart.
const RECORDS_MAX: usize = 2_048;
/// Bytes kept for one partition.
const BYTES_MAX: usize = 1024 * 1024;
/// So long a cut log is away: every reader looks at least once in that time, because no wait takes longer than a second.
const CUT_TOLD_FOR: Duration = Duration::from_secs(2);

/// One partition of one stream.
pub(super) struct Part {
  pub(super) stream: Stream,
  pub(super) partition: Partition,
  pub(super) topic: Arc<str>,
  pub(super) ring: Mutex<Ring>,
  /// The end of the ring; whoever waits, waits for this.
  pub(super) end: watch::Sender<Position>,
  /// The log reaches at least to here.
  known_end: AtomicI64,
  /// Held while the records of one append are handed over, so that they stand together and in the order of calls.
  pub(super) handing_over: Mutex<()>,
  cut_at: Mutex<Option<Instant>>,
}

/// A run of records without a gap in what was read.
#[derive(Default)]
pub(super) struct Ring {
  records: VecDeque<Arc<Stored>>,
  bytes: usize,
  /// A read from here on sees all up to `to`.
  pub(super) from: Position,
  pub(super) to: Position,
  /// A consumer follows this partition.
  pub(super) followed: bool,
  /// Why nothing behind `to` can be read: a message that is none of ours.
  pub(super) foreign: Option<String>,
}

/// What the ring answers.
pub(super) enum Known {
  Records(Arc<[Arc<Stored>]>),
  /// There is nothing there yet.
  Nothing,
  /// It is on its way from the broker.
  Coming,
  /// Further back than the ring; it ends before this position.
  Before(Position),
  /// Nobody follows the partition yet.
  NotFollowed,
  /// The log was cut a moment ago.
  Cut,
  Foreign(String),
}

impl Part {
  pub(super) fn new(stream: Stream, partition: Partition, topic: Arc<str>) -> Self {
    Self {
      stream,
      partition,
      topic,
      ring: Mutex::new(Ring::default()),
      end: watch::Sender::new(0),
      known_end: AtomicI64::new(0),
      handing_over: Mutex::new(()),
      cut_at: Mutex::new(None),
    }
  }

  pub(super) fn known_end(&self) -> Position {
    self.known_end.load(Ordering::Acquire)
  }

  /// Takes in that the log reaches at least to `end`.
  pub(super) fn reaches(&self, end: Position) {
    self.known_end.fetch_max(end, Ordering::AcqRel);
  }

  /// A consumer begins at `from`; what was known before is forgotten.
  pub(super) fn follow_from(&self, from: Position) {
    let mut ring = self.ring.lock();
    *ring = Ring { from, to: from, followed: true, ..Ring::default() };
    drop(ring);
    self.end.send_replace(from);
  }

  /// The log ends before what was known of it: everybody is told.
  pub(super) fn cut(&self, end: Position) {
    tracing::warn!(topic = %self.topic, log.partition = self.partition, end, "the log ends before what was read of it");
    *self.cut_at.lock() = Some(Instant::now());
    self.known_end.store(end, Ordering::Release);
    self.follow_from(end);
  }

  /// Takes in what a consumer read. A new consumer begins with the last record that is known: another one there means that the log was cut and has grown again.
  pub(super) fn push(&self, stored: Arc<Stored>) {
    let last = {
      let mut ring = self.ring.lock();
      if stored.position >= ring.to {
        ring.push(stored);
        return;
      }
      ring.records.back().cloned()
    };
    if last.is_some_and(|last| last.position == stored.position && last.digest() != stored.digest()) {
      self.cut(stored.position);
      self.ring.lock().push(stored);
    }
  }

  /// Wakes whoever waits for what was pushed.
  pub(super) fn tell(&self) {
    let to = self.ring.lock().to;
    self.reaches(to);
    self.end.send_replace(to);
  }

  pub(super) fn know(&self, from: Position, max: usize) -> Known {
    if self.cut_at.lock().is_some_and(|at| at.elapsed() < CUT_TOLD_FOR) {
      return Known::Cut;
    }
    let ring = self.ring.lock();
    if !ring.followed {
      return Known::NotFollowed;
    }
    if from < ring.from {
      return Known::Before(ring.from);
    }
    if from < ring.to {
      let start = ring.records.partition_point(|stored| stored.position < from);
      let records: Arc<[_]> = ring.records.iter().skip(start).take(max).cloned().collect();
      if !records.is_empty() {
        return Known::Records(records);
      }
    }
    match &ring.foreign {
      Some(why) => Known::Foreign(why.clone()),
      None if from >= self.known_end() => Known::Nothing,
      None => Known::Coming,
    }
  }
}

impl Ring {
  fn push(&mut self, stored: Arc<Stored>) {
    self.to = stored.position + 1;
    self.bytes += stored.record.size_bytes();
    self.records.push_back(stored);
    while self.records.len() > RECORDS_MAX || self.bytes > BYTES_MAX {
      let Some(dropped) = self.records.pop_front() else { break };
      self.bytes -= dropped.record.size_bytes();
      self.from = dropped.position + 1;
    }
  }

  /// Where a new consumer begins: with the last record that was read.
  pub(super) fn again_from(&self) -> Position {
    self.records.back().map_or(self.to, |last| last.position)
  }
}
