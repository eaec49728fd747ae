//! What is kept: the data folder, Postgres, the keys, the log.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use pa_domain::NodeId;
use pa_eventlog::EventLog;
use pa_store::data_dir::{self, DataDir};
use pa_store::keys::{KeyRing, MasterKey};
use pa_store::private_postgres::{self, PrivatePostgres};
use pa_store::{Database, PgPool, Role};
use secrecy::ExposeSecret;

use crate::config::Config;
use crate::log::Log;

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
  _folder: Option<DataDir>,
  node: NodeId,
  /// The private Postgres was started by this process, which is a tool: it stops it again.
  stop_postgres: bool,
}

/// Where files lie.
pub(crate) struct Paths {
  pub(crate) dir: PathBuf,
}

impl Paths {
  fn of(config: &Config) -> Result<Self> {
    let dir = std::path::absolute(&config.data.dir).with_context(|| format!("find the data folder {}", config.data.dir.display()))?;
    Ok(Self { dir })
  }

  pub(crate) fn secret(&self, name: &str) -> PathBuf {
    self.dir.join(name)
  }

  pub(crate) fn workspaces(&self) -> PathBuf {
    self.dir.join("workspaces")
  }

  fn postgres(&self) -> PathBuf {
    self.dir.join("postgres")
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

  /// Opens everything for a process that has taken its folder; waits for an absent Postgres.
  pub(crate) async fn process(config: &Config, folder: DataDir) -> Result<Self> {
    let node = folder.node();
    Self::open(config, Some(folder), node, false).await
  }

  /// Opens everything for a tool, whether `pa up` runs or not.
  pub(crate) async fn tool(config: &Config) -> Result<Self> {
    match DataDir::open(&config.data.dir) {
      Ok(folder) => {
        let node = folder.node();
        Self::open(config, Some(folder), node, true).await
      }
      Err(data_dir::Error::Locked { .. }) => Self::open(config, None, NodeId(uuid::Uuid::nil()), false).await,
      Err(error) => Err(error.into()),
    }
  }

  async fn open(config: &Config, folder: Option<DataDir>, node: NodeId, tool: bool) -> Result<Self> {
    let paths = Paths::of(config)?;
    let given = config.data.database_url.expose_secret();
    let postgres = if given.is_empty() { Some(PrivatePostgres::start(&paths.postgres(), private_postgres::Config::default()).await?) } else { None };
    let url = postgres.as_ref().map_or_else(|| given.to_owned(), PrivatePostgres::url);
    let database = Database::new(&url).context("PA_DATABASE_URL")?;
    database.wait(|error| tracing::warn!(error = error as &dyn std::error::Error, "waiting for Postgres")).await?;
    pa_store::migrate(&database.pool(Role::Tool)).await?;
    let log = Log::open(config, &database).await?;
    let control = database.pool(Role::Gateway);
    let keys = Arc::new(KeyRing::new(control.clone(), Arc::new(master_key(config, &paths)?)));
    keys.check().await.context("the master key is not the one that the agents' keys were wrapped with")?;
    let stop_postgres = tool && postgres.as_ref().is_some_and(|postgres| !postgres.adopted());
    Ok(Self { paths, database, control, postgres, keys, log, _folder: folder, node, stop_postgres })
  }

  /// The node that this process is a life of.
  pub(crate) fn node(&self) -> NodeId {
    self.node
  }

  /// The log as the stages see it.
  pub(crate) fn event_log(&self) -> Arc<dyn EventLog> {
    self.log.port()
  }

  /// Ends a tool: what it started itself is stopped.
  pub(crate) async fn close(self) -> Result<()> {
    if let Some(postgres) = self.postgres.filter(|_| self.stop_postgres) {
      postgres.stop().await.context("stop the private Postgres")?;
    }
    Ok(())
  }
}

fn master_key(config: &Config, paths: &Paths) -> Result<MasterKey> {
  if config.data.master_key.expose_secret().is_empty() {
    return MasterKey::load_or_create(&paths.secret("master.key")).map_err(|error| anyhow!(error).context("the master key's file"));
  }
  MasterKey::from_base64(&config.data.master_key).map_err(|error| anyhow!(error).context("PA_MASTER_KEY"))
}
