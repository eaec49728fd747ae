//! One simulated process: the product's decider, tail and projections over a log and a database that it shares with others, and a gateway for clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pa_domain::{AgentId, Input, NodeId, Origin};
use pa_eventlog::appender::{self, Appender, Prepared, Submission};
use pa_eventlog::compose::Composer;
use pa_eventlog::opener::Opener;
use pa_eventlog::pieces::Pieces;
use pa_eventlog::reader::Decision;
use pa_eventlog::seal::Keys;
use pa_eventlog::sim::{Fate, SimLog};
use pa_eventlog::tail::Tail;
use pa_eventlog::{AppendError, EventLog, Partition, Position};
use pa_pipeline::agent::{self, AgentParts, Config, Models};
use pa_pipeline::decider::{self, Eraser, KeyMaker, Parts, Status};
use pa_pipeline::scheduler::{self, SchedulerParts};
use pa_store::clock::{Clock, Ids};
use pa_store::keys::KeyRing;
use pa_store::lease::Holder;
use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::clock::{SimClock, SimIds, Skew};
use super::gate::{Gate, GatedLog};
use super::model::Projector;
use super::ports::Ports;
use super::store::SimStore;
use super::tools::SimModel;
use super::traps::Traps;
use super::view::View;
use super::world::{PARTITIONS, Shared};

/// How long a mutation waits for its decision.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// Jobs that one process works on at a time.
const WIDTH: usize = 4;

/// What a process does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roles {
  pub(super) decides: bool,
  pub(super) projects: bool,
  pub(super) works: bool,
}

impl Roles {
  pub(super) const ALL: Self = Self { decides: true, projects: true, works: true };
  pub(super) const EDGE: Self = Self { decides: false, projects: false, works: false };
  pub(super) const DECIDER: Self = Self { decides: true, projects: false, works: false };
  pub(super) const KEEPER: Self = Self { decides: true, projects: true, works: false };
  pub(super) const PROJECTOR: Self = Self { decides: false, projects: true, works: false };
  pub(super) const WORKER: Self = Self { decides: false, projects: false, works: true };
}

/// One life of a process on a node.
pub(super) struct Process {
  pub(super) holder: Holder,
  pub(super) roles: Roles,
  pub(super) gate: Gate,
  pub(super) traps: Traps,
  pub(super) log: SimLog,
  pub(super) store: SimStore,
  pub(super) tail: Arc<Tail>,
  pub(super) view: Arc<View>,
  pub(super) appender: Appender,
  pub(super) statuses: Vec<(Partition, watch::Receiver<Status>)>,
  pub(super) stop: CancellationToken,
  tracker: TaskTracker,
}

/// What a client asks of a gateway.
#[derive(Clone, Debug)]
pub(super) struct Request {
  pub(super) agent: AgentId,
  pub(super) input: Input,
  pub(super) producer: String,
  /// Empty: it has none, and is not sent again.
  pub(super) key: String,
  pub(super) content: Option<Vec<u8>>,
  pub(super) origin: Origin,
}

impl Request {
  fn submission(&self, actor: &'static str) -> Submission<'_> {
    Submission {
      agent: self.agent,
      input: self.input.clone(),
      producer: &self.producer,
      key: (!self.key.is_empty()).then_some(&self.key),
      content: self.content.as_deref(),
      actor,
      origin: self.origin,
      cause: None,
      correlation: None,
      traceparent: None,
    }
  }
}

/// What the gateway says.
#[derive(Clone, Debug)]
pub(super) enum Answer {
  Decided(Arc<Decision>),
  /// It is in the log, or may be.
  Accepted,
  /// It is certainly not in the log.
  Refused,
}

struct SimKeys {
  keys: KeyRing,
  erased: Arc<Mutex<Vec<AgentId>>>,
  full: Arc<AtomicBool>,
}

impl Eraser for SimKeys {
  fn erase(&self, agent: AgentId) -> BoxFuture<'_, anyhow::Result<()>> {
    async move {
      self.keys.erase(agent).await?;
      self.erased.lock().push(agent);
      Ok(())
    }
    .boxed()
  }
}

impl KeyMaker for SimKeys {
  fn make(&self, agent: AgentId) -> BoxFuture<'_, anyhow::Result<()>> {
    async move {
      anyhow::ensure!(!self.full.load(Ordering::Relaxed), "the disk is full");
      Ok(self.keys.get_or_create(agent).await.map(drop)?)
    }
    .boxed()
  }
}

/// Which life of which node.
#[derive(Clone, Debug)]
pub(super) struct Life {
  pub(super) node: u64,
  pub(super) number: u64,
  pub(super) seed: u64,
  pub(super) skew: Skew,
  pub(super) roles: Roles,
}

