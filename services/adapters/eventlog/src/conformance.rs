//! The suite that every engine of the log passes.
//!
//! [`run`] takes a maker of fresh, empty logs, so that every case begins with nothing. A case panics with what was wrong.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use crate::port::{APPEND_RECORDS_MAX, AppendError, EventLog, INPUT_BYTES_MAX, RECORD_BYTES_MAX};
use crate::record::{Partition, Position, Record, Stored, Stream};

/// Partitions of the logs that the suite asks for.
const PARTITIONS: Partition = 2;
/// How long a reader may take to hear of a record: `wait` answers within a second or so.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// Runs every case, each on a log that `make` makes with so many partitions.
pub async fn run<M, F>(make: M)
where
  M: Fn(Partition) -> F,
  F: Future<Output = Arc<dyn EventLog>>,
{
  appends_come_back_in_order_and_whole(&*make(PARTITIONS).await).await;
  streams_and_partitions_are_apart(&*make(PARTITIONS).await).await;
  reading_starts_in_the_middle_and_stops_at_the_end(&*make(PARTITIONS).await).await;
  one_caller_appends_in_the_order_of_its_calls(make(PARTITIONS).await).await;
  pr_18_parallel_callers_leave_no_visible_gap(make(PARTITIONS).await).await;
  a_wait_ends_when_a_record_is_there(make(PARTITIONS).await).await;
  a_wait_ends_by_itself(&*make(PARTITIONS).await).await;
  the_largest_record_is_taken_and_a_larger_one_refused(&*make(PARTITIONS).await).await;
  the_largest_append_is_taken_and_a_larger_or_empty_one_refused(&*make(PARTITIONS).await).await;
  a_partition_that_is_not_there_is_refused(&*make(PARTITIONS).await).await;
  the_identity_stays(&*make(PARTITIONS).await).await;
}

