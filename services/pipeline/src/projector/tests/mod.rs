//! The projector over a log in memory and a real Postgres.

mod failures;
mod order;
mod running;
mod stepping;
mod verifying;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::log::EpochAnnounced;
use pa_domain::{AgentId, Meta, Timestamp};
use pa_eventlog::compose::{Composer, Draft};
use pa_eventlog::meta::NO_HASH;
use pa_eventlog::meta::hash::partition_of;
use pa_eventlog::opener::Opener;
use pa_eventlog::seal::{KeyState, Keys as _};
use pa_eventlog::sim::{Plan, SimLog};
use pa_eventlog::{Partition, Record, Stream};
use pa_projections::live::Live;
use pa_projections::schema::{self, Schemas, Snapshot};
use pa_projections::testing::{Decision, Story};
use pa_store::clock::{Clock, SystemClock};
use pa_store::keys::KeyRing;
use pa_store::testing::TestDb;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Parts, Projector, Status};

/// Partitions of the tests' logs: more than one, so that one can fail beside another.
const PARTITIONS: Partition = 2;
/// What a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A log, a database, and the means to write what a decider would write.
struct World {
  db: TestDb,
  log: SimLog,
  keys: KeyRing,
  live: Live,
  composer: Composer,
  /// Each partition's last seq.
  seqs: HashMap<Partition, i64>,
  /// Each agent's last ordinal and chain.
  chains: HashMap<AgentId, (i64, [u8; 32])>,
}

impl World {
  async fn new() -> Self {
    let db = TestDb::new().await;
    let mut world = Self {
      db,
      log: SimLog::new(PARTITIONS, true, Plan::none()),
      keys: KeyRing::fixed(),
      live: Live::local(),
      composer: Composer::new(true, "pa/test"),
      seqs: HashMap::new(),
      chains: HashMap::new(),
    };
    world.announce();
    world
  }

  /// A world whose log has a whole story.
  async fn of(story: &Story) -> Self {
    let mut world = Self::new().await;
    for decision in &story.decisions {
      world.put(decision).await;
    }
    world
  }

  fn announce(&mut self) {
    for partition in 0..PARTITIONS {
      let announced = EpochAnnounced { inputs_from: 0, base_epoch: 0, base_seq: 0, holder: Uuid::from_u128(1).into() };
      let id = Uuid::from_u128(0xe0 + u128::from(partition));
      let record = self.composer.announcement(id, 1, Timestamp(0), announced).unwrap();
      self.log.put(Stream::Events, partition, vec![record]);
      self.seqs.insert(partition, 0);
    }
  }

  /// Writes a decision as its partition's decider would.
  async fn put(&mut self, decision: &Decision) {
    let records = self.records(decision).await;
    let agent = decision.facts[0].0.agent;
    self.log.put(Stream::Events, partition_of(agent, PARTITIONS), records);
  }

  async fn records(&mut self, decision: &Decision) -> Vec<Record> {
    let (first, _) = &decision.facts[0];
    let events: Vec<_> = decision.facts.iter().map(|(_, event)| event.clone()).collect();
    let input = Meta { id: first.cause, ordinal: 0, ..first.clone() };
    let (ordinal, chain) = self.chains.get(&first.agent).copied().unwrap_or((0, NO_HASH));
    let seq = self.seqs.get_mut(&partition_of(first.agent, PARTITIONS)).unwrap();
    let draft =
      Draft { input: &input, position: decision.first, held: false, at: first.at, epoch: 1, seq: *seq + 1, ordinal, chain, first_index: 0, events: &events };
    let KeyState::Ready(keys) = self.keys.keys(first.agent).await.unwrap() else { panic!("no keys") };
    let composed = self.composer.decision(Some(&keys), &draft, None).unwrap();
    let parts = i64::try_from(events.len()).unwrap();
    *seq += parts;
    self.chains.insert(first.agent, (ordinal + parts, composed.chain));
    composed.records
  }

  fn parts(&self) -> Parts {
    self.parts_over(Arc::new(self.log.fork()))
  }

  fn parts_over(&self, log: Arc<SimLog>) -> Parts {
    Parts {
      database: self.db.database.clone(),
      log,
      opener: Arc::new(Opener::new(Arc::new(self.keys.clone()), true)),
      clock: Arc::new(SystemClock) as Arc<dyn Clock>,
      live: self.live.clone(),
      process: Uuid::from_u128(77),
    }
  }

  fn schemas(&self) -> Schemas {
    Schemas::new(&self.db.database)
  }

  async fn snapshot(&self) -> Snapshot {
    self.schemas().snapshot(&schema::current()).await.unwrap()
  }

  fn run(&self) -> Running {
    Running::start(self.parts())
  }

  /// Projects until everything is read, and stops.
  async fn project(&self) {
    let running = self.run();
    running.ready().await;
    running.stop().await;
  }

  /// Changes the read model by hand.
  async fn tamper(&self, statement: &str) -> u64 {
    pa_projections::testing::tamper(&self.db.database, &schema::current(), statement).await
  }
}

/// A projector that runs.
struct Running {
  stop: CancellationToken,
  status: Status,
  task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
  fn start(parts: Parts) -> Self {
    let projector = Arc::new(Projector::new(parts));
    let (stop, status) = (CancellationToken::new(), projector.status());
    #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
    let task = tokio::spawn(projector.run(stop.clone()));
    Self { stop, status, task }
  }

  /// Waits until the read model is at the end of the log.
  async fn ready(&self) {
    eventually("the read model is ready", || async { self.status.reasons_to_wait().is_empty() }).await;
  }

  async fn stop(self) {
    self.stop.cancel();
    tokio::time::timeout(PATIENCE, self.task).await.expect("it stops").unwrap().unwrap();
  }
}

/// Asks again until the answer is yes.
async fn eventually<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
  let deadline = tokio::time::Instant::now() + PATIENCE;
  while !ask().await {
    assert!(tokio::time::Instant::now() < deadline, "not in time: {what}");
    tokio::time::sleep(Duration::from_millis(10)).await;
  }
}
