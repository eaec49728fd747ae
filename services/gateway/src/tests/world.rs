//! A served edge with everything behind it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::account::{AccountAddAsked, Role};
use pa_domain::ids::INSTALLATION;
use pa_domain::settings::Effort;
use pa_domain::{AgentId, Event, Input, Origin, account};
use pa_eventlog::EventLog;
use pa_eventlog::appender::{Appender, Submission};
use pa_eventlog::fence::FenceState;
use pa_eventlog::opener::Opener;
use pa_eventlog::pieces::Pieces;
use pa_eventlog::reader::Decision;
use pa_eventlog::sim::{Plan, SimLog};
use pa_eventlog::tail::Tail;
use pa_projections::commit::PostgresStore;
use pa_projections::live::Live;
use pa_projections::schema::{self, Indexes};
use pa_store::clock::{SystemClock, SystemIds};
use pa_store::keys::KeyRing;
use pa_store::ops::tokens::{self, Kind, NewToken};
use pa_store::testing::TestDb;
use reqwest::{RequestBuilder, StatusCode};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::decider::{Decider, Switches};
use crate::{Gateway, OfferedModel, Parts, Places, Readiness};

/// Long enough for a busy machine; a test that waits this long has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The edge of one test.
pub(super) struct World {
  pub db: TestDb,
  pub gateway: Gateway,
  pub address: SocketAddr,
  /// The owner's account and agent.
  pub owner: AgentId,
  pub token: String,
  pub client: reqwest::Client,
  pub log: SimLog,
  pub appender: Appender,
  pub tail: Arc<Tail>,
  pub pieces: Arc<Pieces>,
  pub switches: watch::Sender<Switches>,
  pub shutdown: CancellationToken,
  pub tasks: TaskTracker,
  _files: tempfile::TempDir,
}

impl Drop for World {
  fn drop(&mut self) {
    self.shutdown.cancel();
  }
}

