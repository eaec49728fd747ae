//! A simulated world: processes that come and go over one log and one database, the people outside, and what goes wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use pa_domain::call::Class;
use pa_domain::meta::Kind;
use pa_domain::testing::inputs;
use pa_domain::{AgentId, Meta, Origin, Timestamp};
use pa_eventlog::compose::Composer;
use pa_eventlog::meta::partition_of;
use pa_eventlog::sim::{Delays, Fate, Odds, Plan, SimLog};
use pa_eventlog::{Identity, Partition, Position, Record as Stored, Stream};
use pa_projections::queue::CallRow;
use pa_store::keys::{KeyRing, Lookup};
use pa_store::lease::LEASE;
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::client::{request, resolve};
use super::clock::Skew;
use super::model::ReadModel;
use super::process::{Life, Process, Request, Roles};
use super::record::Record;
use super::store::{SimDatabase, Trouble};
use super::tools::Ledger;

/// Every simulated log has so many.
pub(super) const PARTITIONS: Partition = 2;

/// What all processes share, and what outlives them.
pub(super) struct Shared {
  pub(super) log: SimLog,
  pub(super) identity: Identity,
  pub(super) database: SimDatabase,
  pub(super) keys: KeyRing,
  pub(super) model: ReadModel,
  pub(super) ledger: Ledger,
  pub(super) begin: Instant,
  pub(super) sealed: bool,
  /// What calls of the database meet in a process that starts.
  pub(super) trouble: Trouble,
  /// Agents whose keys are gone.
  pub(super) erased: Arc<Mutex<Vec<AgentId>>>,
  /// Inputs on which a process dies.
  pub(super) deadly: Arc<Mutex<Vec<Uuid>>>,
  /// No disk has room for a new agent's beginnings.
  pub(super) full: Arc<AtomicBool>,
}

impl Shared {
  pub(super) fn new(plan: Plan, trouble: Trouble) -> Self {
    let sealed = true;
    let log = SimLog::new(PARTITIONS, sealed, plan);
    let ledger = Ledger::new(log.clone());
    let identity = Identity { kind: "sim".to_owned(), id: Uuid::from_u128(1), partitions: PARTITIONS, sealed };
    Self {
      log,
      identity,
      database: SimDatabase::default(),
      keys: KeyRing::fixed(),
      model: ReadModel::new(),
      ledger,
      begin: Instant::now(),
      sealed,
      trouble,
      erased: Arc::default(),
      deadly: Arc::default(),
      full: Arc::default(),
    }
  }
}

/// A node: its living process, and how many it has had.
struct Node {
  process: Option<Arc<Process>>,
  lives: u64,
  /// Its machine's; it outlives the processes.
  skew: Skew,
  roles: Roles,
}

pub(super) struct World {
  pub(super) shared: Shared,
  pub(super) record: Record,
  /// Whom people use.
  pub(super) agents: Mutex<Vec<AgentId>>,
  nodes: Mutex<Vec<Node>>,
  seed: u64,
}

impl World {
  pub(super) fn new(seed: u64, shared: Shared, nodes: &[(i64, Roles)]) -> Arc<Self> {
    let nodes =
      nodes.iter().map(|(skew_millis, roles)| Node { process: None, lives: 0, skew: Arc::new(AtomicI64::new(*skew_millis)), roles: *roles }).collect();
    Arc::new(Self { shared, record: Record::default(), agents: Mutex::default(), nodes: Mutex::new(nodes), seed })
  }

  /// A world without faults but those that a test makes.
  pub(super) fn calm(nodes: &[Roles]) -> Arc<Self> {
    let nodes: Vec<(i64, Roles)> = nodes.iter().map(|roles| (0, *roles)).collect();
    Self::new(1, Shared::new(Plan::none(), Trouble::default()), &nodes)
  }

  pub(super) fn nodes(&self) -> usize {
    self.nodes.lock().len()
  }

