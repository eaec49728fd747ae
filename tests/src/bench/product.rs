//! The product under measure: the release build of `pa up`, its accounts, its end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::try_join_all;
use pa_domain::account::{AccountAddAsked, Input as AccountInput, Role as AccountRole};
use pa_domain::ids::{INSTALLATION, derived};
use pa_domain::{AgentId, Origin};
use pa_eventlog::EventLog;
use pa_eventlog::appender::{Appender, Submission};
use pa_store::clock::{SystemClock, SystemIds};
use pa_store::keys::{KeyRing, MasterKey};
use pa_store::ops::tokens::{self, Kind, NewToken};
use pa_store::{Database, Role};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::PgPool;

use super::samples::PARTITIONS;
use super::server::Fresh;
use super::{Bench, cpu};

const OWNER_TOKEN: &str = "pa_the-bench-owner-token-0123456789";
/// A start that takes longer has failed.
const START_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Someone who may ask.
#[derive(Clone)]
pub(super) struct Account {
  pub(super) token: String,
}

impl Account {
  /// The owner of every product that is measured.
  pub(super) fn owner() -> Self {
    Self { token: OWNER_TOKEN.to_owned() }
  }
}

/// Where a product lives across its starts.
pub(super) struct Home {
  program: PathBuf,
  folder: PathBuf,
  fresh: Fresh,
  port: u16,
  model: String,
  master: String,
  /// How many accounts were made.
  accounts: AtomicUsize,
}

/// A running product; it is killed with this value.
pub(super) struct Product {
  child: Child,
  pub(super) address: String,
  pub(super) started: Instant,
}

impl Home {
  /// A fresh home whose model is at `model`.
  pub(super) async fn new(bench: &Bench, model: &str) -> Result<Self> {
    let fresh = bench.server.fresh().await?;
    let folder = bench.server.folder(&format!("data-{}", free_port()?));
    let program = match &bench.options.pa {
      Some(program) => program.clone(),
      None => built()?,
    };
    let master = STANDARD.encode([42_u8; 32]);
    Ok(Self { program, folder, fresh, port: free_port()?, model: model.to_owned(), master, accounts: AtomicUsize::new(0) })
  }

  fn address(&self) -> String {
    format!("127.0.0.1:{}", self.port)
  }

  /// The program with the product's settings, which dies with the bench.
  pub(super) fn command(&self, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program).args(arguments).env_clear();
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("PA_LISTEN", self.address()).env("PA_DATA_DIR", &self.folder);
    command.env("PA_DATABASE_URL", &self.fresh.url).env("PA_MASTER_KEY", &self.master).env("PA_OWNER_TOKEN", OWNER_TOKEN);
    command.env("PA_MODEL_BASE_URL", &self.model).env("PA_MODEL_NAME", "instant");
    command.envs(self.fresh.place.environment()).envs(passed_on());
    command
  }

  /// Where the product's files lie.
  pub(super) fn folder(&self) -> &Path {
    &self.folder
  }

  /// Whether the program is the one of the tests, which can pretend to be a later version.
  pub(super) fn has_generations(&self) -> bool {
    self.program.file_name().is_some_and(|name| name == "pa-under-test")
  }

  /// Starts the product; it may not be ready yet.
  pub(super) fn spawn(&self) -> Result<Product> {
    std::fs::create_dir_all(&self.folder).context("make the product's folder")?;
    let said = |name: &str| std::fs::File::options().create(true).append(true).open(self.folder.with_extension(name)).context("keep what the product says");
    let mut command = self.command(&["up"]);
    command.stdin(Stdio::null()).stdout(said("out")?).stderr(said("err")?);
    let started = Instant::now();
    let child = command.spawn().with_context(|| format!("start {}", self.program.display()))?;
    Ok(Product { child, address: self.address(), started })
  }

  /// Starts the product and waits until it is ready.
  pub(super) async fn start(&self) -> Result<Product> {
    self.start_within(START_MAX.as_secs()).await
  }

  /// The same for a product that has much to build first.
  pub(super) async fn start_within(&self, seconds: u64) -> Result<Product> {
    let mut product = self.spawn()?;
    while !ready(&product.address).await {
      if let Some(status) = product.child.try_wait().context("look after the product")? {
        bail!("the product ended with {status}: {}", last_words(&self.folder.with_extension("err")));
      }
      ensure!(product.started.elapsed().as_secs() < seconds, "the product is not ready: {}", last_words(&self.folder.with_extension("err")));
      tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(product)
  }

  /// The product's log; for as long as no product runs.
  pub(super) async fn log(&self) -> Result<Arc<dyn EventLog>> {
    self.fresh.open_log(PARTITIONS).await
  }

  pub(super) fn database(&self) -> &Database {
    &self.fresh.database
  }

  /// The product's keys.
  pub(super) fn keys(&self) -> Result<KeyRing> {
    let master = MasterKey::from_base64(&SecretString::from(self.master.clone())).context("the master key")?;
    Ok(KeyRing::new(self.fresh.database.pool(Role::Tool), Arc::new(master)))
  }

  /// Lets an agent's owner in, whether or not the agent is there yet.
  pub(super) async fn token(&self, agent: AgentId) -> Result<Account> {
    let control = self.fresh.database.pool(Role::Tool);
    let token = tokens::create(&control, &NewToken { account: agent, kind: Kind::Api, label: "bench".into(), lives_for_ms: None }).await;
    control.close().await;
    Ok(Account { token: token.context("make a token")?.expose_secret().to_owned() })
  }

  /// New accounts whose agents have said nothing yet.
  pub(super) async fn accounts(&self, count: usize) -> Result<Vec<Account>> {
    let log = self.fresh.open_log_beside_others(PARTITIONS).await?;
    let control = self.fresh.database.pool(Role::Tool);
    let keys = Arc::new(self.keys()?);
    let appender = Appender::connect(log, keys, Arc::new(SystemClock), Arc::new(SystemIds), "pa/cli").await?;
    let first = self.accounts.fetch_add(count, Ordering::Relaxed);
    let made = try_join_all((first..first + count).map(|number| account(&appender, &control, number))).await?;
    control.close().await;
    let (ids, accounts): (Vec<AgentId>, Vec<Account>) = made.into_iter().unzip();
    self.agents_ready(&ids).await?;
    Ok(accounts)
  }

  async fn agents_ready(&self, ids: &[AgentId]) -> Result<()> {
    let reads = self.fresh.database.read_pool(Role::Tool, &pa_projections::schema::current());
    let begun = Instant::now();
    for id in ids {
      while pa_projections::settings::of(&reads, *id).await.context("look for an agent")?.is_none() {
        ensure!(begun.elapsed() < START_MAX, "agent {id} was not made in time");
        tokio::time::sleep(LOOK_EVERY).await;
      }
    }
    reads.close().await;
    Ok(())
  }
}

