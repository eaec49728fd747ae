//! A product: its folder, its database, its settings, and the process that runs with them.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pa_store::testing::TestDb;
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::process::{self, Process, Tool};
use super::{Client, Dump, Model, PATIENCE, eventually};

/// The owner's token of every product under test.
pub(crate) const TOKEN: &str = "pa_owner_token_of_the_product_under_test";
/// Products that run at once: each has a dozen busy tasks, and a machine of the least kind has two cores.
const PRODUCTS_MAX: usize = 3;
/// How long a postmaster may take to end.
const POSTMASTER_ENDS_WITHIN: Duration = Duration::from_secs(20);
/// A projection that stands still for so long has nothing on its way.
const REST: Duration = Duration::from_millis(500);

static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(PRODUCTS_MAX));

/// Where a product's log lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
  /// In its Postgres.
  Embedded,
  /// On the tests' Kafka, under a prefix of its own.
  Kafka,
}

/// What a product is made of, kept over restarts.
pub(crate) struct Setup {
  folder: TempDir,
  /// `None`: the private Postgres under the folder.
  database: Option<TestDb>,
  env: Vec<(String, String)>,
  _place: SemaphorePermit<'static>,
}

/// A running product, or one that was killed and can be started again.
pub(crate) struct Product {
  // Ends before what it needs.
  process: Option<Process>,
  pub(crate) setup: Setup,
  /// Where it listens.
  pub(crate) url: String,
  /// The link of its last start.
  pub(crate) sign_in: String,
}

impl Setup {
  /// A folder of its own and a fresh database on the tests' server; the rehearsal model answers.
  pub(crate) async fn new() -> Self {
    let place = PLACES.acquire().await.expect("it is never closed");
    Self::with(Some(TestDb::new().await), place)
  }

  /// The same with the private Postgres that the product runs itself.
  pub(crate) async fn private() -> Self {
    Self::with(None, PLACES.acquire().await.expect("it is never closed"))
  }

  /// The same with its log there.
  pub(crate) async fn log_on(self, engine: Engine) -> Self {
    if engine == Engine::Embedded {
      return self;
    }
    let kafka = tokio::task::spawn_blocking(pa_eventlog::kafka::testing::config).await.expect("a real Kafka");
    self.env("PA_KAFKA_BROKERS", &kafka.brokers).env("PA_KAFKA_PREFIX", &kafka.prefix)
  }

  /// A folder of its own and a fresh database on the tests' server, the log there.
  pub(crate) async fn on(engine: Engine) -> Self {
    Self::new().await.log_on(engine).await
  }

  fn with(database: Option<TestDb>, place: SemaphorePermit<'static>) -> Self {
    // Postgres runs as another user below it, so others may pass, but not look.
    let passable = fs::Permissions::from_mode(0o711);
    let folder = tempfile::Builder::new().prefix("pa-t").permissions(passable).tempdir().expect("a temporary folder");
    let mut setup = Self { folder, database, env: Vec::new(), _place: place };
    let data = setup.data().display().to_string();
    let url = setup.database.as_ref().map(|database| database.url.clone());
    for (name, value) in [
      ("PA_LISTEN", format!("127.0.0.1:{}", free_port())),
      ("PA_DATA_DIR", data),
      ("PA_OWNER_TOKEN", TOKEN.to_owned()),
      ("PA_LOG", "info".to_owned()),
      ("PA__REHEARSAL__PAUSE_MILLIS", "0".to_owned()),
    ]
    .into_iter()
    .chain(url.map(|url| ("PA_DATABASE_URL", url)))
    {
      setup = setup.env(name, &value);
    }
    setup
  }