  /// Starts a node's next process; whatever is left of its last one stays as it is.
  pub(super) async fn start(&self, node: usize) -> Arc<Process> {
    let life = {
      let mut nodes = self.nodes.lock();
      let of = &mut nodes[node];
      of.lives += 1;
      Life { node: u64::try_from(node).expect("few nodes"), number: of.lives, seed: self.seed, skew: Arc::clone(&of.skew), roles: of.roles }
    };
    let process = Arc::new(Process::start(&self.shared, life).await);
    self.nodes.lock()[node].process = Some(Arc::clone(&process));
    process
  }

  pub(super) async fn start_all(&self) {
    for node in 0..self.nodes() {
      self.start(node).await;
    }
  }

  pub(super) fn process(&self, node: usize) -> Option<Arc<Process>> {
    self.nodes.lock()[node].process.clone()
  }

  /// The node's process, which must live.
  pub(super) fn alive(&self, node: usize) -> Option<Arc<Process>> {
    self.process(node).filter(|process| process.answers())
  }

  pub(super) fn crash(&self, node: usize, fate: Fate) {
    if let Some(process) = self.nodes.lock()[node].process.take() {
      process.crash(fate);
    }
  }

  /// A process that a client might find.
  pub(super) fn some_process(&self, random: &mut StdRng) -> Option<Arc<Process>> {
    let nodes = self.nodes.lock();
    let living: Vec<&Arc<Process>> = nodes.iter().filter_map(|node| node.process.as_ref()).filter(|process| process.answers()).collect();
    if living.is_empty() { None } else { Some(Arc::clone(living[random.random_range(0..living.len())])) }
  }

  /// Makes an agent and waits until it is there.
  pub(super) async fn create(&self, random: &mut StdRng, agent: AgentId) {
    let mut create = request(agent, "create", inputs::create("Ada"));
    create.origin = Origin::Platform;
    resolve(self, random, &create).await;
  }

  /// The end of all faults: everybody runs, everything is reachable.
  pub(super) async fn heal(&self) {
    self.shared.log.set_odds(Odds::default());
    while self.shared.log.land_held() {}
    for node in 0..self.nodes() {
      if let Some(process) = self.alive(node) {
        process.gate.wake();
        process.log.set_away(false);
        process.store.set_trouble(|trouble| *trouble = Trouble::default());
      } else {
        self.crash(node, Fate::Land);
        self.start(node).await.store.set_trouble(|trouble| *trouble = Trouble::default());
      }
    }
  }

  /// Waits until nothing happens any more and nothing is left to do; what is left, if that takes longer than `patience`.
  pub(super) async fn settle(&self, patience: Duration) -> Result<(), String> {
    let deadline = Instant::now() + patience;
    let mut before = None;
    loop {
      let now = self.extent();
      let left = self.left().await;
      if left.is_empty() && before.as_ref() == Some(&now) {
        return Ok(());
      }
      if Instant::now() >= deadline {
        return Err(format!("after {patience:?} it has not settled: {left:?}, {now:?} after {before:?}"));
      }
      before = Some(now);
      // Observers report what they see abandoned for a whole lease.
      sleep(LEASE + Duration::from_secs(5)).await;
    }
  }

  /// Sets a machine's wall clock.
  pub(super) fn set_clock(&self, node: usize, skew_millis: i64) {
    self.nodes.lock()[node].skew.store(skew_millis, Ordering::Relaxed);
  }

  /// An input's record as an appender would make it, with an id of one's own.
  pub(super) async fn input(&self, request: &Request, id: Uuid) -> Stored {
    let keys = match self.shared.keys.get(request.agent).await {
      Ok(Lookup::Key(keys)) => keys,
      other => panic!("{other:?}"),
    };
    let meta = Meta {
      id,
      kind: Kind::Input,
      agent: request.agent,
      ordinal: 0,
      at: Timestamp(0),
      cause: Uuid::nil(),
      correlation: id,
      actor: "owner".to_owned(),
      origin: Origin::Owner,
      producer: request.producer.clone(),
      key: keys.hash_key(request.key.as_bytes()).to_vec(),
      input: 0,
      held: false,
      part: 0,
    };
    Composer::new(true, "pa/test").input(&keys, meta, &request.input, None).expect("a small record")
  }

