//! What is kept: the data folder, Postgres, the keys, the log.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pa_domain::NodeId;
use pa_eventlog::EventLog;
use pa_store::data_dir::{self, DataDir};
use pa_store::keys::{KeyRing, MasterKey};
use pa_store::ops::log_identity;
use pa_store::ops::moving::RESTORING;
use pa_store::private_postgres::{self, PrivatePostgres};
use pa_store::{Database, PgPool, Role};
use secrecy::ExposeSecret;

use crate::config::Config;
use crate::log::Log;
use crate::signals::Signals;

/// Everything durable, opened.
pub(crate) struct Storage {
  pub(crate) paths: Paths,
  pub(crate) database: Database,
  /// The one pool for keys, tokens, uploads and processes.
  pub(crate) control: PgPool,
  pub(crate) postgres: Option<PrivatePostgres>,
  pub(crate) keys: Arc<KeyRing>,
  pub(crate) log: Log,
  /// Held until the process ends.
  folder: Option<DataDir>,
  node: NodeId,
  /// The private Postgres is this process's to stop: it owns the folder, or it is a tool that has started it.
  stop_postgres: bool,
}

/// A tool was started where there is nothing to work on. Tools never make a new installation.
#[derive(Debug)]
pub(crate) struct NoData {
  place: String,
}

impl fmt::Display for NoData {
  fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "no data in {}: set PA_DATA_DIR, or run infra/up", self.place)
  }
}

impl std::error::Error for NoData {}

/// Where files lie.
pub(crate) struct Paths {
  pub(crate) dir: PathBuf,
  /// What all nodes see: blobs, uploads, workspaces.
  pub(crate) shared: PathBuf,
}

impl Paths {
  fn of(config: &Config) -> Result<Self> {
    let dir = std::path::absolute(&config.data.dir).with_context(|| format!("find the data folder {}", config.data.dir.display()))?;
    let given = Some(&config.data.shared_dir).filter(|shared| !shared.as_os_str().is_empty());
    let absolute = |shared| std::path::absolute(shared).with_context(|| format!("find the shared folder {}", config.data.shared_dir.display()));
    let shared = given.map(absolute).transpose()?.unwrap_or_else(|| dir.clone());
    Ok(Self { dir, shared })
  }

  pub(crate) fn secret(&self, name: &str) -> PathBuf {
    self.dir.join(name)
  }

  pub(crate) fn workspaces(&self) -> PathBuf {
    self.shared.join("workspaces")
  }

  fn postgres(&self) -> PathBuf {
    self.dir.join("postgres")
  }

  /// The folder of an installation that is there, for a tool.
  ///
  /// # Errors
  /// [`NoData`] when nothing was ever started here.
  pub(crate) fn existing(config: &Config) -> Result<Self> {
    let paths = Self::of(config)?;
    let private = config.data.database_url.expose_secret().is_empty();
    // With a database elsewhere only the keys lie here.
    let mark = if private { paths.postgres().join("data") } else { paths.dir.clone() };
    if !mark.try_exists().with_context(|| format!("look into the data folder {}", paths.dir.display()))? {
      bail!(NoData { place: paths.dir.display().to_string() });
    }
    Ok(paths)
  }
}

impl Storage {
  /// Takes the data folder for `pa up`: it is this process's alone.
  pub(crate) fn own_folder(config: &Config) -> Result<DataDir> {
    Ok(DataDir::open(&config.data.dir)?)
  }

  /// Takes a folder under the data folder for `pa run`, which works beside other processes on shared storage.
  pub(crate) fn shared_folder(config: &Config, roles: &str) -> Result<DataDir> {
    if config.data.database_url.expose_secret().is_empty() {
      bail!("`pa run` needs PA_DATABASE_URL: several processes share one database");
    }
    Ok(DataDir::open(&config.data.dir.join("nodes").join(roles))?)
  }

  /// Opens everything for a process that has taken its folder; waits for an absent Postgres. What a failed or interrupted start has started is ended.
  pub(crate) async fn process(config: &Config, folder: DataDir, signals: &mut Signals) -> Result<Self> {
    let node = folder.node();
    Self::open(config, Some(folder), node, false, signals).await
  }

  /// Opens everything for a tool, whether `pa up` runs or not.
  pub(crate) async fn tool(config: &Config, signals: &mut Signals) -> Result<Self> {
    Paths::existing(config)?;
    match DataDir::open(&config.data.dir) {
      Ok(folder) => {
        let node = folder.node();
        Self::open(config, Some(folder), node, true, signals).await
      }
      Err(data_dir::Error::Locked { .. }) => Self::open(config, None, NodeId(uuid::Uuid::nil()), true, signals).await,
      Err(error) => Err(error.into()),
    }
  }

  async fn open(config: &Config, folder: Option<DataDir>, node: NodeId, tool: bool, signals: &mut Signals) -> Result<Self> {
    let paths = Paths::of(config)?;
    let given = config.data.database_url.expose_secret();
    // Not interrupted: it takes seconds, and half a start would leave a server behind.
    let postgres = if given.is_empty() { Some(PrivatePostgres::start(&paths.postgres(), private_postgres::Config::default()).await?) } else { None };
    let stop_postgres = folder.is_some() && postgres.as_ref().is_some_and(|postgres| !tool || !postgres.adopted());
    let url = postgres.as_ref().map_or_else(|| given.to_owned(), PrivatePostgres::url);
    let opened = tokio::select! {
      opened = connect(config, &paths, &url, tool) => opened,
      signal = signals.next() => Err(signal.into()),
    };
    match opened {
      Ok((database, control, keys, log)) => Ok(Self { paths, database, control, postgres, keys, log, folder, node, stop_postgres }),
      Err(error) => {
        stop(postgres.filter(|_| stop_postgres)).await?;
        Err(error)
      }
    }
  }

