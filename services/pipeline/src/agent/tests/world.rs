//! A log with a decider, a read model, and processes that run the agent stage over them.
//!
//! The decider here has no terms, leases or checkpoints (those have tests of their own): it decides what comes, by the real rules, in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use pa_domain::execution::JobKind;
use pa_domain::log::EpochAnnounced;
use pa_domain::testing::inputs;
use pa_domain::{AgentId, Event, Input, JobId, Origin, Root, State, Thing, ThingId, Timestamp, decide, evolve, origin_of};
use pa_eventlog::appender::{Appender, Submission};
use pa_eventlog::compose::{Composer, Draft};
use pa_eventlog::fence::FenceState;
use pa_eventlog::meta::NO_HASH;
use pa_eventlog::opener::{Opened, Opener};
use pa_eventlog::pieces::Pieces;
use pa_eventlog::reader::{Item, Reader};
use pa_eventlog::seal::{KeyState, Keys};
use pa_eventlog::sim::{Fate, Plan, SimLog};
use pa_eventlog::tail::Tail;
use pa_eventlog::{EventLog, Identity, Stream};
use pa_store::clock::{Clock, Ids};
use pa_store::keys::KeyRing;
use pa_tools::{Tool, Tools};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::ports::{Ports, holder};
use super::{Rows, ScriptedModel};
use crate::agent::ports::BootClock;
use crate::agent::{AgentParts, Config, Models, run};

pub(super) const AGENT: AgentId = AgentId(Uuid::from_u128(0xa6e0));

/// Time as tokio has it, which tests move.
struct TestClock(Instant);

impl Clock for TestClock {
  fn now(&self) -> Timestamp {
    // 2026-01-01T12:34:00Z
    Timestamp(1_767_270_840_000 + i64::try_from(self.0.elapsed().as_millis()).unwrap())
  }
}

struct TestIds(AtomicU64);

impl Ids for TestIds {
  fn new_id(&self) -> Uuid {
    Uuid::from_u128((0x019b_0000_0000_7000_8000_u128 << 48) | u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
  }
}

/// A boot clock that a test may put forward, as a machine that slept does.
pub(super) struct TestBoot {
  begun: Instant,
  pub(super) slept_millis: AtomicI64,
}

impl BootClock for TestBoot {
  fn millis(&self) -> i64 {
    i64::try_from(self.begun.elapsed().as_millis()).unwrap() + self.slept_millis.load(Ordering::SeqCst)
  }
}

/// Everything outside the processes.
pub(super) struct World {
  pub(super) log: SimLog,
  pub(super) rows: Arc<Rows>,
  pub(super) boot: Arc<TestBoot>,
  keys: Arc<KeyRing>,
  clock: Arc<TestClock>,
  ids: Arc<TestIds>,
  identity: Identity,
  /// The type of input before which the decider waits.
  pub(super) held_back: watch::Sender<&'static str>,
  tasks: Vec<JoinHandle<()>>,
}

impl Drop for World {
  fn drop(&mut self) {
    self.tasks.iter().for_each(JoinHandle::abort);
  }
}

/// A process that runs the agent stage.
pub(super) struct Process {
  pub(super) ports: Arc<Ports>,
  pub(super) pieces: Arc<Pieces>,
  log: SimLog,
  stop: CancellationToken,
  stage: JoinHandle<()>,
}

impl World {
  pub(super) async fn new() -> Self {
    let log = SimLog::new(1, true, Plan::none());
    let identity = log.identity().await.unwrap();
    let begun = Instant::now();
    let mut world = Self {
      rows: Rows::new(),
      boot: Arc::new(TestBoot { begun, slept_millis: AtomicI64::new(0) }),
      keys: Arc::new(KeyRing::fixed()),
      clock: Arc::new(TestClock(begun)),
      ids: Arc::new(TestIds(AtomicU64::new(1))),
      identity,
      held_back: watch::Sender::new(""),
      tasks: Vec::new(),
      log,
    };
    world.announce();
    let decider = world.decider();
    let projector = world.projector();
    #[expect(clippy::disallowed_methods, reason = "the test's own world ends these tasks itself")]
    world.tasks.extend([tokio::spawn(decider), tokio::spawn(projector)]);
    world.give_from(Origin::Platform, inputs::create("Ada")).await;
    world.rows.until(|rows| (rows.store.progress(AGENT) >= 3).then_some(())).await;
    world
  }