  /// Appends an input of an agent that can't be opened although its key is there.
  pub(super) async fn leave_unreadable(&self, agent: AgentId, number: u64) -> Position {
    let request = request(agent, format!("unreadable-{number}"), inputs::message("never seen"));
    let mut record = self.input(&request, Uuid::from_u128(0xdead_0000_0000 + u128::from(number))).await;
    let mut value = record.value.to_vec();
    *value.last_mut().expect("a sealed value has a tag") ^= 1;
    record.value = value.into();
    self.shared.log.put(Stream::Inputs, partition_of(agent, PARTITIONS), vec![record])[0]
  }

  /// Those of the agents that people use whose inputs are set aside, as far as a worker knows.
  pub(super) fn set_aside(&self) -> Vec<AgentId> {
    let nodes = self.nodes.lock();
    let views: Vec<&Arc<Process>> = nodes.iter().filter_map(|node| node.process.as_ref()).filter(|process| process.answers() && process.roles.works).collect();
    let holds = |agent: &AgentId| views.iter().any(|process| process.view.root(*agent).is_some_and(|root| !root.quarantine.held.is_empty()));
    self.agents.lock().iter().copied().filter(holds).collect()
  }

  /// Whether an agent's keys are gone.
  pub(super) fn is_erased(&self, agent: AgentId) -> bool {
    self.shared.erased.lock().contains(&agent)
  }

  fn extent(&self) -> Vec<usize> {
    let lanes = (0..PARTITIONS).flat_map(|partition| [(Stream::Inputs, partition), (Stream::Events, partition)]);
    lanes.map(|(stream, partition)| self.shared.log.records(stream, partition).len()).collect()
  }

  async fn left(&self) -> Vec<String> {
    let store = self.shared.model.store();
    let mut left: Vec<String> = store.jobs().iter().map(|(agent, row)| format!("job {} of {agent} is {:?}", row.id, row.state)).collect();
    left.extend(self.shared.database.copy().work.keys().map(|job| format!("a lease on {job} stands")));
    left.extend(self.set_aside().into_iter().map(|agent| format!("inputs of {agent} are set aside")));
    left.extend(store.calls().iter().filter(|(_, row)| is_open(row)).map(|(agent, row)| format!("call {} of {agent}, unknown: {}", row.id, row.unknown)));
    for partition in 0..PARTITIONS {
      let end = self.shared.log.records(Stream::Events, partition).last().map_or(0, |stored| stored.position + 1);
      let state = self.shared.model.state(partition).await;
      if state.next_position != end {
        left.push(format!("partition {partition} is projected up to {} of {end}", state.next_position));
      }
    }
    left
  }
}

/// Whether somebody still has to settle a call: a repeatable one can be left, and a contained one of unknown outcome is settled.
fn is_open(call: &CallRow) -> bool {
  match call.class {
    Class::Repeatable => false,
    Class::Contained => !call.unknown,
    Class::External => true,
  }
}

/// Delays and odds of a seed. Some logs are slow: an append takes longer than a client waits.
pub(super) fn plan(seed: u64, odds: Odds) -> Plan {
  let (append, read) = if seed % 16 == 6 { (1_200, 400) } else { (6, 3) };
  let delays = Delays { append: Duration::from_millis(append), read: Duration::from_millis(read), late: Duration::from_secs(12) };
  Plan::seeded(seed, odds, delays)
}

/// The agent with number `n`.
pub(super) fn agent(n: u128) -> AgentId {
  AgentId(Uuid::from_u128(0xa9e0_0000 + n))
}

/// The next agent of the same partition.
pub(super) fn agent_in_after(other: AgentId) -> AgentId {
  let partition = partition_of(other, PARTITIONS);
  (0..10_000).map(agent).find(|agent| *agent > other && partition_of(*agent, PARTITIONS) == partition).expect("hashes reach every partition")
}

/// The first agent of a partition.
pub(super) fn agent_in(partition: Partition) -> AgentId {
  (0..10_000).map(agent).find(|agent| partition_of(*agent, PARTITIONS) == partition).expect("hashes reach every partition")
}
