//! The last records of one partition, as one reader of this process fetched them, for all the others.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::record::{Position, Stored};

/// Records kept: readers at the tail are at most a batch or two apart.
const RECORDS_MAX: usize = 2_048;
/// Bytes kept for one partition.
const BYTES_MAX: usize = 1024 * 1024;

/// A run of records without a gap in what was read.
#[derive(Default)]
pub(super) struct TailRing {
  records: VecDeque<Arc<Stored>>,
  /// A read from here on saw all up to `to`.
  from: Position,
  to: Position,
  bytes: usize,
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

  /// Takes in what a read from `from` saw.
  pub(super) fn put(&mut self, from: Position, seen: &[Arc<Stored>]) {
    let Some(last) = seen.last() else { return };
    if from != self.to {
      self.records.clear();
      self.bytes = 0;
      self.from = from;
    }
    self.to = last.position + 1;
    for stored in seen {
      self.bytes += stored.record.size_bytes();
      self.records.push_back(Arc::clone(stored));
    }
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
