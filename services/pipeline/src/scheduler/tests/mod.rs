//! Timers are fired when they are due, each once, by one process.

mod postgres;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pa_domain::timer::{Input, Purpose, TimerFired};
use pa_domain::{AgentId, ThingId, TimerId, Timestamp};
use pa_eventlog::appender::Appender;
use pa_eventlog::opener::{Opened, Opener};
use pa_eventlog::seal::Keys;
use pa_eventlog::sim::{Fault, Plan, SimLog};
use pa_eventlog::{EventLog, Stream};
use pa_projections::timers::Timer;
use pa_store::clock::{Clock, SystemIds};
use pa_store::keys::KeyRing;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Keeper, SchedulerParts, Timers, run};

const AGENT: AgentId = AgentId(Uuid::from_u128(1));

struct TestClock(Instant);

impl Clock for TestClock {
  fn now(&self) -> Timestamp {
    Timestamp(i64::try_from(self.0.elapsed().as_millis()).unwrap())
  }
}

/// Timers as the read model has them: they stay until the test takes them away.
#[derive(Default)]
struct Table {
  timers: Mutex<Vec<Timer>>,
  changed: Notify,
  led: AtomicBool,
  /// How often it was looked for the next one.
  looks: AtomicUsize,
}

impl Table {
  fn set(&self, number: u128, due: i64) {
    let thing = Some(ThingId(Uuid::from_u128(7)));
    self.timers.lock().push(Timer { agent: AGENT, id: TimerId(Uuid::from_u128(number)), purpose: Purpose::AttemptLimit, due: Timestamp(due), thing });
    self.changed.notify_waiters();
  }
}

#[async_trait]
impl Timers for Table {
  async fn leads(&self) -> anyhow::Result<bool> {
    Ok(!self.led.load(Ordering::SeqCst))
  }

  async fn resign(&self) {}

  async fn due(&self, at: Timestamp, limit: u32) -> anyhow::Result<Vec<Timer>> {
    let mut due: Vec<Timer> = self.timers.lock().iter().filter(|timer| timer.due <= at).cloned().collect();
    due.sort_by_key(|timer| timer.due);
    due.truncate(limit as usize);
    Ok(due)
  }

  async fn next_due(&self, after: Timestamp) -> anyhow::Result<Option<Timestamp>> {
    self.looks.fetch_add(1, Ordering::SeqCst);
    Ok(self.timers.lock().iter().map(|timer| timer.due).filter(|due| *due > after).min())
  }

  async fn changed(&self) {
    self.changed.notified().await;
  }
}

#[derive(Default)]
struct Counted(AtomicUsize);

#[async_trait]
impl Keeper for Counted {
  async fn inputs(&self) -> anyhow::Result<u64> {
    anyhow::bail!("the log is away")
  }

  async fn pieces(&self) -> anyhow::Result<u64> {
    Ok(0)
  }

  async fn uploads(&self, _: Timestamp) -> anyhow::Result<u64> {
    Ok(0)
  }

  async fn tokens(&self) -> anyhow::Result<u64> {
    self.0.fetch_add(1, Ordering::SeqCst);
    Ok(1)
  }
}

struct World {
  log: SimLog,
  keys: Arc<KeyRing>,
  table: Arc<Table>,
  keeper: Arc<Counted>,
  stop: CancellationToken,
  begun: Instant,
}

impl World {
  async fn new() -> Self {
    let world = Self {
      log: SimLog::new(1, true, Plan::none()),
      keys: Arc::new(KeyRing::fixed()),
      table: Arc::default(),
      keeper: Arc::default(),
      stop: CancellationToken::new(),
      begun: Instant::now(),
    };
    let log: Arc<dyn EventLog> = Arc::new(world.log.clone());
    let clock: Arc<dyn Clock> = Arc::new(TestClock(world.begun));
    let keys: Arc<dyn Keys> = Arc::clone(&world.keys) as _;
    let appender = Appender::connect(log, keys, Arc::clone(&clock), Arc::new(SystemIds), "pa/scheduler").await.unwrap();
    let parts = SchedulerParts { timers: Arc::clone(&world.table) as _, keeper: Arc::clone(&world.keeper) as _, appender, clock };
    #[expect(clippy::disallowed_methods, reason = "the test stops it")]
    tokio::spawn(run(parts, world.stop.clone()));
    world
  }

