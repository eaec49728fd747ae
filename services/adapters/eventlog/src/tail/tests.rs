//! What the tail hands on, to whom, and when.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::ids::RecordId;
use pa_domain::log::{EpochAnnounced, InputSettled, Settlement};
use pa_domain::meta::Kind;
use pa_domain::{AgentId, Event, Meta, Origin, Timestamp};
use pa_store::keys::KeyRing;
use tokio::time::{sleep, timeout};

use super::*;
use crate::compose::{Composer, Draft};
use crate::meta::NO_HASH;
use crate::record::{Record, Stream};
use crate::seal::{KeyState, Keys};
use crate::sim::{Plan, SimLog};

pub(crate) const AGENT: AgentId = AgentId(Uuid::from_u128(1));

/// A log with one partition and whatever a test writes into it.
pub(crate) struct World {
  pub(crate) log: SimLog,
  pub(crate) keys: Arc<KeyRing>,
  composer: Composer,
}

impl World {
  pub(crate) fn new() -> Self {
    Self { log: SimLog::new(1, true, Plan::none()), keys: Arc::new(KeyRing::fixed()), composer: Composer::new(true, "pa/decider") }
  }

  pub(crate) fn shared(&self) -> Arc<dyn EventLog> {
    Arc::new(self.log.clone())
  }

  pub(crate) fn opener(&self) -> Arc<Opener> {
    Arc::new(Opener::new(Arc::clone(&self.keys) as Arc<dyn Keys>, true))
  }

  pub(crate) fn announce(&self, epoch: i64) {
    let announced = EpochAnnounced { inputs_from: 0, base_epoch: 0, base_seq: 0, holder: RecordId(Uuid::from_u128(9)) };
    let id = Uuid::from_u128(u128::from(epoch.unsigned_abs()) << 64);
    self.log.put(Stream::Events, 0, vec![self.composer.announcement(id, epoch, Timestamp(5), announced).unwrap()]);
  }

  /// A decision of two parts on the input `input`.
  pub(crate) async fn decision(&self, input: Uuid, epoch: i64, seq: i64) -> Vec<Record> {
    let KeyState::Ready(keys) = self.keys.keys(AGENT).await.unwrap() else { panic!("fixed keys") };
    let meta = Meta {
      id: input,
      kind: Kind::Input,
      agent: AGENT,
      ordinal: 0,
      at: Timestamp(7),
      cause: Uuid::nil(),
      correlation: input,
      actor: "owner".into(),
      origin: Origin::Owner,
      producer: String::new(),
      key: Vec::new(),
      input: 0,
      held: false,
      part: 0,
    };
    let settled = || Event::from(InputSettled { outcome: Settlement::Refused, reason: "NOT_FOUND".into(), of: None });
    let events = [settled(), settled()];
    let draft =
      Draft { input: &meta, position: 0, held: false, at: Timestamp(9), epoch, seq, ordinal: seq - 1, chain: NO_HASH, first_index: 0, events: &events };
    self.composer.decision(Some(&keys), &draft, None).unwrap().records
  }

  pub(crate) async fn put(&self, input: Uuid, epoch: i64, seq: i64) {
    let records = self.decision(input, epoch, seq).await;
    self.log.put(Stream::Events, 0, records);
  }

  fn tail(&self) -> (Arc<Tail>, CancellationToken) {
    let stop = CancellationToken::new();
    (Tail::start(&self.shared(), &self.opener(), vec![FenceState::START], &TaskTracker::new(), &stop), stop)
  }
}

pub(crate) fn input(number: u128) -> Uuid {
  Uuid::from_u128(number)
}

async fn following(tail: &Tail) {
  let mut status = tail.statuses()[0].clone();
  status.wait_for(|status| *status == Status::Following).await.unwrap();
}