impl Process {
  pub(super) async fn start(shared: &Shared, life: Life) -> Self {
    let Life { node, number, seed, skew, roles } = life;
    let name = node * 1_000_000 + number;
    let holder = Holder { node: NodeId(Uuid::from_u128(0xaa00 + u128::from(node))), process: Uuid::from_u128(0xbb_0000_0000 + u128::from(name)) };
    let (gate, traps) = (Gate::open(), Traps::default());
    let sim = shared.log.fork();
    let log: Arc<dyn EventLog> = Arc::new(GatedLog::new(shared, sim.clone(), gate.clone(), traps.clone()));
    let store = SimStore::new(shared.database.clone(), holder, gate.clone(), traps.clone(), seed ^ name);
    store.set_trouble(|trouble| *trouble = shared.trouble);
    let keys: Arc<dyn Keys> = Arc::new(shared.keys.clone());
    let opener = Arc::new(Opener::new(Arc::clone(&keys), shared.sealed));
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new(shared.begin, skew));
    let ids: Arc<dyn Ids> = Arc::new(SimIds::new(seed.wrapping_mul(31) ^ name));
    let appender = Appender::new(Arc::clone(&log), &shared.identity, Arc::clone(&keys), Arc::clone(&clock), Arc::clone(&ids), "pa/test");
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let mut states = Vec::new();
    for partition in 0..PARTITIONS {
      states.push(shared.model.state(partition).await);
    }
    let tail = Tail::start(&log, &opener, states, &tracker, &stop);
    let made = Arc::new(SimKeys { keys: shared.keys.clone(), erased: Arc::clone(&shared.erased), full: Arc::clone(&shared.full) });
    let parts = Parts {
      log: Arc::clone(&log),
      opener: Arc::clone(&opener),
      keys,
      key_maker: made.clone(),
      eraser: made,
      composer: Composer::new(shared.sealed, "pa/decider"),
      appender: appender.clone(),
      store: Arc::new(store.clone()),
      clock: Arc::clone(&clock),
      ids: Arc::clone(&ids),
    };
    let decides = (0..PARTITIONS).filter(|_| roles.decides);
    let statuses = decider::run(&parts, decides, &tracker, &stop);
    let process = Self { holder, roles, gate, traps, log: sim, store, tail, view: View::new(), appender, statuses, stop, tracker };
    process.project(shared, roles, &log, &opener);
    if roles.works {
      process.work(shared, &ids, clock, seed ^ name);
    }
    process
  }

  fn project(&self, shared: &Shared, roles: Roles, log: &Arc<dyn EventLog>, opener: &Arc<Opener>) {
    for partition in 0..PARTITIONS {
      if roles.works {
        self.tracker.spawn(Arc::clone(&self.view).follow(Arc::clone(log), Arc::clone(opener), partition));
      }
      if roles.projects {
        let (model, gate, traps) = (shared.model.clone(), self.gate.clone(), self.traps.clone());
        self.tracker.spawn(Projector { log: Arc::clone(log), opener: Arc::clone(opener), partition, model, gate, traps }.run());
      }
    }
  }

  fn work(&self, shared: &Shared, ids: &Arc<dyn Ids>, clock: Arc<dyn Clock>, seed: u64) {
    let random = Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
    let (store, model, view) = (self.store.clone(), shared.model.clone(), Arc::clone(&self.view));
    let ports = Arc::new(Ports { store, model, view, clock: Arc::clone(&clock), begin: shared.begin });
    let parts = AgentParts {
      queue: ports.clone(),
      history: ports.clone(),
      models: Models::new(Arc::new(SimModel::new(&random)), []),
      tools: shared.ledger.tools(&random),
      appender: self.appender.clone(),
      tail: Arc::clone(&self.tail),
      pieces: Pieces::new(),
      clock: Arc::clone(&clock),
      boot: ports.clone(),
      ids: Arc::clone(ids),
      holder: self.holder,
      config: Config { replies_max: WIDTH, ..Config::default() },
    };
    self.tracker.spawn(agent::run(parts, self.stop.clone()));
    let parts = SchedulerParts { timers: ports.clone(), keeper: ports, appender: self.appender.clone(), clock };
    self.tracker.spawn(scheduler::run(parts, self.stop.clone()));
  }

  /// Ends at once, wherever it is; what it had sent meets `fate`.
  pub(super) fn crash(&self, fate: Fate) {
    self.log.crash(fate);
    self.gate.kill();
  }

  /// Whether a client finds it.
  pub(super) fn answers(&self) -> bool {
    !self.gate.is_dead() && !self.stop.is_cancelled()
  }

  /// Takes a request as the gateway does: registers, appends, waits for what is read back.
  pub(super) async fn give(&self, request: &Request) -> Answer {
    let Ok(prepared) = self.appender.prepare(request.submission("owner")).await else { return Answer::Refused };
    let expected = self.tail.expect(request.agent, prepared.id);
    match self.appender.append(std::slice::from_ref(&prepared)).await {
      Ok(_) | Err(appender::Error::Append(AppendError::Unknown { .. })) => {}
      Err(_) => return Answer::Refused,
    }
    match expected.within(ANSWERED_WITHIN).await {
      Some(decision) => Answer::Decided(decision),
      None => Answer::Accepted,
    }
  }

  /// Prepares a client's request, to be appended later.
  pub(super) async fn prepare(&self, request: &Request) -> Result<Prepared, appender::Error> {
    self.appender.prepare(request.submission("owner")).await
  }

  /// Appends what was prepared; whether it is certain to stand.
  pub(super) async fn append_prepared(&self, prepared: &Prepared) -> bool {
    self.appender.append(std::slice::from_ref(prepared)).await.is_ok()
  }

  /// Appends a client's request; where it stands.
  pub(super) async fn append(&self, request: &Request) -> Result<Position, appender::Error> {
    Ok(self.appender.submit(request.submission("owner")).await?.position)
  }

  /// Appends a platform's message and answers when it is durable.
  pub(super) async fn receive(&self, request: &Request) -> bool {
    self.appender.submit(request.submission("person")).await.is_ok()
  }
}