  /// The node that this process is a life of.
  pub(crate) fn node(&self) -> NodeId {
    self.node
  }

  /// Whether the data folder is this process's alone.
  pub(crate) fn owns_folder(&self) -> bool {
    self.folder.is_some()
  }

  /// The log as the stages see it.
  pub(crate) fn event_log(&self) -> Arc<dyn EventLog> {
    self.log.port()
  }

  /// Ends with what this process has started itself.
  pub(crate) async fn close(self) -> Result<()> {
    stop(self.postgres.filter(|_| self.stop_postgres)).await
  }
}

/// A data folder of this process's own and a database, without the log and the keys of an installation: for a backup that is brought back.
pub(crate) struct Bare {
  pub(crate) paths: Paths,
  pub(crate) database: Database,
  /// Single statements.
  pub(crate) control: PgPool,
  /// Transactions.
  pub(crate) control_tools: PgPool,
  postgres: Option<PrivatePostgres>,
  /// Held until the process ends.
  _folder: DataDir,
}

impl Bare {
  /// The master key, which must be there: a new one would open nothing.
  pub(crate) fn master_key(config: &Config) -> Result<MasterKey> {
    master_key(config, &Paths::of(config)?, true).context("the master key is in no backup: it was kept apart, or lies in the data folder that was backed up")
  }

  /// Takes the folder and brings the control tables up.
  pub(crate) async fn open(config: &Config, signals: &mut Signals) -> Result<Self> {
    let (paths, folder) = (Paths::of(config)?, Storage::own_folder(config)?);
    let given = config.data.database_url.expose_secret();
    let postgres = if given.is_empty() { Some(PrivatePostgres::start(&paths.postgres(), private_postgres::Config::default()).await?) } else { None };
    let url = postgres.as_ref().map_or_else(|| given.to_owned(), PrivatePostgres::url);
    let opened = tokio::select! {
      opened = tables(&url) => opened,
      signal = signals.next() => Err(signal.into()),
    };
    match opened {
      Ok(database) => Ok(Self { paths, control: database.pool(Role::Gateway), control_tools: database.pool(Role::Tool), database, postgres, _folder: folder }),
      Err(error) => {
        stop(postgres).await?;
        Err(error)
      }
    }
  }

  /// Ends with what this process has started itself.
  pub(crate) async fn close(self) -> Result<()> {
    self.control.close().await;
    self.control_tools.close().await;
    stop(self.postgres).await
  }
}

/// Waits for Postgres and makes the control tables.
async fn tables(url: &str) -> Result<Database> {
  let database = Database::new(url).context("PA_DATABASE_URL")?;
  database.wait(|error| tracing::warn!(error = error as &dyn std::error::Error, "waiting for Postgres")).await?;
  pa_store::migrate(&database.pool(Role::Tool)).await?;
  Ok(database)
}

async fn stop(postgres: Option<PrivatePostgres>) -> Result<()> {
  match postgres {
    Some(postgres) => postgres.stop().await.context("stop the private Postgres"),
    None => Ok(()),
  }
}

type Connected = (Database, PgPool, Arc<KeyRing>, Log);

/// Waits for Postgres, and opens the log and the keys.
async fn connect(config: &Config, paths: &Paths, url: &str, tool: bool) -> Result<Connected> {
  let database = Database::new(url).context("PA_DATABASE_URL")?;
  database.wait(|error| tracing::warn!(error = error as &dyn std::error::Error, "waiting for Postgres")).await?;
  let pool = database.pool(Role::Tool);
  if tool && !pa_store::is_migrated(&pool).await? {
    let private = config.data.database_url.expose_secret().is_empty();
    let place = if private { paths.dir.display().to_string() } else { "the database of PA_DATABASE_URL".to_owned() };
    bail!(NoData { place });
  }
  pa_store::migrate(&pool).await?;
  let unfinished = log_identity::load(&pool).await?.is_some_and(|known| known.kind == RESTORING);
  ensure!(!unfinished, "a backup was not brought back whole into this database: call `pa restore DIR` again, it goes on");
  let log = Log::open(config, &database).await?;
  let control = database.pool(Role::Gateway);
  let keys = Arc::new(KeyRing::new(control.clone(), Arc::new(master_key(config, paths, tool)?)));
  keys.check().await.context("the master key is not the one that the agents' keys were wrapped with")?;
  Ok((database, control, keys, log))
}

fn master_key(config: &Config, paths: &Paths, tool: bool) -> Result<MasterKey> {
  if config.data.master_key.expose_secret().is_empty() {
    let file = paths.secret("master.key");
    // A new one would open nothing of what is there.
    ensure!(!tool || file.exists(), "the master key's file {} is missing: put it back, or set PA_MASTER_KEY", file.display());
    return MasterKey::load_or_create(&file).map_err(|error| anyhow!(error).context("the master key's file"));
  }
  MasterKey::from_base64(&config.data.master_key).map_err(|error| anyhow!(error).context("PA_MASTER_KEY"))
}