  fn announce(&self) {
    let announced = EpochAnnounced { inputs_from: 0, base_epoch: 0, base_seq: 0, holder: pa_domain::ids::RecordId(Uuid::from_u128(9)) };
    let record = Composer::new(true, "pa/decider").announcement(Uuid::from_u128(77), 1, Timestamp(0), announced).unwrap();
    self.log.put(Stream::Events, 0, vec![record]);
  }

  fn opener(&self) -> Arc<Opener> {
    Arc::new(Opener::new(Arc::clone(&self.keys) as Arc<dyn Keys>, true))
  }

  fn appender(&self, log: SimLog, source: &str) -> Appender {
    Appender::new(
      Arc::new(log),
      &self.identity,
      Arc::clone(&self.keys) as Arc<dyn Keys>,
      Arc::clone(&self.clock) as Arc<dyn Clock>,
      Arc::clone(&self.ids) as Arc<dyn Ids>,
      source,
    )
  }

  /// The owner gives an input; its id.
  pub(super) async fn give(&self, input: Input) -> Uuid {
    self.give_from(Origin::Owner, input).await
  }

  async fn give_from(&self, origin: Origin, input: Input) -> Uuid {
    let submission = Submission {
      agent: AGENT,
      input,
      producer: "account",
      key: None,
      content: None,
      actor: "owner",
      origin,
      cause: None,
      correlation: None,
      traceparent: None,
    };
    self.appender(self.log.clone(), "pa/gateway").submit(submission).await.unwrap().id
  }

  /// The owner sends a message; the job that answers it.
  pub(super) async fn send(&self, text: &str) -> JobId {
    let input = self.give(inputs::message(text)).await;
    JobId(pa_domain::event::message_of(input).0)
  }

  /// Waits for the end of a reply: its text, or the code of its failure.
  pub(super) async fn answered(&self, job: JobId) -> Result<String, String> {
    use pa_domain::conversation::Event as E;
    self
      .rows
      .until(|rows| {
        rows.events.lock().iter().rev().find_map(|recorded| match &recorded.event {
          Event::Conversation(E::ReplyPosted(posted)) if posted.job == job => Some(Ok(posted.text.clone())),
          Event::Conversation(E::ReplyFailed(failed)) if failed.job == job => Some(Err(failed.code.clone())),
          _ => None,
        })
      })
      .await
  }

  /// The types of the events about a job, without their context.
  pub(super) fn types(&self, job: JobId) -> Vec<&'static str> {
    let events = self.rows.events.lock();
    events.iter().filter(|event| event.event.thing() == Some(job.into())).map(|event| event.event.type_name().rsplit('.').next().unwrap()).collect()
  }

  /// Waits until an event of this type about a job is there, `times` times.
  pub(super) async fn happened(&self, job: JobId, name: &str, times: usize) {
    self.rows.until(|_| (self.types(job).iter().filter(|known| **known == name).count() >= times).then_some(())).await;
  }

  /// Starts a process on a node that answers messages.
  pub(super) fn process(&self, node: u128, model: &Arc<ScriptedModel>, tools: Vec<Arc<dyn Tool>>) -> Process {
    self.works_on(JobKind::Reply, node, model, tools)
  }

  /// Starts a process on a node that works on one kind of job.
  pub(super) fn works_on(&self, kind: JobKind, node: u128, model: &Arc<ScriptedModel>, tools: Vec<Arc<dyn Tool>>) -> Process {
    let life = u128::from(self.ids.0.load(Ordering::Relaxed));
    let holder = holder(node, life);
    let ports = Ports::new(&self.rows, holder, kind);
    let log = self.log.fork();
    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();
    let shared: Arc<dyn EventLog> = Arc::new(log.clone());
    let tail = Tail::start(&shared, &self.opener(), vec![FenceState::START], &tasks, &CancellationToken::new());
    let pieces = Pieces::new();
    tasks.spawn(Arc::clone(&pieces).run(tail.subscribe(), None, stop.clone()));
    let parts = AgentParts {
      queue: Arc::clone(&ports) as _,
      history: Arc::clone(&ports) as _,
      models: Models::new(Arc::clone(model) as _, []),
      tools: Tools::new(tools).unwrap(),
      appender: self.appender(log.clone(), "pa/agent"),
      tail,
      pieces: Arc::clone(&pieces),
      clock: Arc::clone(&self.clock) as _,
      boot: Arc::clone(&self.boot) as _,
      ids: Arc::clone(&self.ids) as _,
      holder,
      config: Config { replies_max: 4, tasks_max: 4, history_percent: 40 },
    };
    #[expect(clippy::disallowed_methods, reason = "the test's own processes are stopped or killed by the test")]
    let stage = tokio::spawn(run(parts, stop.clone()));
    Process { ports, pieces, log, stop, stage }
  }