  /// A setting of the environment; the last word counts.
  pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
    self.set(name, value);
    self
  }

  pub(crate) fn set(&mut self, name: &str, value: &str) {
    self.env.retain(|(known, _)| known != name);
    self.env.push((name.to_owned(), value.to_owned()));
  }

  /// This model answers.
  pub(crate) fn model(self, model: &Model) -> Self {
    self.env("PA_MODEL_BASE_URL", &model.base_url()).env("PA_MODEL_NAME", "scripted")
  }

  /// The data folder.
  pub(crate) fn data(&self) -> PathBuf {
    self.folder.path().join("data")
  }

  /// A pool on the database; products with a private Postgres have none for tests.
  pub(crate) fn pool(&self) -> &PgPool {
    &self.test_db().pool
  }

  pub(crate) fn test_db(&self) -> &TestDb {
    self.database.as_ref().expect("this product runs on the tests' server")
  }

  /// The environment with some settings more.
  pub(crate) fn env_with(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    self.env.iter().cloned().chain(more).collect()
  }

  /// Starts a product and waits until it is ready.
  pub(crate) async fn start(self) -> Product {
    self.start_with(&[]).await
  }

  /// The same with settings for this life only.
  pub(crate) async fn start_with(self, more: &[(&str, &str)]) -> Product {
    let mut product = self.stopped();
    product.start_again_with(more).await;
    product
  }

  /// A product that was not started yet.
  pub(crate) fn stopped(self) -> Product {
    Product { process: None, setup: self, url: String::new(), sign_in: String::new() }
  }

  /// Process id of the private Postgres, if one runs.
  pub(crate) fn postmaster(&self) -> Option<Pid> {
    let data = self.data().join("postgres/data");
    let file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid: i32 = file.lines().next()?.trim().parse().ok()?;
    let runs_there = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| same(&cwd, &data));
    runs_there.then(|| Pid::from_raw(pid))
  }

  /// Kills the private Postgres as a power cut would.
  pub(crate) async fn kill_postgres(&self) {
    let pid = eventually("the private Postgres runs", async || self.postmaster()).await;
    kill(pid, Signal::SIGKILL).expect("the postmaster is ours");
    eventually("the postmaster is gone", async || (!alive(pid)).then_some(())).await;
  }
}

/// A port that a product keeps over its restarts. The system takes ports for outgoing connections from 32768 on: one of those could be taken while it is down.
fn free_port() -> u16 {
  static NEXT: AtomicU16 = AtomicU16::new(0);
  let mine = u16::try_from(std::process::id() % 12_000).expect("it is small");
  let candidate = || 20_000 + (mine + NEXT.fetch_add(1, Ordering::Relaxed) % 12_000) % 12_000;
  std::iter::repeat_with(candidate).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("some port is free")
}

fn same(one: &Path, other: &Path) -> bool {
  fs::canonicalize(other).is_ok_and(|other| one == other)
}

