//! The last records of one partition, as one reader of this process fetched them, for all the others; and those that this process appended itself.
//!
//! Invariants
//! - What it holds stands in the log: it was selected, or its append was acknowledged and lies directly behind what was known. Positions are dense, because an append
//!   takes its first one from the locked head row: an append that begins at the known end proves that nobody else wrote before it.
//! - It never outlives trouble: a failed read or append empties it, so that the next reader asks the database.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::record::{Position, Record, Stored};

/// Records kept: readers at the tail are at most a batch or two apart.
const RECORDS_MAX: usize = 2_048;
/// Bytes kept for one partition.
const BYTES_MAX: usize = 1024 * 1024;

/// For so long nobody asks again whether others have appended: several readers look at the same tail, each about once a second, and a hint ends it at once.
const QUIET: Duration = Duration::from_millis(500);

/// A run of records without a gap in what was read.
#[derive(Default)]
pub(super) struct TailRing {
  records: VecDeque<Arc<Stored>>,
  /// A read from here on saw all up to `to`.
  from: Position,
  to: Position,
  bytes: usize,
  /// When it was known last that the log ends at a position.
  ended: Option<(Position, Instant)>,
}

impl TailRing {
  /// What the ring knows from `from` on; `None` when it can't answer.
  pub(super) fn get(&self, from: Position, max: usize) -> Option<Arc<[Arc<Stored>]>> {
    if from < self.from || from >= self.to {
      return None;
    }
    let start = self.records.partition_point(|stored| stored.position < from);
    Some(self.records.iter().skip(start).take(max).cloned().collect())
  }

  /// Takes in what a read from `from` saw; `whole`: it saw all that there was.
  pub(super) fn put(&mut self, from: Position, seen: &[Arc<Stored>], whole: bool) {
    let end = seen.last().map_or(from, |last| last.position + 1);
    self.ended = whole.then(|| (end, Instant::now()));
    if seen.is_empty() {
      return;
    }
    if from != self.to {
      self.records.clear();
      self.bytes = 0;
      self.from = from;
    }
    self.to = end;
    for stored in seen {
      self.push(Arc::clone(stored));
    }
    self.shorten();
  }

  /// Takes in what this process appended at `first`, if it lies directly behind what is known.
  pub(super) fn append(&mut self, first: Position, records: Vec<Record>) {
    if first != self.to {
      return;
    }
    for record in records {
      self.push(Arc::new(Stored::new(self.to, record)));
      self.to += 1;
    }
    self.ended = Some((self.to, Instant::now()));
    self.shorten();
  }

  /// Whether the log ended at `from` a moment ago.
  pub(super) fn ends_at(&self, from: Position) -> bool {
    self.ended.is_some_and(|(end, at)| end == from && at.elapsed() < QUIET)
  }

  fn push(&mut self, stored: Arc<Stored>) {
    self.bytes += stored.record.size_bytes();
    self.records.push_back(stored);
  }

  fn shorten(&mut self) {
    while self.records.len() > RECORDS_MAX || self.bytes > BYTES_MAX {
      let Some(dropped) = self.records.pop_front() else { break };
      self.bytes -= dropped.record.size_bytes();
      self.from = dropped.position + 1;
    }
  }

  /// Whether a read from `from` would extend the ring or begin a later one; readers far behind leave it alone.
  pub(super) fn wants(&self, from: Position) -> bool {
    from >= self.to
  }

  /// Forgets everything: the log behind it may be another one.
  pub(super) fn clear(&mut self) {
    *self = Self::default();
  }
}
