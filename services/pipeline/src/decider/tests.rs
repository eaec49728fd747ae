//! The decider against a real Postgres: what it decides, what a restart remembers, what it does about bad input. The simulator has the faults.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use pa_domain::account::{AccountAddAsked, Role as AccountRole};
use pa_domain::ids::{INSTALLATION, derived};
use pa_domain::log::Settlement;
use pa_domain::{AgentId, Event, Input, NodeId, Origin, account, conversation, log, settings};
use pa_eventlog::appender::{Appender, Submission};
use pa_eventlog::compose::Composer;
use pa_eventlog::fence::FenceState;
use pa_eventlog::opener::Opener;
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::reader::Decision;
use pa_eventlog::seal::Keys;
use pa_eventlog::tail::Tail;
use pa_eventlog::{AppendError, EventLog, Identity, LogError, Partition, Position, Record, Stored, Stream};
use pa_store::Role;
use pa_store::clock::{Ids, SystemClock, SystemIds};
use pa_store::keys::{KeyRing, MasterKey};
use pa_store::lease::Holder;
use pa_store::testing::TestDb;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::store::PostgresStore;
use super::{Eraser, KeyMaker, Parts, run};

const PARTITIONS: u16 = 2;
const PATIENCE: Duration = Duration::from_secs(20);

struct Ring(Arc<KeyRing>);

impl KeyMaker for Ring {
  fn make(&self, agent: AgentId) -> BoxFuture<'_, anyhow::Result<()>> {
    async move { Ok(self.0.get_or_create(agent).await.map(|_| ())?) }.boxed()
  }
}

impl Eraser for Ring {
  fn erase(&self, agent: AgentId) -> BoxFuture<'_, anyhow::Result<()>> {
    async move { Ok(self.0.erase(agent).await.map(|_| ())?) }.boxed()
  }
}

/// A process with a decider and a tail.
struct Process {
  parts: Parts,
  ring: Arc<KeyRing>,
  appender: Appender,
  tail: Arc<Tail>,
  tasks: TaskTracker,
  stop: CancellationToken,
}

impl Process {
  async fn start(db: &TestDb, master: &Arc<MasterKey>) -> Self {
    Self::start_as(db, master, pa_domain::state::FOLD_VERSION).await
  }

  /// The same, keeping the state of another fold version.
  async fn start_as(db: &TestDb, master: &Arc<MasterKey>, fold_version: i32) -> Self {
    Self::start_over(db, master, fold_version, |log| log).await
  }

  /// The same, with a decider that sees the log through something.
  async fn start_over(db: &TestDb, master: &Arc<MasterKey>, fold_version: i32, through: impl FnOnce(Arc<dyn EventLog>) -> Arc<dyn EventLog>) -> Self {
    let log = PostgresLog::open(&db.database, PARTITIONS, true).await.unwrap() as Arc<dyn EventLog>;
    let identity: Identity = log.identity().await.unwrap();
    let ring = Arc::new(KeyRing::new(db.database.pool(Role::Gateway), Arc::clone(master)));
    ring.get_or_create(INSTALLATION).await.unwrap();
    let keys = Arc::clone(&ring) as Arc<dyn Keys>;
    let opener = Arc::new(Opener::new(Arc::clone(&keys), identity.sealed));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let tail = Tail::start(&log, &opener, vec![FenceState::START; usize::from(PARTITIONS)], &tasks, &stop);
    let appender = Appender::new(Arc::clone(&log), &identity, Arc::clone(&keys), Arc::new(SystemClock), Arc::new(SystemIds), "pa/test");
    let holder = Holder { node: NodeId(uuid::Uuid::from_u128(1)), process: SystemIds.new_id() };
    let parts = Parts {
      log: through(log),
      opener,
      keys,
      key_maker: Arc::new(Ring(Arc::clone(&ring))),
      eraser: Arc::new(Ring(Arc::clone(&ring))),
      composer: Composer::new(identity.sealed, "pa/decider"),
      appender: appender.clone(),
      store: Arc::new(PostgresStore::new(db.database.pool(Role::Decider), db.database.pool(Role::Leases), holder, fold_version)),
      clock: Arc::new(SystemClock),
      ids: Arc::new(SystemIds),
    };
    run(&parts, 0..PARTITIONS, &tasks, &stop);
    Self { parts, ring, appender, tail, tasks, stop }
  }

