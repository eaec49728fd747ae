//! Reading ahead: the same decisions in the same order, whatever becomes of the batch that was asked for early.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::*;
use crate::fence::{Base, FenceState};
use crate::port::{AppendError, Identity};
use crate::reader::{Error, Item, Reader};
use crate::record::Record;
use crate::sim::{Plan, SimLog};
use crate::testing::Script;

const P: Partition = 0;
/// Records of one batch: no divisor of a decision's three, so that batches end inside decisions.
const BATCH: usize = 4;

/// A log in memory that is worth reading ahead, and notes what is asked of it.
struct Slow {
  log: SimLog,
  /// Where reads began, in order.
  begun: Mutex<Vec<Position>>,
  checks: AtomicUsize,
  /// Reads from here fail, so often.
  fails: Mutex<Option<(Position, usize)>>,
  /// Reads from here never end.
  hangs: Option<Position>,
  given_up: Arc<AtomicBool>,
}

struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
  fn drop(&mut self) {
    self.0.store(true, Ordering::Relaxed);
  }
}

#[async_trait]
impl EventLog for Slow {
  async fn append(&self, stream: Stream, partition: Partition, records: Vec<Record>) -> Result<Vec<Position>, AppendError> {
    self.log.append(stream, partition, records).await
  }

  async fn read(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Batch, LogError> {
    self.begun.lock().push(from);
    if let Some((position, left)) = self.fails.lock().as_mut()
      && *position == from
      && *left > 0
    {
      *left -= 1;
      return Err(LogError::Away("the connection was lost".into()));
    }
    if self.hangs == Some(from) {
      let _given_up = GivenUp(Arc::clone(&self.given_up));
      std::future::pending::<()>().await;
    }
    self.log.read(stream, partition, from, max).await
  }

  async fn wait(&self, stream: Stream, partition: Partition, from: Position) {
    self.log.wait(stream, partition, from).await;
  }

  async fn end(&self, stream: Stream, partition: Partition) -> Result<Position, LogError> {
    self.log.end(stream, partition).await
  }

  async fn identity(&self) -> Result<Identity, LogError> {
    self.checks.fetch_add(1, Ordering::Relaxed);
    self.log.identity().await
  }

  fn reads_ahead(&self) -> bool {
    true
  }
}

/// A log with an announcement and `decisions` decisions of three records each.
async fn filled(decisions: Position) -> (Slow, Script) {
  let (log, mut script) = (SimLog::new(1, true, Plan::none()), Script::new(true));
  let announcement = script.announcement(1, Base { epoch: 0, seq: 0 }, 0);
  log.put(Stream::Events, P, vec![announcement]);
  for input in 0..decisions {
    let records = script.decision(1, (1, 1 + 3 * input), input, 3).await;
    log.put(Stream::Events, P, records);
  }
  let slow = Slow { log, begun: Mutex::default(), checks: AtomicUsize::new(0), fails: Mutex::default(), hangs: None, given_up: Arc::default() };
  (slow, script)
}

fn reader(log: &Arc<Slow>, script: &Script) -> Reader {
  Reader::new(Arc::clone(log) as Arc<dyn EventLog>, script.opener(), P, FenceState::START).with_records_max(BATCH)
}

/// The inputs that were decided, as far as the reader comes without waiting.
async fn decided(reader: &mut Reader) -> Result<Vec<Position>, Error> {
  let mut inputs = Vec::new();
  loop {
    let items = reader.poll().await?;
    if items.is_empty() {
      return Ok(inputs);
    }
    inputs.extend(items.iter().filter_map(Item::decided).map(|head| head.input));
    // A batch is worked on for a while; meanwhile the next one is read.
    tokio::task::yield_now().await;
  }
}

#[tokio::test]
async fn what_is_read_ahead_comes_whole_and_in_order() {
  for decisions in [1, 4, 5, 40] {
    let (log, script) = filled(decisions).await;
    let log = Arc::new(log);
    let mut reader = reader(&log, &script);
    assert_eq!(decided(&mut reader).await.unwrap(), (0..decisions).collect::<Vec<_>>());
    let end = 1 + 3 * decisions;
    assert_eq!(reader.position(), end);
    let begun = log.begun.lock().clone();
    let expected: Vec<Position> = (0..end).step_by(BATCH).collect();
    assert_eq!(begun[..expected.len()], expected, "each batch is asked for once");
    assert!(begun[expected.len()..].iter().all(|from| *from == end), "nothing is asked for behind the end: {begun:?}");
  }
}

#[tokio::test]
async fn the_next_batch_is_asked_for_while_one_is_worked_on_and_no_further_one() {
  let (log, script) = filled(40).await;
  let log = Arc::new(log);
  let mut reader = reader(&log, &script);
  reader.poll().await.unwrap();
  for _ in 0..10 {
    tokio::task::yield_now().await;
  }
  assert_eq!(*log.begun.lock(), [0, 4]);
}

#[tokio::test]
async fn what_lands_after_an_empty_batch_ahead_is_not_missed() {
  // Sixteen records: the fourth batch is full, and the one after it is empty.
  let (log, mut script) = filled(5).await;
  let log = Arc::new(log);
  let mut reader = reader(&log, &script);
  assert_eq!(decided(&mut reader).await.unwrap(), [0, 1, 2, 3, 4]);
  let records = script.decision(1, (1, 16), 5, 3).await;
  log.log.put(Stream::Events, P, records);
  assert_eq!(decided(&mut reader).await.unwrap(), [5]);
}

#[tokio::test]
async fn a_batch_ahead_that_fails_comes_again_and_the_log_is_compared_first() {
  let (mut log, script) = filled(40).await;
  log.fails = Mutex::new(Some((8, 2)));
  let log = Arc::new(log);
  let mut reader = reader(&log, &script);
  let (mut inputs, mut failures) = (Vec::new(), 0);
  loop {
    match reader.poll().await {
      Ok(items) if items.is_empty() => break,
      Ok(items) => inputs.extend(items.iter().filter_map(Item::decided).map(|head| head.input)),
      Err(error) => {
        assert!(error.is_passing());
        failures += 1;
      }
    }
  }
  assert_eq!((inputs, failures), ((0..40).collect::<Vec<_>>(), 2), "nothing is lost by a failure, and nothing comes twice");
  assert_eq!(log.checks.load(Ordering::Relaxed), 3, "at the start and after each failure");
}

#[tokio::test]
async fn a_reader_dropped_in_the_middle_ends_its_request() {
  let (mut log, script) = filled(40).await;
  log.hangs = Some(4);
  let log = Arc::new(log);
  let mut reader = reader(&log, &script);
  assert!(!reader.poll().await.unwrap().is_empty());
  while log.begun.lock().len() < 2 {
    tokio::task::yield_now().await;
  }
  assert!(!log.given_up.load(Ordering::Relaxed));
  drop(reader);
  while !log.given_up.load(Ordering::Relaxed) {
    tokio::task::yield_now().await;
  }
}

#[tokio::test]
async fn a_cancelled_read_loses_nothing_of_what_was_read_ahead() {
  let (log, script) = filled(40).await;
  let log = Arc::new(log);
  let mut reader = reader(&log, &script);
  let mut inputs = Vec::new();
  loop {
    let polled = tokio::select! {
      biased;
      () = async {} => None,
      items = reader.poll() => Some(items.unwrap()),
    };
    assert!(polled.is_none(), "it is cancelled before it has begun");
    let items = reader.poll().await.unwrap();
    if items.is_empty() {
      break;
    }
    inputs.extend(items.iter().filter_map(Item::decided).map(|head| head.input));
    // The next poll waits for the batch ahead, and is cancelled while it does.
    let cancelled = tokio::select! {
      biased;
      items = reader.poll() => items.unwrap(),
      () = tokio::task::yield_now() => Vec::new(),
    };
    inputs.extend(cancelled.iter().filter_map(Item::decided).map(|head| head.input));
  }
  assert_eq!(inputs, (0..40).collect::<Vec<_>>());
}
