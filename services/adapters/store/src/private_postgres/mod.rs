//! The private Postgres: a cluster under the data folder, made and run by `pa up` for people who bring no database of their own.
//!
//! Invariants:
//! - The server outlives `pa`: it runs in a process group of its own, so neither a signal from a terminal nor `kill -9` of `pa` takes it down. The next start adopts
//!   it. A start never runs a second server on the same cluster.
//! - It is durable (`fsync`, `full_page_writes`, `synchronous_commit` on) and reachable by its owner alone: a socket in a 0700 folder, or, when that path would be
//!   too long for a socket, the loopback address with a random password.
//! - As root it runs as the unprivileged user `postgres`, since Postgres refuses root. Its environment is empty: no secret of ours is in it.
//! - A half-made cluster is never used: it gets its name when it is complete.
//!
//! `cluster` makes the folders and the cluster, `settings` writes its configuration, `postmaster` is the running server.

mod binaries;
mod cluster;
mod postmaster;
mod settings;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _};
use thiserror::Error;
use tokio::sync::Mutex;

use crate::pool::CONNECTIONS_PER_PROCESS;
use cluster::Cluster;
use postmaster::{Address, Postmaster};

/// The user as whom the server runs when `pa` is root.
const ROOT_RUNS_AS: &str = "postgres";

/// The role and the database in the cluster.
const ROLE: &str = "pa";
const DATABASE: &str = "pa";

/// How long a start may take: replaying the write-ahead log after a crash takes seconds, on a slow disk minutes.
const READY_WITHIN: Duration = Duration::from_mins(5);
const READY_POLL: Duration = Duration::from_millis(20);

/// How often the server is looked after, and the longest pause between tries to start it again.
const WATCH_EVERY: Duration = Duration::from_millis(250);
const RESTART_PAUSE_LONGEST: Duration = Duration::from_secs(15);

/// Loopback ports are chosen free, but another program may take one before the server does.
const PORT_TRIES: usize = 5;

