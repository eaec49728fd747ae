//! What goes wrong, and when: drawn from the seed while people use the product.

use std::sync::Arc;
use std::time::Duration;

use pa_eventlog::Stream;
use pa_eventlog::sim::Fate;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::world::{PARTITIONS, World};

/// How wrong a wall clock is set at the most: an hour, as a machine in the wrong time zone.
pub(super) const CLOCK_MILLIS_MAX: i64 = 3_600_000;

/// Kinds of trouble that a seed has.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each kind of trouble is there or not, whatever the others are")]
pub(super) struct Kinds {
  /// Tails of the logs are cut, as by a power loss that took back what was acknowledged.
  pub(super) cuts: bool,
  /// The database is set back to a backup.
  pub(super) restores: bool,
  /// Wall clocks are hours apart and are set while processes run.
  pub(super) clocks: bool,
  /// Inputs that can't be opened come in between.
  pub(super) quarantines: bool,
}

/// Everything that goes wrong until `until`.
pub(super) struct Chaos {
  pub(super) world: Arc<World>,
  pub(super) seed: u64,
  pub(super) until: Instant,
  pub(super) kinds: Kinds,
}

impl Chaos {
  /// What lasts ends with this.
  pub(super) async fn rage(self) {
    let mut random = StdRng::seed_from_u64(self.seed);
    let mut lasting = JoinSet::new();
    let mut backup = None;
    while Instant::now() < self.until {
      sleep(some_millis(&mut random, 300..6_000)).await;
      let node = random.random_range(0..self.world.nodes());
      let trouble = random.random_range(0..100);
      let time = some_millis(&mut random, 100..14_000);
      let world = Arc::clone(&self.world);
      match trouble {
        0..25 => {
          let fate = if random.random() { Fate::Dropped } else { Fate::Land };
          world.crash(node, fate);
          lasting.spawn(start_again(world, node, time));
        }
        25..45 => drop(lasting.spawn(pause(world, node, if random.random_range(0..4) == 0 { time * 4 } else { time }))),
        45..60 => drop(lasting.spawn(stop(world, node, time))),
        60..70 => self.world.shared.database.expire(i16::from(random.random::<bool>())),
        70..82 => drop(lasting.spawn(without_database(world, node, time))),
        82..92 => drop(lasting.spawn(without_log(world, node, time / 2))),
        92..96 if self.kinds.cuts => self.cut(&mut random).await,
        92..98 if self.kinds.clocks => self.world.set_clock(node, random.random_range(-CLOCK_MILLIS_MAX..=CLOCK_MILLIS_MAX)),
        92..98 if self.kinds.quarantines => self.leave_unreadable(&mut random).await,
        96..98 if self.kinds.restores => backup = Some(self.world.shared.database.copy()),
        98..100 if self.kinds.restores => {
          if let Some(rows) = backup.take() {
            self.restore(rows).await;
          }
        }
        _ => {}
      }
    }
  }

  /// A power loss that takes acknowledged records with it: everybody loses the log for a while. Who sleeps through it would wake to a broken connection; it
  /// dies instead.
  async fn cut(&self, random: &mut StdRng) {
    let log = &self.world.shared.log;
    log.set_away_for_all(true);
    for node in 0..self.world.nodes() {
      if self.world.process(node).is_some_and(|process| process.gate.is_stopped()) {
        self.world.crash(node, Fate::Land);
      }
    }
    sleep(Duration::from_millis(1_500)).await;
    for partition in 0..PARTITIONS {
      for stream in [Stream::Inputs, Stream::Events] {
        let records = log.records(stream, partition);
        let lost = random.random_range(0..6_usize);
        if let Some(first_lost) = records.len().checked_sub(lost).and_then(|at| records.get(at)) {
          log.cut(stream, partition, first_lost.position);
        }
      }
    }
    sleep(Duration::from_millis(1_500)).await;
    log.set_away_for_all(false);
  }

  async fn leave_unreadable(&self, random: &mut StdRng) {
    let agents = self.world.agents.lock().clone();
    let agent = agents[random.random_range(0..agents.len())];
    self.world.leave_unreadable(agent, random.random()).await;
  }

  /// Everything stands still while a backup is restored.
  async fn restore(&self, rows: super::store::Rows) {
    for node in 0..self.world.nodes() {
      self.world.crash(node, Fate::Land);
    }
    sleep(Duration::from_secs(1)).await;
    self.world.shared.database.restore(rows);
    self.world.start_all().await;
  }
}

async fn start_again(world: Arc<World>, node: usize, time: Duration) {
  sleep(time).await;
  if world.process(node).is_none() {
    world.start(node).await;
  }
}

fn some_millis(random: &mut StdRng, range: std::ops::Range<u64>) -> Duration {
  Duration::from_millis(random.random_range(range))
}

async fn pause(world: Arc<World>, node: usize, time: Duration) {
  if let Some(process) = world.alive(node) {
    process.gate.stop();
    sleep(time).await;
    process.gate.wake();
  }
}

/// A graceful stop, and the end of whoever does not come to it.
async fn stop(world: Arc<World>, node: usize, time: Duration) {
  if let Some(process) = world.alive(node) {
    process.stop.cancel();
    sleep(time).await;
    process.crash(Fate::Land);
    if world.process(node).is_none_or(|other| Arc::ptr_eq(&other, &process)) {
      world.start(node).await;
    }
  }
}

async fn without_database(world: Arc<World>, node: usize, time: Duration) {
  if let Some(process) = world.alive(node) {
    process.store.set_trouble(|trouble| trouble.away = true);
    sleep(time).await;
    process.store.set_trouble(|trouble| trouble.away = false);
  }
}

async fn without_log(world: Arc<World>, node: usize, time: Duration) {
  if let Some(process) = world.alive(node) {
    process.log.set_away(true);
    sleep(time).await;
    process.log.set_away(false);
  }
}