  fn projector(&self) -> impl Future<Output = ()> + Send + 'static {
    let mut reader = Reader::new(Arc::new(self.log.fork()), self.opener(), 0, FenceState::START);
    let rows = Arc::clone(&self.rows);
    async move {
      loop {
        for item in reader.next().await.unwrap() {
          match item {
            Item::Decision(decision) => rows.fold(&decision).await,
            Item::Announced(_) => {}
            other => panic!("the test's decider wrote {other:?}"),
          }
        }
      }
    }
  }

  fn decider(&self) -> impl Future<Output = ()> + Send + 'static {
    let (log, opener, keys, clock) = (self.log.fork(), self.opener(), Arc::clone(&self.keys), Arc::clone(&self.clock));
    let mut held_back = self.held_back.subscribe();
    async move {
      let mut desk = Desk { root: Root::default(), things: BTreeMap::new(), ordinal: 0, chain: NO_HASH, seq: 1 };
      let mut position = 0;
      let KeyState::Ready(agent_keys) = keys.keys(AGENT).await.unwrap() else { panic!("fixed keys") };
      loop {
        let inputs = log.read(Stream::Inputs, 0, position, 100).await.unwrap();
        if inputs.is_empty() {
          log.wait(Stream::Inputs, 0, position).await;
        }
        for stored in inputs.iter() {
          position = stored.position + 1;
          let Ok(Opened::Input(input)) = opener.input(stored).await else { panic!("an input that opens") };
          held_back.wait_for(|name| input.input.type_name() != *name).await.unwrap();
          let records = desk.decide(&agent_keys, input.core(), &input.input, (stored.position, clock.now()));
          log.append(Stream::Events, 0, records).await.unwrap();
        }
      }
    }
  }
}

/// What the test's decider knows of its one agent.
struct Desk {
  root: Root,
  things: BTreeMap<ThingId, Thing>,
  ordinal: i64,
  chain: [u8; 32],
  seq: i64,
}

impl Desk {
  fn decide(&mut self, keys: &pa_store::keys::AgentKeys, meta: &pa_domain::Meta, input: &Input, (position, at): (i64, Timestamp)) -> Vec<pa_eventlog::Record> {
    let thing = input.thing(meta.id).and_then(|id| self.things.get(&id).cloned()).unwrap_or_default();
    let events = decide(&self.root, &thing, meta, input, at);
    let draft =
      Draft { input: meta, position, held: false, at, epoch: 1, seq: self.seq, ordinal: self.ordinal, chain: self.chain, first_index: 0, events: &events };
    let composed = Composer::new(true, "pa/decider").decision(Some(keys), &draft, None).unwrap();
    for (meta, event) in composed.metas.iter().zip(&events) {
      let mut core = meta.core.clone();
      core.origin = origin_of(&core, event);
      let id = event.thing();
      let thing = id.and_then(|id| self.things.remove(&id)).unwrap_or_default();
      let state = evolve(State { root: std::mem::take(&mut self.root), thing }, &core, event);
      self.root = state.root;
      if let Some(id) = id {
        self.things.insert(id, state.thing);
      }
    }
    self.ordinal += i64::try_from(events.len()).unwrap();
    self.seq += i64::try_from(events.len()).unwrap();
    self.chain = composed.chain;
    composed.records
  }
}

impl Process {
  /// Ends it as kill -9 does: nothing of it returns any more.
  pub(super) fn kill(&self) {
    self.ports.dead.store(true, Ordering::SeqCst);
    self.log.crash(Fate::Dropped);
    self.stage.abort();
  }

  /// Stops it gracefully.
  pub(super) async fn stop(self) {
    self.stop.cancel();
    tokio::time::timeout(Duration::from_secs(30), self.stage).await.expect("it stops").unwrap();
  }
}
