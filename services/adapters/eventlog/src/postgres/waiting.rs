//! Which appends of a stream go into the next statement, and whether it may go beside the one before.
//!
//! The partitions are two halves. What waits goes together in one statement, and the next one gathers while that is written: on a busy machine nothing costs less.
//! But when a half has a statement's worth of its own, the other half's need not keep it waiting: then one is filled while the other waits for the disk. Invariants
//! - Appends to one partition stand in one half, are taken in the order in which they came, and no half is in two statements at a time. So they land in that order.
//! - Two statements never need the same head row: neither waits for the other.

use std::collections::VecDeque;

use super::append::Request;
use crate::port::APPEND_RECORDS_MAX;
use crate::record::{Partition, Record};

/// Halves of the partitions, and so statements of a stream that are under way: a third would wait for the same disk.
pub(super) const HALVES: usize = 2;
/// Records for which a statement of their own is worth while another one is under way: what it costs besides its records is then less than an eighth.
const WORTH: usize = 64;
/// Bytes of one statement: a full batch of small records, or a few large ones.
const BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Default)]
struct Half {
  requests: VecDeque<Request>,
  records: usize,
  is_written: bool,
}

impl Half {
  fn is_worth_a_statement(&self) -> bool {
    !self.is_written && self.records >= WORTH
  }

  /// Moves what fits into a statement that has so many records and bytes already.
  fn fill(&mut self, batch: &mut Vec<Request>, size: &mut (usize, usize)) {
    while let Some(next) = self.requests.front() {
      let (records, bytes) = (size.0 + next.records.len(), size.1 + bytes_of(next));
      if !batch.is_empty() && (records > APPEND_RECORDS_MAX || bytes > BYTES_MAX) {
        return;
      }
      *size = (records, bytes);
      self.records -= next.records.len();
      self.is_written = true;
      batch.extend(self.requests.pop_front());
    }
  }
}

fn bytes_of(request: &Request) -> usize {
  request.records.iter().map(Record::size_bytes).sum()
}

/// Halves that a statement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written([bool; HALVES]);

/// Appends that wait.
#[derive(Default)]
pub(super) struct Waiting {
  halves: [Half; HALVES],
  /// The half that a statement of both begins with; they take turns, so that none fills every statement.
  first: usize,
}

impl Waiting {
  pub(super) fn push(&mut self, request: Request) {
    let half = &mut self.halves[half_of(request.partition)];
    half.records += request.records.len();
    half.requests.push_back(request);
  }

  /// How many wait.
  pub(super) fn len(&self) -> usize {
    self.halves.iter().map(|half| half.requests.len()).sum()
  }

  /// The next statement, if one may begin now.
  pub(super) fn next(&mut self) -> Option<(Vec<Request>, Written)> {
    let alone = self.halves.iter().any(|half| half.is_written) || self.halves.iter().all(Half::is_worth_a_statement);
    let taken: &[usize] = if alone {
      &[self.halves.iter().position(Half::is_worth_a_statement)?]
    } else {
      self.first = (self.first + 1) % HALVES;
      &[self.first, (self.first + 1) % HALVES]
    };
    let (mut batch, mut size, mut written) = (Vec::new(), (0, 0), [false; HALVES]);
    for half in taken {
      let before = batch.len();
      self.halves[*half].fill(&mut batch, &mut size);
      written[*half] = batch.len() > before;
    }
    (!batch.is_empty()).then_some((batch, Written(written)))
  }

  /// A statement is over.
  pub(super) fn over(&mut self, written: Written) {
    for (half, was_written) in self.halves.iter_mut().zip(written.0) {
      half.is_written &= !was_written;
    }
  }
}

fn half_of(partition: Partition) -> usize {
  usize::from(partition) % HALVES
}

#[cfg(test)]
mod tests {
  use tokio::sync::oneshot;

  use super::*;
  use crate::conformance::record;

  /// An append with number `n` of so many records.
  fn request(partition: Partition, n: u128, records: usize) -> Request {
    let records = (0..records).map(|part| record(n * 10_000 + part as u128, 10)).collect();
    Request { partition, records, reply: oneshot::channel().0 }
  }

  fn numbers(batch: &[Request]) -> Vec<u128> {
    batch.iter().map(|request| request.records[0].id.as_u128() / 10_000).collect()
  }

  #[test]
  fn a_little_goes_together_and_waits_for_the_statement_before() {
    let mut waiting = Waiting::default();
    waiting.push(request(0, 1, 1));
    let (batch, first) = waiting.next().unwrap();
    assert_eq!(numbers(&batch), [1]);
    for n in 2..6 {
      waiting.push(request((n % 3).try_into().unwrap(), n, 10));
      assert!(waiting.next().is_none(), "it gathers");
    }
    waiting.over(first);
    let (batch, _) = waiting.next().unwrap();
    assert_eq!(batch.len(), 4);
    assert_eq!(waiting.len(), 0);
  }

  #[test]
  fn a_half_with_a_statements_worth_goes_beside_the_other() {
    let mut waiting = Waiting::default();
    waiting.push(request(0, 1, 1));
    let (_, even) = waiting.next().unwrap();
    waiting.push(request(2, 2, WORTH));
    assert!(waiting.next().is_none(), "its half is written: the order of a partition's appends would be lost");
    waiting.push(request(1, 3, WORTH - 1));
    assert!(waiting.next().is_none(), "it is not worth a statement");
    waiting.push(request(3, 4, 1));
    let (batch, odd) = waiting.next().unwrap();
    assert_eq!(numbers(&batch), [3, 4]);
    assert!(waiting.next().is_none());
    waiting.over(even);
    assert_eq!(numbers(&waiting.next().unwrap().0), [2]);
    waiting.over(odd);
    assert!(waiting.next().is_none());
  }

  #[test]
  fn two_full_halves_go_apart() {
    let mut waiting = Waiting::default();
    for n in 0..40 {
      waiting.push(request((n % 4).try_into().unwrap(), n, 4));
    }
    let (one, two) = (waiting.next().unwrap().0, waiting.next().unwrap().0);
    let halves = |batch: &[Request]| batch.iter().map(|request| half_of(request.partition)).collect::<std::collections::BTreeSet<_>>();
    assert_eq!((halves(&one).len(), halves(&two).len(), one.len() + two.len()), (1, 1, 40));
    assert!(numbers(&one).is_sorted() && numbers(&two).is_sorted(), "in the order in which they came");
  }

  #[test]
  fn a_statement_has_its_limits_and_no_half_is_kept_waiting_for_ever() {
    let mut waiting = Waiting::default();
    for n in 0..4 {
      waiting.push(request(0, n, APPEND_RECORDS_MAX));
    }
    waiting.push(request(1, 9, 1));
    let mut order = Vec::new();
    while waiting.len() > 0 {
      let (batch, written) = waiting.next().unwrap();
      assert!(batch.iter().map(|request| request.records.len()).sum::<usize>() <= APPEND_RECORDS_MAX);
      order.extend(numbers(&batch));
      waiting.over(written);
    }
    assert_eq!(order.iter().filter(|n| **n != 9).copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(order.iter().position(|n| *n == 9).unwrap() < 2, "it goes in one of the first statements: {order:?}");
  }
}