  async fn stop(self) {
    self.stop.cancel();
    self.tasks.close();
    tokio::time::timeout(PATIENCE, self.tasks.wait()).await.expect("a graceful stop ends");
  }

  async fn ask(&self, agent: AgentId, input: impl Into<Input>, key: &str, content: &[u8]) -> Arc<Decision> {
    let submission = Submission {
      agent,
      input: input.into(),
      producer: "account:test",
      key: Some(key),
      content: Some(content),
      actor: "owner",
      origin: Origin::Owner,
      cause: None,
      correlation: None,
      traceparent: None,
    };
    let prepared = self.appender.prepare(submission).await.unwrap();
    let expected = self.tail.expect(agent, prepared.id);
    self.appender.append(std::slice::from_ref(&prepared)).await.unwrap();
    expected.within(PATIENCE).await.expect("a decision in time")
  }

  async fn account(&self, name: &str) -> AgentId {
    let asked = account::Input::AccountAddAsked(AccountAddAsked { name: name.into(), role: AccountRole::Member });
    let decision = self.ask(INSTALLATION, asked, name, name.as_bytes()).await;
    let agent = AgentId(derived(decision.cause, 0));
    self.exists(agent).await;
    agent
  }

  /// Asks until the routed creation was decided; each ask has a key of its own.
  async fn exists(&self, agent: AgentId) {
    for attempt in 0.. {
      if let Ok(Some(())) = self.ring.get(agent).await.map(|found| matches!(found, pa_store::keys::Lookup::Key(_)).then_some(())) {
        let decision =
          self.ask(agent, settings::Input::SettingsGiven(settings::SettingsGiven { version: 1, ..Default::default() }), &format!("probe {attempt}"), b"").await;
        if settled(&decision).is_some_and(|settled| settled.outcome == Settlement::NoChange) {
          return;
        }
      }
      tokio::time::sleep(Duration::from_millis(10)).await;
    }
  }

  async fn say(&self, agent: AgentId, text: &str, key: &str) -> Arc<Decision> {
    let given = conversation::MessageGiven { conversation: None, text: text.into(), attachments: Vec::new() };
    self.ask(agent, conversation::Input::MessageGiven(given), key, text.as_bytes()).await
  }
}

/// What a decider does with the events, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
  Read,
  Append,
}

/// A log that notes it.
struct Noted {
  log: Arc<dyn EventLog>,
  did: Arc<Mutex<Vec<Did>>>,
}

impl Noted {
  fn note(&self, stream: Stream, did: Did) {
    if stream == Stream::Events {
      self.did.lock().push(did);
    }
  }
}

#[async_trait]
impl EventLog for Noted {
  async fn append(&self, stream: Stream, partition: Partition, records: Vec<Record>) -> Result<Vec<Position>, AppendError> {
    self.note(stream, Did::Append);
    self.log.append(stream, partition, records).await
  }