const SOON: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn who_registers_before_the_append_gets_the_whole_decision() {
  let world = World::new();
  world.announce(1);
  let (tail, _stop) = world.tail();
  let expected = tail.expect(AGENT, input(4));
  let mut all = tail.subscribe();
  following(&tail).await;
  world.put(input(3), 1, 1).await;
  world.put(input(4), 1, 3).await;
  let decision = expected.within(SOON).await.unwrap();
  assert_eq!((decision.cause, decision.events.len(), decision.last_ordinal()), (input(4), 2, 4));
  assert_eq!(all.recv().await.unwrap().cause, input(3));
  assert_eq!(all.recv().await.unwrap().cause, input(4));
}

/// A mutation is answered when its decision was read back as accepted, never when it was appended.
#[tokio::test(start_paused = true)]
async fn what_does_not_count_is_not_handed_on() {
  let world = World::new();
  world.announce(1);
  world.announce(2);
  let (tail, _stop) = world.tail();
  following(&tail).await;
  let expected = tail.expect(AGENT, input(4));
  world.put(input(4), 1, 1).await;
  assert!(expected.within(SOON).await.is_none());
  let expected = tail.expect(AGENT, input(4));
  world.put(input(4), 2, 1).await;
  assert_eq!(expected.within(SOON).await.unwrap().epoch, 2);
}

/// The simulator must see a failure when the guard is off.
#[cfg(feature = "mutants")]
#[tokio::test(start_paused = true)]
async fn without_the_guard_an_append_is_answered() {
  let _off = crate::guards::switch_off(crate::guards::Guard::AnswerOnAppend);
  let world = World::new();
  world.announce(1);
  world.announce(2);
  let (tail, _stop) = world.tail();
  let expected = tail.expect(AGENT, input(4));
  following(&tail).await;
  world.put(input(4), 1, 1).await;
  assert_eq!(expected.within(SOON).await.unwrap().epoch, 1);
}