/// A record with number `n` and a value of `bytes` bytes.
pub fn record(n: u128, bytes: usize) -> Record {
  Record {
    id: Uuid::from_u128(n),
    type_name: format!("pa.conformance.Thing{}.v1", n % 3).into(),
    source: "pa/conformance".into(),
    traceparent: n.is_multiple_of(2).then(|| "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
    meta: Bytes::from((0..=255).collect::<Vec<u8>>()),
    value: Bytes::from((0..=255).cycle().take(bytes).collect::<Vec<u8>>()),
  }
}

async fn all(log: &dyn EventLog, stream: Stream, partition: Partition) -> Vec<Arc<Stored>> {
  let mut records: Vec<Arc<Stored>> = Vec::new();
  loop {
    let from = records.last().map_or(0, |last| last.position + 1);
    let batch = log.read(stream, partition, from, 100).await.expect("a read");
    if batch.is_empty() {
      return records;
    }
    records.extend(batch.iter().cloned());
  }
}

fn ids(records: &[Arc<Stored>]) -> Vec<u128> {
  records.iter().map(|stored| stored.record.id.as_u128()).collect()
}

async fn appends_come_back_in_order_and_whole(log: &dyn EventLog) {
  let written: Vec<Record> = [1, 0, 1_024, 70_000].iter().zip(1..).map(|(bytes, n)| record(n, *bytes)).collect();
  let first = log.append(Stream::Events, 0, written[..3].to_vec()).await.expect("an append");
  let second = log.append(Stream::Events, 0, written[3..].to_vec()).await.expect("an append");
  let positions: Vec<Position> = first.into_iter().chain(second).collect();
  assert!(positions.is_sorted_by(|left, right| left < right), "positions rise: {positions:?}");
  let read = all(log, Stream::Events, 0).await;
  assert_eq!(read.iter().map(|stored| stored.position).collect::<Vec<_>>(), positions, "records stand where the append said");
  for (stored, written) in read.iter().zip(&written) {
    assert_eq!(&stored.record, written, "every header and the value come back byte for byte");
  }
  let end = log.end(Stream::Events, 0).await.expect("an end");
  assert_eq!(end, positions[3] + 1, "the end is after the last record");
}

async fn streams_and_partitions_are_apart(log: &dyn EventLog) {
  let places = [(Stream::Inputs, 0), (Stream::Inputs, 1), (Stream::Events, 0), (Stream::Events, 1), (Stream::Pieces, 0)];
  for ((stream, partition), n) in places.into_iter().zip(1..) {
    log.append(stream, partition, vec![record(n, 10)]).await.expect("an append");
  }
  for ((stream, partition), n) in places.into_iter().zip(1..) {
    assert_eq!(ids(&all(log, stream, partition).await), [n], "{}/{partition}", stream.name());
  }
}

async fn reading_starts_in_the_middle_and_stops_at_the_end(log: &dyn EventLog) {
  assert_eq!(log.end(Stream::Events, 0).await.expect("an end"), 0, "an empty log ends at 0");
  assert!(log.read(Stream::Events, 0, 0, 10).await.expect("a read").is_empty(), "an empty log holds nothing");
  let positions = log.append(Stream::Events, 0, (1..=10).map(|n| record(n, 10)).collect()).await.expect("an append");
  let middle = log.read(Stream::Events, 0, positions[4], 3).await.expect("a read");
  assert_eq!(ids(&middle), [5, 6, 7], "so many from there on");
  let rest = log.read(Stream::Events, 0, positions[7], 100).await.expect("a read");
  assert_eq!(ids(&rest), [8, 9, 10], "no more than there are");
  let end = log.end(Stream::Events, 0).await.expect("an end");
  assert!(log.read(Stream::Events, 0, end, 10).await.expect("a read").is_empty(), "nothing is at the end");
  assert!(log.read(Stream::Events, 0, end + 1_000, 10).await.expect("a read").is_empty(), "nothing is behind the end");
}

async fn one_caller_appends_in_the_order_of_its_calls(log: Arc<dyn EventLog>) {
  // Each append is begun before the one before it has been answered.
  let appends = (1..=50).map(|n| {
    let log = Arc::clone(&log);
    async move { log.append(Stream::Events, 0, vec![record(n, 10)]).await.expect("an append")[0] }
  });
  let positions = futures::future::join_all(appends).await;
  assert!(positions.is_sorted_by(|left, right| left < right), "positions follow the calls: {positions:?}");
  assert_eq!(ids(&all(&*log, Stream::Events, 0).await), (1..=50).collect::<Vec<_>>());
}

async fn pr_18_parallel_callers_leave_no_visible_gap(log: Arc<dyn EventLog>) {
  const CALLERS: u128 = 8;
  const EACH: u128 = 40;
  let callers = (0..CALLERS).map(|caller| {
    let log = Arc::clone(&log);
    async move {
      for n in 0..EACH {
        log.append(Stream::Events, 0, vec![record(caller * 1_000 + n, 100)]).await.expect("an append");
      }
    }
  });
  // A reader that follows the tail must never pass a position at which a record appears later.
  let reader = async {
    let mut seen: Vec<Arc<Stored>> = Vec::new();
    while seen.len() < usize::try_from(CALLERS * EACH).expect("few") {
      let from = seen.last().map_or(0, |last| last.position + 1);
      let batch = log.read(Stream::Events, 0, from, 1_000).await.expect("a read");
      if batch.is_empty() {
        log.wait(Stream::Events, 0, from).await;
      }
      seen.extend(batch.iter().cloned());
    }
    seen
  };
  let both = futures::future::join(futures::future::join_all(callers), reader);
  let (_, seen) = tokio::time::timeout(HEARD_WITHIN * 12, both).await.expect("a reader at the tail misses no record: it would wait for ever");
  assert_eq!(ids(&seen), ids(&all(&*log, Stream::Events, 0).await), "the tail showed what the log holds, in its order");
  for caller in 0..CALLERS {
    let of_caller: Vec<u128> = ids(&seen).into_iter().filter(|id| id / 1_000 == caller).collect();
    assert_eq!(of_caller, (0..EACH).map(|n| caller * 1_000 + n).collect::<Vec<_>>(), "caller {caller} keeps its order");
  }
}

async fn a_wait_ends_when_a_record_is_there(log: Arc<dyn EventLog>) {
  log.append(Stream::Events, 0, vec![record(1, 10)]).await.expect("an append");
  tokio::time::timeout(HEARD_WITHIN, log.wait(Stream::Events, 0, 0)).await.expect("the record is there already");
  let end = log.end(Stream::Events, 0).await.expect("an end");
  let heard = async {
    loop {
      log.wait(Stream::Events, 0, end).await;
      let batch = log.read(Stream::Events, 0, end, 10).await.expect("a read");
      if !batch.is_empty() {
        return ids(&batch);
      }
    }
  };
  let appended = async {
    tokio::time::sleep(Duration::from_millis(20)).await;
    log.append(Stream::Events, 0, vec![record(2, 10)]).await.expect("an append");
  };
  let (heard, ()) = tokio::time::timeout(HEARD_WITHIN, futures::future::join(heard, appended)).await.expect("a waiting reader hears of it");
  assert_eq!(heard, [2]);
}

async fn a_wait_ends_by_itself(log: &dyn EventLog) {
  tokio::time::timeout(HEARD_WITHIN, log.wait(Stream::Events, 0, 0)).await.expect("a wait for nothing ends after a second or so");
}

/// A record of exactly `bytes` bytes.
fn sized(bytes: usize) -> Record {
  let front = record(1, 0).size_bytes();
  record(1, bytes - front)
}

async fn the_largest_record_is_taken_and_a_larger_one_refused(log: &dyn EventLog) {
  for (stream, most) in [(Stream::Events, RECORD_BYTES_MAX), (Stream::Inputs, INPUT_BYTES_MAX)] {
    let largest = sized(most);
    assert_eq!(largest.size_bytes(), most);
    log.append(stream, 0, vec![largest.clone()]).await.expect("the largest record");
    assert_eq!(all(log, stream, 0).await[0].record, largest);
    let refused = log.append(stream, 0, vec![record(2, 10), sized(most + 1)]).await.expect_err("a record that is too large");
    assert!(matches!(refused, AppendError::Refused { .. }) && refused.to_string().contains(&(most + 1).to_string()), "the refusal names the size: {refused}");
    assert_eq!(all(log, stream, 0).await.len(), 1, "nothing of a refused append is there");
  }
}

async fn the_largest_append_is_taken_and_a_larger_or_empty_one_refused(log: &dyn EventLog) {
  let most = u128::try_from(APPEND_RECORDS_MAX).expect("few");
  let positions = log.append(Stream::Events, 0, (0..most).map(|n| record(n, 100)).collect()).await.expect("the largest append");
  assert_eq!(positions.len(), APPEND_RECORDS_MAX);
  assert_eq!(ids(&all(log, Stream::Events, 0).await), (0..most).collect::<Vec<_>>());
  for wrong in [(0..=most).map(|n| record(n, 100)).collect(), Vec::new()] {
    let refused = log.append(Stream::Events, 0, wrong).await.expect_err("too many records, or none");
    assert!(matches!(refused, AppendError::Refused { .. }), "{refused}");
  }
}

async fn a_partition_that_is_not_there_is_refused(log: &dyn EventLog) {
  let refused = log.append(Stream::Events, PARTITIONS, vec![record(1, 10)]).await.expect_err("there is no such partition");
  assert!(matches!(refused, AppendError::Refused { .. }), "{refused}");
  assert!(log.read(Stream::Events, PARTITIONS, 0, 1).await.is_err(), "there is no such partition");
  assert!(log.end(Stream::Events, PARTITIONS).await.is_err(), "there is no such partition");
}

async fn the_identity_stays(log: &dyn EventLog) {
  let before = log.identity().await.expect("an identity");
  assert_eq!(before.partitions, PARTITIONS);
  log.append(Stream::Events, 0, vec![record(1, 10)]).await.expect("an append");
  assert_eq!(log.identity().await.expect("an identity"), before);
}