fn alive(pid: Pid) -> bool {
  // A zombie that nobody has waited for yet is dead.
  fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

impl Drop for Setup {
  fn drop(&mut self) {
    if self.database.is_some() {
      return;
    }
    let Some(pid) = self.postmaster() else { return };
    if kill(pid, Signal::SIGQUIT).is_err() {
      return;
    }
    let deadline = std::time::Instant::now() + POSTMASTER_ENDS_WITHIN;
    while alive(pid) && std::time::Instant::now() < deadline {
      std::thread::sleep(Duration::from_millis(20));
    }
  }
}

impl Product {
  /// Starts it with everything that it was started with before, on the same port.
  pub(crate) async fn start_again(&mut self) {
    self.start_again_with(&[]).await;
  }

  pub(crate) async fn start_again_with(&mut self, more: &[(&str, &str)]) {
    self.launch(more);
    if let Err(why) = self.ready().await {
      panic!("it did not start: {why}");
    }
  }

  /// Starts it so that it dies when it passes this fail point for the first time after it is ready.
  pub(crate) async fn start_armed(&mut self, point: &str) {
    // A start passes some points itself, how often depends on what the life before left undone.
    let mut last = String::new();
    for passes in 1..20 {
      self.launch(&[("PA_FAIL", &format!("{point}:{passes}"))]);
      match self.ready().await {
        Ok(()) => return,
        Err(why) => {
          last = why;
          self.dies().await;
        }
      }
    }
    panic!("{point} is passed again and again while it starts; the last time: {last}");
  }

  /// Starts the process and waits for nothing.
  pub(crate) fn launch(&mut self, more: &[(&str, &str)]) {
    assert!(self.process.is_none(), "it runs already");
    self.process = Some(Process::start("pa up", &["up"], &self.setup.env_with(more)));
  }

  /// Waits until it says where it listens.
  pub(crate) async fn ready(&mut self) -> Result<(), String> {
    let process = self.process.as_mut().expect("it was launched");
    self.url = process.prints("listening").await?;
    self.sign_in = process.prints("sign-in").await?;
    let listen = self.url.strip_prefix("http://").expect("an address without a public URL").to_owned();
    self.setup.set("PA_LISTEN", &listen);
    Ok(())
  }

  pub(crate) fn process(&mut self) -> &mut Process {
    self.process.as_mut().expect("it runs")
  }

  pub(crate) fn kill9(&mut self) {
    self.process().kill9();
    self.process = None;
  }

  /// Waits until it has died of itself.
  pub(crate) async fn dies(&mut self) {
    self.process().dies().await;
    self.process = None;
  }

  /// SIGTERM, and its status.
  pub(crate) async fn terminate(&mut self) -> std::process::ExitStatus {
    let status = self.process().terminate().await;
    self.process = None;
    status
  }

  pub(crate) async fn restart9(&mut self) {
    self.kill9();
    self.start_again().await;
  }

  /// The owner, over HTTP.
  pub(crate) fn owner(&self) -> Client {
    Client::new(&self.url, TOKEN)
  }

  /// Runs a tool beside it.
  pub(crate) fn tool(&self, arguments: &[&str]) -> Tool {
    process::run(arguments, &self.setup.env_with(&[]))
  }

  /// The same with settings for this tool only.
  pub(crate) fn tool_with(&self, arguments: &[&str], more: &[(&str, &str)]) -> Tool {
    process::run(arguments, &self.setup.env_with(more))
  }

  /// Adds an account; its client.
  pub(crate) fn add_account(&self, name: &str) -> Client {
    let added = self.tool(&["account", "add", name]);
    assert_eq!(added.code, Some(0), "{}{}", added.out, added.err);
    let token = added.out.lines().find_map(|line| line.strip_prefix("token=")).expect("it prints a token");
    Client::new(&self.url, token)
  }

  /// Lets whoever reads the conversation wait, the tools too, until this is dropped: a step that takes no time can't be seen. Nothing is projected meanwhile.
  /// It begins when the projection has come to rest, for a page that still has to read the last change would wait as well.
  pub(crate) async fn hold_conversation(&self) -> Transaction<'static, Postgres> {
    let pool = self.setup.pool();
    let name = "SELECT schema_name::text FROM information_schema.schemata WHERE schema_name LIKE 'read\\_%' LIMIT 1";
    let schema: String = sqlx::query_scalar(name).fetch_one(pool).await.expect("there is a read schema");
    let position = format!("SELECT string_agg(p::text, ',' ORDER BY p::text) FROM {schema}.projection_position p");
    let mut before = None;
    loop {
      let now: String = sqlx::query_scalar(AssertSqlSafe(position.clone())).fetch_one(pool).await.expect("there is a position");
      if before.as_ref() == Some(&now) {
        break;
      }
      before = Some(now);
      tokio::time::sleep(REST).await;
    }
    let mut held = pool.begin().await.expect("the database answers");
    let lock = format!("LOCK TABLE {schema}.entries IN ACCESS EXCLUSIVE MODE");
    sqlx::query(AssertSqlSafe(lock)).execute(&mut *held).await.expect("the table can be locked");
    held
  }

  /// The whole log, opened.
  pub(crate) fn dump(&self) -> Dump {
    let exported = self.tool(&["log", "export", "--open"]);
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    Dump::parse(&exported.out)
  }

  /// `pa verify` finds no difference.
  pub(crate) fn verify(&self) {
    let verified = self.tool(&["verify"]);
    assert_eq!(verified.code, Some(0), "pa verify: {}{}", verified.out, verified.err);
  }

  /// What `/readyz` says: status and reasons.
  pub(crate) async fn readyz(&self) -> (u16, Value) {
    let answer = self.owner().get("/readyz").await.expect("it answers");
    let status = answer.status().as_u16();
    (status, answer.json().await.expect("it answers JSON"))
  }

  /// Waits until `/readyz` answers 200.
  pub(crate) async fn caught_up(&self) {
    super::within(PATIENCE, "it is ready again", async || {
      let answer = self.owner().get("/readyz").await.ok()?;
      (answer.status() == 200).then_some(())
    })
    .await;
  }
}
