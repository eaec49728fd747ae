//! How far the projector is, for `/readyz`, `/metrics` and the system page.

use std::collections::BTreeMap;
use std::sync::Arc;

use pa_eventlog::{Partition, Position};
use parking_lot::Mutex;

use super::Error;

/// How far one partition is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionStatus {
  pub next_position: Position,
  /// The end of the log when it was last measured.
  pub end: Position,
  /// It has been at the end of the log since this process began.
  pub caught_up: bool,
  /// What fails now.
  pub error: Option<String>,
  /// It goes on only after somebody acted.
  pub stopped: bool,
}

impl PartitionStatus {
  /// Records that the read model is behind the log.
  pub fn lag(&self) -> i64 {
    (self.end - self.next_position).max(0)
  }
}

/// How far all partitions are; a clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Status {
  partitions: Arc<Mutex<BTreeMap<Partition, PartitionStatus>>>,
}

impl Status {
  /// Every partition.
  pub fn partitions(&self) -> BTreeMap<Partition, PartitionStatus> {
    self.partitions.lock().clone()
  }

  /// Why the read model is not ready; none: it is.
  pub fn reasons_to_wait(&self) -> Vec<String> {
    let partitions = self.partitions.lock();
    if partitions.is_empty() {
      return vec!["the read model has not begun".to_owned()];
    }
    partitions
      .iter()
      .filter_map(|(partition, status)| match &status.error {
        Some(error) => Some(format!("partition {partition} of the read model: {error}")),
        None if !status.caught_up => Some(format!("partition {partition} of the read model is {} records behind", status.lag())),
        None => None,
      })
      .collect()
  }

  pub(super) fn expect(&self, count: Partition) {
    let mut partitions = self.partitions.lock();
    for partition in 0..count {
      partitions.entry(partition).or_default();
    }
  }

  pub(super) fn reached(&self, partition: Partition, next_position: Position, at_end: bool) {
    self.change(partition, |status| {
      status.next_position = next_position;
      status.caught_up |= at_end;
      status.error = None;
    });
  }

  pub(super) fn end(&self, partition: Partition, end: Position) {
    self.change(partition, |status| status.end = end);
  }

  pub(super) fn failed(&self, partition: Partition, error: &Error) {
    self.change(partition, |status| status.error = Some(error.to_string()));
  }

  pub(super) fn stopped(&self, partition: Partition) {
    self.change(partition, |status| status.stopped = true);
  }

  pub(super) fn begin_again(&self) {
    for status in self.partitions.lock().values_mut() {
      *status = PartitionStatus { end: status.end, ..PartitionStatus::default() };
    }
  }

  fn change(&self, partition: Partition, change: impl FnOnce(&mut PartitionStatus)) {
    let mut partitions = self.partitions.lock();
    let status = partitions.entry(partition).or_default();
    change(status);
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and a lag of 2^52 records is none")]
    metrics::gauge!("pa_projector_lag", "partition" => partition.to_string()).set(status.lag() as f64);
  }
}