async fn account(appender: &Appender, control: &PgPool, number: usize) -> Result<(AgentId, Account)> {
  let input = AccountInput::AccountAddAsked(AccountAddAsked { name: format!("account {number}"), role: AccountRole::Member }).into();
  let key = format!("bench {number}");
  let submission = Submission {
    agent: INSTALLATION,
    input,
    producer: "platform",
    key: Some(&key),
    content: None,
    actor: "platform",
    origin: Origin::Platform,
    cause: None,
    correlation: None,
    traceparent: None,
  };
  let account = AgentId(derived(appender.submit(submission).await.context("ask for an account")?.id, 0));
  let token = tokens::create(control, &NewToken { account, kind: Kind::Api, label: "bench".into(), lives_for_ms: None }).await.context("make a token")?;
  Ok((account, Account { token: token.expose_secret().to_owned() }))
}

impl Product {
  pub(super) fn pid(&self) -> Result<i32> {
    i32::try_from(self.child.id()).context("a process id")
  }

  pub(super) fn cpu(&self) -> Result<Duration> {
    cpu::of(self.pid()?)
  }

  /// Ends it as a power cut would.
  pub(super) fn kill9(mut self) -> Result<()> {
    self.child.kill().context("kill the product")?;
    self.child.wait().map(drop).context("wait for the product's end")
  }
}

impl Drop for Product {
  fn drop(&mut self) {
    if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
      eprintln!("bench: the product could not be ended: {error}");
    }
  }
}

/// Whether the product says that it is ready.
pub(super) async fn ready(address: &str) -> bool {
  let Ok(mut http) = super::http::Http::connect(address).await else { return false };
  http.get("/readyz").await.is_ok_and(|answer| answer.status == 200)
}

fn free_port() -> Result<u16> {
  let listener = std::net::TcpListener::bind("127.0.0.1:0").context("find a free port")?;
  Ok(listener.local_addr().context("find a free port")?.port())
}

fn last_words(file: &Path) -> String {
  let text = std::fs::read_to_string(file).unwrap_or_default();
  let lines: Vec<&str> = text.lines().collect();
  lines[lines.len().saturating_sub(20)..].join("\n")
}

/// Settings of the product that whoever measures wants to try: `PA__…`.
fn passed_on() -> impl Iterator<Item = (String, String)> {
  std::env::vars().filter(|(name, _)| name.starts_with("PA__"))
}

/// Builds the program without anything that tests need, and says where it is.
fn built() -> Result<PathBuf> {
  let done = Command::new(env!("CARGO")).args(["build", "--quiet", "--release", "-p", "pa", "--bin", "pa"]).status().context("run cargo")?;
  ensure!(done.success(), "the product does not build");
  let bench = std::env::current_exe().context("find this program")?;
  Ok(bench.parent().context("a program lies in a folder")?.join("pa"))
}