  /// What was fired so far, with when it was appended.
  async fn fired(&self) -> Vec<(u128, i64)> {
    let opener = Opener::new(Arc::clone(&self.keys) as _, true);
    let mut fired = Vec::new();
    for stored in self.log.records(Stream::Inputs, 0) {
      let Ok(Opened::Input(input)) = opener.input(&stored).await else { panic!("an input") };
      let pa_domain::Input::Timer(Input::TimerFired(TimerFired { timer, thing })) = input.input else { panic!("a timer") };
      assert_eq!(thing, Some(ThingId(Uuid::from_u128(7))));
      assert_eq!(input.core().producer, "scheduler");
      fired.push((timer.0.as_u128(), input.core().at.0));
    }
    fired
  }
}

#[tokio::test(start_paused = true)]
async fn a_timer_is_fired_when_it_is_due_and_once() {
  let world = World::new().await;
  world.table.set(5, 1_300);
  world.table.set(6, 700);
  sleep(Duration::from_secs(20)).await;
  let fired = world.fired().await;
  assert_eq!(fired.iter().map(|(timer, _)| *timer).collect::<Vec<_>>(), [6, 5]);
  assert!((700..800).contains(&fired[0].1) && (1_300..1_400).contains(&fired[1].1), "{fired:?}");
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_is_set_while_it_sleeps_wakes_it() {
  let world = World::new().await;
  sleep(Duration::from_millis(100)).await;
  world.table.set(5, 150);
  sleep(Duration::from_millis(200)).await;
  assert_eq!(world.fired().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_timer_whose_end_does_not_show_is_fired_again_under_the_same_key() {
  let world = World::new().await;
  world.table.set(5, 0);
  sleep(Duration::from_secs(45)).await;
  assert_eq!(world.fired().await.len(), 2);
  let records = world.log.records(Stream::Inputs, 0);
  let key = |index: usize| records[index].meta().unwrap().core.key.clone();
  assert_eq!(key(0), key(1));
}

#[tokio::test(start_paused = true)]
async fn a_timer_whose_end_does_not_show_is_not_looked_at_without_pause() {
  let world = World::new().await;
  world.table.set(5, 0);
  world.table.set(6, 12_300);
  sleep(Duration::from_secs(20)).await;
  let fired = world.fired().await;
  assert_eq!(fired.iter().map(|(timer, _)| *timer).collect::<Vec<_>>(), [5, 6]);
  assert!((12_300..12_400).contains(&fired[1].1), "the one behind it is not late: {fired:?}");
  let looks = world.table.looks.load(Ordering::SeqCst);
  assert!((5..=20).contains(&looks), "one look in two seconds: {looks}");
}

#[tokio::test(start_paused = true)]
async fn an_append_of_unknown_fate_is_done_again() {
  let world = World::new().await;
  world.log.inject(Stream::Inputs, Fault::Refused);
  world.table.set(5, 0);
  sleep(Duration::from_secs(10)).await;
  assert_eq!(world.fired().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_does_nothing() {
  let world = World::new().await;
  world.table.led.store(true, Ordering::SeqCst);
  world.table.set(5, 0);
  sleep(Duration::from_secs(100)).await;
  assert!(world.fired().await.is_empty());
  assert_eq!(world.keeper.0.load(Ordering::SeqCst), 0);
  world.table.led.store(false, Ordering::SeqCst);
  sleep(Duration::from_secs(3)).await;
  assert_eq!(world.fired().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn things_are_cleared_away_every_hour_and_one_that_fails_keeps_no_other() {
  let world = World::new().await;
  sleep(Duration::from_secs(2 * 3_600 + 120)).await;
  assert_eq!(world.keeper.0.load(Ordering::SeqCst), 3);
  world.stop.cancel();
}