impl World {
  pub(super) async fn new() -> Self {
    let db = TestDb::new().await;
    let read_schema = schema::current();
    schema::Schemas::new(&db.database).create(&read_schema, Indexes::Now).await.unwrap();
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let keys = KeyRing::fixed();
    let log = SimLog::new(1, true, Plan::none());
    let shared: Arc<dyn EventLog> = Arc::new(log.clone());
    let opener = Arc::new(Opener::new(Arc::new(keys.clone()), true));
    let appender = Appender::connect(Arc::clone(&shared), Arc::new(keys.clone()), Arc::new(SystemClock), Arc::new(SystemIds), "pa/gateway").await.unwrap();
    let tail = Tail::start(&shared, &opener, vec![FenceState::START], &tasks, &shutdown);
    let (pieces, live) = (Pieces::new(), Live::local());
    let (switches, switched) = watch::channel(Switches::default());
    let decider = Decider {
      log: Arc::clone(&shared),
      opener: Arc::clone(&opener),
      appender: appender.clone(),
      keys: keys.clone(),
      store: PostgresStore::new(&db.database, &read_schema),
      live: live.clone(),
      switches: switched,
    };
    let stop = shutdown.clone();
    tasks.spawn(async move { stop.run_until_cancelled(decider.run()).await });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let files = tempfile::tempdir().unwrap();
    let gateway = Gateway::new(Parts {
      places: Places::new(None, address).unwrap(),
      pool: db.database.pool(pa_store::Role::Gateway),
      reads: db.database.read_pool(pa_store::Role::Gateway, &read_schema),
      read_schema: read_schema.name().to_owned(),
      log: Arc::clone(&shared),
      opener,
      appender: appender.clone(),
      tail: Arc::clone(&tail),
      pieces: Arc::clone(&pieces),
      live,
      blobs: pa_blobs::Blobs::local(files.path()).unwrap(),
      keys: keys.clone(),
      clock: Arc::new(SystemClock),
      ids: Arc::new(SystemIds),
      models: vec![OfferedModel { name: "rehearsal".into(), efforts: vec![Effort::Fast], sees_pictures: false, rehearsal: true }],
      readiness: Readiness::default(),
      metrics: Arc::new(String::new),
      version: "0.0.0-test",
      tasks: tasks.clone(),
      shutdown: shutdown.clone(),
    });
    let (serving, stop) = (gateway.clone(), shutdown.clone());
    tasks.spawn(async move { crate::serve(listener, serving.router(), stop).await });
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE).build().unwrap();
    let mut world =
      Self { db, gateway, address, owner: INSTALLATION, token: String::new(), client, log, appender, tail, pieces, switches, shutdown, tasks, _files: files };
    world.owner = world.account("Ada", Role::Owner).await;
    world.token = world.bearer(world.owner).await;
    world
  }

  /// Adds an account and waits until its agent can be read.
  pub(super) async fn account(&self, name: &str, role: Role) -> AgentId {
    let asked = account::Input::from(AccountAddAsked { name: name.to_owned(), role });
    let decision = self.decided(INSTALLATION, asked.into(), Origin::Platform).await;
    let Event::Account(account::Event::AccountAdded(added)) = &decision.events[0].event else { panic!("added: {decision:?}") };
    let (added, token) = (added.account, self.bearer(added.account).await);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
      let answer = self.asked_by(&token, "{ settings { version } }", json!({})).await;
      if answer["errors"].is_null() {
        return added;
      }
      assert!(tokio::time::Instant::now() < deadline, "{answer}");
      tokio::time::sleep(Duration::from_millis(10)).await;
    }
  }

  /// Appends an input as the product's own parts do, and waits for its decision.
  pub(super) async fn decided(&self, agent: AgentId, input: Input, origin: Origin) -> Arc<Decision> {
    let submission =
      Submission { agent, input, producer: "test", key: None, content: None, actor: "platform", origin, cause: None, correlation: None, traceparent: None };
    let prepared = self.appender.prepare(submission).await.unwrap();
    let expected = self.tail.expect(agent, prepared.id);
    self.appender.append(&[prepared]).await.unwrap();
    expected.within(PATIENCE).await.expect("the harness decides")
  }

  pub(super) async fn bearer(&self, account: AgentId) -> String {
    self.credential(account, Kind::Api, None).await
  }

  pub(super) async fn credential(&self, account: AgentId, kind: Kind, lives_for_ms: Option<i64>) -> String {
    let new = NewToken { account, kind, label: "test".into(), lives_for_ms };
    tokens::create(&self.db.pool, &new).await.unwrap().expose_secret().to_owned()
  }

  pub(super) fn url(&self, path: &str) -> String {
    format!("http://{}{path}", self.address)
  }

  pub(super) fn post(&self, path: &str) -> RequestBuilder {
    self.client.post(self.url(path))
  }

  pub(super) fn get(&self, path: &str) -> RequestBuilder {
    self.client.get(self.url(path))
  }

  /// Asks as the owner.
  pub(super) async fn ask(&self, query: &str, variables: Value) -> Value {
    self.asked_by(&self.token, query, variables).await
  }

  pub(super) async fn asked_by(&self, token: &str, query: &str, variables: Value) -> Value {
    let response = self.post("/graphql").bearer_auth(token).json(&json!({ "query": query, "variables": variables })).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
  }

  /// Sends a message and answers with its payload.
  pub(super) async fn send(&self, key: &str, text: &str) -> Value {
    self.sent(json!({ "requestKey": key, "text": text })).await
  }

  pub(super) async fn sent(&self, input: Value) -> Value {
    let answer = self.ask(SEND, json!({ "input": input })).await;
    assert!(answer["errors"].is_null(), "{answer}");
    answer["data"]["sendMessage"].clone()
  }

  pub(super) fn switch(&self, switches: Switches) {
    self.switches.send_replace(switches);
  }
}

pub(super) const SEND: &str = "mutation Send($input: SendMessageInput!) { sendMessage(input: $input) { message { id text status place replyId attachments { id name mediaType size sha256 url } } position decided userErrors { code message field } } }";