#[tokio::test(start_paused = true)]
async fn half_a_decision_is_not_handed_on() {
  let world = World::new();
  world.announce(1);
  let (tail, _stop) = world.tail();
  following(&tail).await;
  let expected = tail.expect(AGENT, input(4));
  let mut records = world.decision(input(4), 1, 1).await;
  let second = records.pop().unwrap();
  world.log.put(Stream::Events, 0, records);
  sleep(SOON).await;
  world.log.put(Stream::Events, 0, vec![second]);
  assert!(expected.within(SOON).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_stood_before_the_start_is_not_followed_but_an_early_waiter_still_gets_its_own() {
  let world = World::new();
  world.announce(1);
  for number in 1..=1_200 {
    world.put(input(number), 1, i64::try_from(number).unwrap() * 2 - 1).await;
  }
  let (tail, _stop) = world.tail();
  // Registered after the start, before the task has found the end: as a request does that comes while a process starts.
  let expected = tail.expect(AGENT, input(1_199));
  let mut all = tail.subscribe();
  assert_eq!(expected.within(SOON).await.unwrap().cause, input(1_199));
  assert_eq!(all.recv().await.unwrap().cause, input(1_199));
  assert_eq!(all.recv().await.unwrap().cause, input(1_200));
  assert!(timeout(SOON, all.recv()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn waits_that_were_given_up_leave_nothing_behind() {
  let world = World::new();
  let (tail, _stop) = world.tail();
  let kept = tail.expect(AGENT, input(4));
  drop(tail.expect(AGENT, input(4)));
  assert!(tail.waiters.waits(input(4)), "the other one still waits");
  assert!(kept.within(Duration::from_millis(1)).await.is_none());
  assert!(!tail.waiters.waits(input(4)));
}

#[tokio::test(start_paused = true)]
async fn a_decision_of_another_agent_is_nobodys_answer() {
  let world = World::new();
  world.announce(1);
  let (tail, _stop) = world.tail();
  following(&tail).await;
  let expected = tail.expect(AgentId(Uuid::from_u128(2)), input(4));
  world.put(input(4), 1, 1).await;
  assert!(expected.within(SOON).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_what_nobody_can_read_any_more_ends_at_once() {
  let world = World::new();
  world.announce(1);
  let (tail, _stop) = world.tail();
  following(&tail).await;
  let records = world.decision(input(4), 1, 1).await;
  world.keys.erase(AGENT).await.unwrap();
  let expected = tail.expect(AGENT, input(4));
  world.log.put(Stream::Events, 0, records);
  let begun = tokio::time::Instant::now();
  assert!(expected.within(SOON).await.is_none());
  assert!(begun.elapsed() < SOON);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_said_and_waited_out() {
  let world = World::new();
  world.announce(1);
  let (tail, _stop) = world.tail();
  following(&tail).await;
  let expected = tail.expect(AGENT, input(4));
  world.log.set_away(true);
  let mut status = tail.statuses()[0].clone();
  status.wait_for(|status| *status == Status::Away).await.unwrap();
  world.put(input(4), 1, 1).await;
  sleep(Duration::from_secs(60)).await;
  world.log.set_away(false);
  assert!(expected.within(SOON).await.is_some());
  assert_eq!(*tail.statuses()[0].borrow(), Status::Following);
}

/// A stop or a call's fate that nobody hears of would let a turn run on.
#[tokio::test(start_paused = true)]
async fn what_was_decided_during_an_outage_is_handed_on_after_it() {
  let world = World::new();
  world.announce(1);
  let (tail, _stop) = world.tail();
  following(&tail).await;
  let mut all = tail.subscribe();
  world.log.set_away(true);
  tail.statuses()[0].clone().wait_for(|status| *status == Status::Away).await.unwrap();
  world.put(input(3), 1, 1).await;
  world.put(input(4), 1, 3).await;
  world.log.set_away(false);
  assert_eq!(all.recv().await.unwrap().cause, input(3));
  assert_eq!(all.recv().await.unwrap().cause, input(4));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_was_replaced_is_read_anew() {
  let world = World::new();
  world.announce(1);
  world.put(input(3), 1, 1).await;
  let (tail, _stop) = world.tail();
  following(&tail).await;
  world.log.set_away(true);
  sleep(Duration::from_secs(5)).await;
  world.log.replace();
  world.log.set_away(false);
  world.announce(1);
  sleep(Duration::from_secs(10)).await;
  let expected = tail.expect(AGENT, input(4));
  world.put(input(4), 1, 1).await;
  assert!(expected.within(SOON).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_is_too_slow_is_told() {
  let world = World::new();
  world.announce(1);
  let (tail, _stop) = world.tail();
  following(&tail).await;
  let mut slow = tail.subscribe();
  let last = u128::try_from(DECISIONS_KEPT).unwrap() + 10;
  for number in 1..=last {
    world.put(input(number), 1, i64::try_from(number).unwrap() * 2 - 1).await;
  }
  tail.expect(AGENT, input(last)).within(SOON).await;
  assert!(matches!(slow.recv().await, Err(broadcast::error::RecvError::Lagged(_))));
}

/// A recorder that adds up one counter.
struct Counting(Arc<std::sync::atomic::AtomicU64>);

impl metrics::Recorder for Counting {
  fn describe_counter(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
  fn describe_gauge(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
  fn describe_histogram(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}

  fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
    if key.name() == "pa_log_void_records_total" { metrics::Counter::from_arc(Arc::clone(&self.0)) } else { metrics::Counter::noop() }
  }

  fn register_gauge(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
    metrics::Gauge::noop()
  }

  fn register_histogram(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Histogram {
    metrics::Histogram::noop()
  }
}

/// What a stale decider wrote is counted, each record once, and nothing else is.
#[tokio::test(start_paused = true)]
async fn void_records_are_counted() {
  let counted = Arc::new(std::sync::atomic::AtomicU64::new(0));
  let recorder = Counting(Arc::clone(&counted));
  let _here = metrics::set_default_local_recorder(&recorder);
  let world = World::new();
  world.announce(1);
  world.announce(2);
  let (tail, _stop) = world.tail();
  following(&tail).await;
  let expected = tail.expect(AGENT, input(5));
  world.put(input(3), 2, 1).await;
  world.put(input(4), 1, 1).await;
  world.put(input(5), 2, 3).await;
  assert!(expected.within(SOON).await.is_some());
  assert_eq!(counted.load(std::sync::atomic::Ordering::Relaxed), 2, "both parts of the decision of the older term");
}