  async fn read(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError> {
    self.note(stream, Did::Read);
    self.log.read(stream, partition, from, max).await
  }

  async fn wait(&self, stream: Stream, partition: Partition, from: Position) {
    self.log.wait(stream, partition, from).await;
  }

  async fn end(&self, stream: Stream, partition: Partition) -> Result<Position, LogError> {
    self.log.end(stream, partition).await
  }

  async fn identity(&self) -> Result<Identity, LogError> {
    self.log.identity().await
  }
}

fn settled(decision: &Decision) -> Option<log::InputSettled> {
  decision.events.iter().find_map(|recorded| match &recorded.event {
    Event::Log(log::Event::InputSettled(settled)) => Some(settled.clone()),
    _ => None,
  })
}

fn names(decision: &Decision) -> Vec<&'static str> {
  decision.events.iter().map(|recorded| recorded.event.type_name()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_gets_its_agent_and_a_message_its_turn() {
  let (db, master) = (TestDb::new().await, Arc::new(MasterKey::ephemeral()));
  let process = Process::start(&db, &master).await;
  let agent = process.account("Ada").await;
  let decision = process.say(agent, "hello", "m1").await;
  assert_eq!(names(&decision), ["pa.conversation.MessageAdmitted", "pa.conversation.ReplyRequested"]);
  let second = process.say(agent, "and again", "m2").await;
  assert_eq!(names(&second), ["pa.conversation.MessageAdmitted"], "its turn comes after the first one's");
  assert_eq!(second.ordinal, decision.last_ordinal() + 1);
  process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_is_a_repeat_and_other_content_a_conflict_also_after_a_restart() {
  let (db, master) = (TestDb::new().await, Arc::new(MasterKey::ephemeral()));
  let process = Process::start(&db, &master).await;
  let agent = process.account("Ada").await;
  let first = process.say(agent, "hello", "m1").await;
  for round in 0..3 {
    let (process, again) = if round == 0 {
      (None, process.say(agent, "hello", "m1").await)
    } else {
      let process = Process::start(&db, &master).await;
      let again = process.say(agent, "hello", "m1").await;
      (Some(process), again)
    };
    let repeat = settled(&again).expect("settled");
    assert_eq!((repeat.outcome, repeat.of.map(|id| id.0)), (Settlement::Repeated, Some(first.cause)), "round {round}");
    if let Some(process) = process {
      let conflict = settled(process.say(agent, "something else", "m1").await.as_ref()).expect("settled");
      assert_eq!((conflict.outcome, conflict.reason.as_str()), (Settlement::Refused, "REQUEST_KEY_CONFLICT"));
      process.stop().await;
    }
  }
  process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_messages_keep_their_order_and_a_chain_without_gaps() {
  let (db, master) = (TestDb::new().await, Arc::new(MasterKey::ephemeral()));
  let process = Process::start(&db, &master).await;
  let agent = process.account("Ada").await;
  let mut asked = Vec::new();
  for n in 0..200 {
    let given = conversation::MessageGiven { conversation: None, text: format!("message {n}"), attachments: Vec::new() };
    let key = format!("m{n}");
    let submission = Submission {
      agent,
      input: conversation::Input::MessageGiven(given).into(),
      producer: "account:test",
      key: Some(&key),
      content: None,
      actor: "owner",
      origin: Origin::Owner,
      cause: None,
      correlation: None,
      traceparent: None,
    };
    let prepared = process.appender.prepare(submission).await.unwrap();
    asked.push((process.tail.expect(agent, prepared.id), prepared));
  }
  let inputs: Vec<_> = asked.iter().map(|(_, prepared)| prepared.clone()).collect();
  process.appender.append(&inputs).await.unwrap();
  let mut last: Option<Arc<Decision>> = None;
  for (expected, _) in asked {
    let decision = expected.within(PATIENCE).await.expect("a decision in time");
    if let Some(last) = last {
      assert_eq!(decision.ordinal, last.last_ordinal() + 1);
      assert_eq!(decision.events[0].meta.prevhash, last.chain());
    }
    last = Some(decision);
  }
  process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_agent_is_gone_and_its_inputs_harm_nobody() {
  let (db, master) = (TestDb::new().await, Arc::new(MasterKey::ephemeral()));
  let process = Process::start(&db, &master).await;
  let (agent, other) = (process.account("Ada").await, process.account("Bob").await);
  let erase = pa_domain::agent::Input::AgentEraseAsked(pa_domain::agent::AgentEraseAsked { confirmation: "Ada".into() });
  let submission = |key| Submission {
    agent,
    input: erase.clone().into(),
    producer: "account:test",
    key: Some(key),
    content: None,
    actor: "owner",
    origin: Origin::Owner,
    cause: None,
    correlation: None,
    traceparent: None,
  };
  let late = process.appender.prepare(submission("late")).await.unwrap();
  process.appender.submit(submission("erase")).await.unwrap();
  while !matches!(process.ring.get(agent).await.unwrap(), pa_store::keys::Lookup::Erased(_)) {
    tokio::time::sleep(Duration::from_millis(10)).await;
  }
  let late = [late];
  process.appender.append(&late).await.unwrap();
  assert_eq!(names(process.say(other, "still here", "b1").await.as_ref())[0], "pa.conversation.MessageAdmitted");
  process.stop().await;
  let process = Process::start(&db, &master).await;
  process.appender.append(&late).await.unwrap();
  assert_eq!(names(process.say(other, "after a restart", "b2").await.as_ref())[0], "pa.conversation.MessageAdmitted");
  process.stop().await;
  let log = PostgresLog::open(&db.database, PARTITIONS, true).await.unwrap();
  for partition in 0..PARTITIONS {
    let broken = crate::chains::check(&*log, partition, i64::MAX).await.unwrap();
    assert!(broken.is_empty(), "what comes after the erasure goes on from its tombstone: {broken:?}");
  }
}

/// What a fold version keeps: each partition's mark, causes, and every state and key of these agents.
async fn kept(db: &TestDb, fold_version: i32, agents: &[AgentId]) -> Vec<String> {
  use pa_store::checkpoint::{Scope, causes_below, keys_of, load, things_of};
  let mut kept = Vec::new();
  for part in 0..i16::try_from(PARTITIONS).unwrap() {
    let scope = Scope { part, fold_version };
    kept.push(format!("{:?}", load(&db.pool, scope).await.unwrap()));
    kept.push(format!("{:?}", causes_below(&db.pool, scope, i64::MAX, 1_000).await.unwrap()));
    for agent in agents {
      let mut things = things_of(&db.pool, scope, *agent).await.unwrap().things;
      things.sort_by_key(|thing| thing.thing);
      let mut keys = keys_of(&db.pool, scope, &[*agent], 1_000).await.unwrap();
      keys.sort_unstable();
      kept.push(format!("{agent}: {things:?} {keys:?}"));
    }
  }
  kept
}

/// Proves DEP-13.
#[tokio::test]
async fn a_state_built_beside_the_decider_is_the_one_that_it_keeps() {
  let (db, master) = (TestDb::new().await, Arc::new(MasterKey::ephemeral()));
  let (old, new) = (pa_domain::state::FOLD_VERSION, pa_domain::state::FOLD_VERSION + 1);
  let process = Process::start(&db, &master).await;
  let agent = process.account("Ada").await;
  let first = process.say(agent, "hello", "one").await;
  let holder = Holder { node: NodeId(uuid::Uuid::nil()), process: SystemIds.new_id() };
  let beside = Parts { store: Arc::new(PostgresStore::beside(db.database.pool(Role::Decider), holder, new)), ..process.parts.clone() };
  let built = super::beside::build(&beside, PARTITIONS).await.unwrap();
  assert!(built.events > 5, "{built:?}");
  // The old one goes on meanwhile, and what it decides is brought in by another call.
  process.say(agent, "and on", "two").await;
  process.stop().await;
  let again = super::beside::build(&beside, PARTITIONS).await.unwrap();
  assert!(again.events > 0 && again.events < built.events, "{again:?}");
  assert_eq!(super::beside::build(&beside, PARTITIONS).await.unwrap().events, 0);
  let agents = [AgentId(uuid::Uuid::nil()), INSTALLATION, agent];
  assert_eq!(kept(&db, new, &agents).await, kept(&db, old, &agents).await);
  // The new version starts on it, and knows what was said.
  let process = Process::start_as(&db, &master, new).await;
  let repeated = process.say(agent, "hello", "one").await;
  let settled = settled(&repeated).expect("the same key is a repeat");
  assert_eq!((settled.outcome, settled.of.map(|of| of.0)), (Settlement::Repeated, Some(first.cause)));
  process.say(agent, "of the new version", "three").await;
  process.stop().await;
}

/// Whoever asked waits for the decision; what the events have become meanwhile is looked at while it commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_on_its_way_before_the_events_are_looked_at() {
  const MESSAGES: usize = 12;
  let (db, master) = (TestDb::new().await, Arc::new(MasterKey::ephemeral()));
  let did = Arc::new(Mutex::new(Vec::new()));
  let noted = Arc::clone(&did);
  let process = Process::start_over(&db, &master, pa_domain::state::FOLD_VERSION, |log| Arc::new(Noted { log, did: noted })).await;
  let agent = process.account("one").await;
  process.exists(agent).await;
  let mut at_once = 0;
  for number in 0..MESSAGES {
    // What the message before led to is over when nothing more is done; a partition looks by itself once a second, so some begin with that.
    let mut before = usize::MAX;
    while std::mem::replace(&mut before, did.lock().len()) != before {
      tokio::time::sleep(Duration::from_millis(50)).await;
    }
    did.lock().clear();
    process.say(agent, "hello", &format!("key {number}")).await;
    at_once += usize::from(did.lock().first() == Some(&Did::Append));
  }
  assert!(at_once > 0, "each of {MESSAGES} decisions waited for a look at the events");
  process.stop().await;
}