#[derive(Debug, Error)]
pub enum Error {
  #[error("no Postgres server is installed (looked for /usr/lib/postgresql/*/bin/postgres): install the package postgresql, or set PA_DATABASE_URL")]
  NotInstalled,
  #[error("the cluster in {path} was made by Postgres {version}, which is not installed: install postgresql-{version}")]
  VersionMissing { version: u32, path: PathBuf },
  #[error("there is no user {user} to run Postgres as (it refuses root): install the package postgresql, or start pa as another user")]
  NoUser { user: &'static str },
  #[error("the user {user} can't pass the folder {path}, which leads to the data folder: run chmod o+x {path}, or choose another folder by PA_DATA_DIR")]
  FolderClosed { user: String, path: PathBuf },
  #[error("the disk of {path} is full: free some space and start again")]
  DiskFull { path: PathBuf },
  #[error("the address of the private Postgres is taken by another program: {line}")]
  AddressTaken { line: String },
  #[error("could not make a Postgres cluster: {line}")]
  InitFailed { line: String },
  #[error("the private Postgres does not start: {line} (more in {log})")]
  StartFailed { line: String, log: PathBuf },
  #[error("the private Postgres did not answer within {} s (see {log})", READY_WITHIN.as_secs())]
  NotReady { log: PathBuf },
  #[error("the private Postgres (process {pid}) does not stop")]
  DoesNotStop { pid: i32 },
  #[error("another Postgres answers at the private one's address; it serves {found}")]
  WrongServer { found: String },
  #[error("could not {doing} {path}")]
  Io {
    doing: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
  },
  #[error(transparent)]
  Folder(#[from] crate::data_dir::Error),
  #[error("could not prepare the private Postgres")]
  Database {
    #[source]
    source: sqlx::Error,
  },
}

/// How the server is to be run.
#[derive(Clone, Debug)]
pub struct Config {
  /// Two processes of ours fit by default: an old one that ends and a new one that starts.
  pub connections: u32,
}

impl Default for Config {
  fn default() -> Self {
    Self { connections: 2 * CONNECTIONS_PER_PROCESS + settings::CONNECTIONS_SPARE }
  }
}

/// What happens to the server while it is looked after.
#[derive(Debug)]
pub enum Event<'a> {
  /// The server has died; it is being started again.
  Died,
  /// It runs again.
  Running,
  /// It could not be started; that is tried again after a pause.
  Failed(&'a Error),
}

/// A running private Postgres. Dropping the value leaves it running.
#[derive(Debug)]
pub struct PrivatePostgres {
  cluster: Cluster,
  config: Config,
  address: Address,
  adopted: bool,
  postmaster: Mutex<Postmaster>,
}

impl PrivatePostgres {
  /// Runs the server whose cluster lies in `home`: adopts it if it runs already, makes the cluster if there is none. The caller owns the folder (see
  /// [`crate::data_dir::DataDir`]).
  pub async fn start(home: &Path, config: Config) -> Result<Self, Error> {
    let cluster = Cluster::open(home).await?;
    if let Some(running) = adopt(&cluster).await? {
      tracing::info!(pid = running.pid(), "adopted the running private Postgres");
      let address = running.address();
      return Ok(Self { cluster, config, address, adopted: true, postmaster: Mutex::new(running) });
    }
    let mut tries = 0;
    loop {
      let address = Address::choose(&cluster)?;
      match launch(&cluster, &config, &address).await {
        Ok(postmaster) => return Ok(Self { cluster, config, address, adopted: false, postmaster: Mutex::new(postmaster) }),
        Err(Error::AddressTaken { line }) if tries < PORT_TRIES && matches!(address, Address::Loopback { .. }) => {
          tracing::info!(line, "the chosen port was taken; trying another");
          tries += 1;
        }
        Err(error) => return Err(error),
      }
    }
  }

  /// The address for [`crate::Database::new`]. It holds the password when the server listens on loopback, so it is not to be logged.
  pub fn url(&self) -> String {
    self.address.url(&self.cluster, DATABASE)
  }

  /// The same for another database of the cluster.
  pub fn url_of(&self, database: &str) -> String {
    self.address.url(&self.cluster, database)
  }

  /// Whether the server ran already, left by an earlier process.
  pub fn adopted(&self) -> bool {
    self.adopted
  }

  /// The server's process.
  pub async fn pid(&self) -> i32 {
    self.postmaster.lock().await.pid()
  }

  /// Looks after the server for ever: when it dies it is started again at the same address. Drop the future to end that, before [`Self::stop`].
  pub async fn keep_running(&self, mut on_event: impl FnMut(Event<'_>)) -> std::convert::Infallible {
    let mut pause = WATCH_EVERY;
    loop {
      tokio::time::sleep(pause).await;
      let mut postmaster = self.postmaster.lock().await;
      if postmaster.is_alive() {
        continue;
      }
      if pause == WATCH_EVERY {
        on_event(Event::Died);
      }
      match self.start_again().await {
        Ok(started) => {
          *postmaster = started;
          pause = WATCH_EVERY;
          on_event(Event::Running);
        }
        Err(error) => {
          on_event(Event::Failed(&error));
          pause = (pause * 2).min(RESTART_PAUSE_LONGEST);
        }
      }
    }
  }

  /// Stops the server: open transactions are rolled back, everything is written, no recovery is needed at the next start.
  pub async fn stop(&self) -> Result<(), Error> {
    self.postmaster.lock().await.stop().await
  }

  async fn start_again(&self) -> Result<Postmaster, Error> {
    // Somebody may have started it by hand.
    if let Some(running) = adopt(&self.cluster).await? {
      return Ok(running);
    }
    launch(&self.cluster, &self.config, &self.address).await
  }
}

/// Takes over a server that runs already. One that ends while we wait for it is as good as none.
async fn adopt(cluster: &Cluster) -> Result<Option<Postmaster>, Error> {
  while let Some(mut running) = Postmaster::find(cluster).await? {
    let address = running.address();
    match wait_ready(cluster, &mut running, &address).await {
      Ok(()) => return Ok(Some(running)),
      Err(error) if running.is_alive() => return Err(error),
      Err(error) => tracing::info!(%error, "the private Postgres that was running has ended"),
    }
  }
  Ok(None)
}

async fn launch(cluster: &Cluster, config: &Config, address: &Address) -> Result<Postmaster, Error> {
  cluster.write_settings(&settings::text(config, address))?;
  let mut postmaster = Postmaster::spawn(cluster)?;
  match wait_ready(cluster, &mut postmaster, address).await {
    Ok(()) => Ok(postmaster),
    Err(error) => {
      // Nobody would know of it; it does nothing when the server has ended by itself.
      postmaster.stop().await?;
      Err(error)
    }
  }
}

/// Waits until the server takes statements, and checks that it is the one of this cluster.
async fn wait_ready(cluster: &Cluster, postmaster: &mut Postmaster, address: &Address) -> Result<(), Error> {
  let options = PgConnectOptions::from_str(&address.url(cluster, "postgres")).map_err(|source| Error::Database { source })?;
  let begun = tokio::time::Instant::now();
  loop {
    match crate::pool::connect(&options).await {
      Ok(mut connection) => {
        prepare(cluster, &mut connection).await?;
        return connection.close().await.map_err(|source| Error::Database { source });
      }
      Err(error) if !postmaster.is_alive() => {
        tracing::debug!(%error, "the private Postgres ended while it was starting");
        return Err(postmaster.why_it_ended(cluster));
      }
      Err(error) if begun.elapsed() > READY_WITHIN => {
        tracing::warn!(%error, "the private Postgres does not answer");
        return Err(Error::NotReady { log: cluster.log() });
      }
      Err(_) => tokio::time::sleep(READY_POLL).await,
    }
  }
}

async fn prepare(cluster: &Cluster, connection: &mut PgConnection) -> Result<(), Error> {
  let failed = |source| Error::Database { source };
  let found: String = sqlx::query_scalar("SHOW data_directory").fetch_one(&mut *connection).await.map_err(failed)?;
  if Path::new(&found) != cluster.data() {
    return Err(Error::WrongServer { found });
  }
  let there: bool =
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)").bind(DATABASE).fetch_one(&mut *connection).await.map_err(failed)?;
  if !there {
    // Safe: the name is a constant of ours.
    sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {DATABASE}"))).execute(connection).await.map_err(failed)?;
  }
  Ok(())
}

/// Names what was being done with a file; a full disk has its own error.
fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
  let path = path.to_owned();
  move |source| {
    if source.kind() == io::ErrorKind::StorageFull { Error::DiskFull { path } } else { Error::Io { doing, path, source } }
  }
}
