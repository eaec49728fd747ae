//! What a projection is told: a fact with its metadata, and how far a partition has been read.

use pa_domain::{Event, Meta};

/// One accepted event.
#[derive(Clone, Copy, Debug)]
pub struct Fact<'a> {
  pub partition: u16,
  /// Where the record stands in the partition.
  pub position: i64,
  pub meta: &'a Meta,
  pub event: &'a Event,
}

/// How far a partition has been read: the fence's state before the next decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
  pub next_position: i64,
  pub epoch: i64,
  pub seq: i64,
  /// SHA-256 of the whole record before.
  pub last: [u8; 32],
}
