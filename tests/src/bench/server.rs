//! The bench's private Postgres, durable and nobody else's, and beside it the brokers when the log is on Kafka.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pa_eventlog::{EventLog, Partition};
use pa_store::private_postgres::{Config, PrivatePostgres};
use pa_store::{Database, Role, assert_durable};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use super::cpu;
use super::engine::{Engine, Place};

/// The bench's own pools and a product's beside each other.
const CONNECTIONS: u32 = 200;

/// What a server that counts statements needs.
const COUNTING: &str = "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.track_planning = on\n";

/// A Postgres that ends with this value.
pub(super) struct Server {
  postgres: PrivatePostgres,
  /// `None` once it is stopped.
  pid: Option<i32>,
  next: AtomicU32,
  counts_statements: bool,
  folder: tempfile::TempDir,
  engine: Engine,
}

/// A migrated database.
pub(super) struct Fresh {
  pub(super) url: String,
  pub(super) database: Database,
  /// Where its log is.
  pub(super) place: Place,
}

impl Fresh {
  /// The product's log, made if it is not there yet.
  pub(super) async fn open_log(&self, partitions: Partition) -> Result<Arc<dyn EventLog>> {
    self.place.open(&self.database, partitions, false).await
  }

  /// The same, while a product reads it in another process.
  pub(super) async fn open_log_beside_others(&self, partitions: Partition) -> Result<Arc<dyn EventLog>> {
    self.place.open(&self.database, partitions, true).await
  }
}

impl Server {
  /// Starts a server; one that counts statements says afterwards what each cost.
  pub(super) async fn start(counts_statements: bool, engine: Engine) -> Result<Self> {
    let folder = tempfile::Builder::new().prefix("pa-bench-").tempdir().context("make the bench's folder")?;
    // As root the server runs as another user, who passes this folder.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).context("open the bench's folder")?;
    let home = folder.path().join("postgres");
    let mut postgres = start(&home).await?;
    if counts_statements {
      std::fs::write(home.join("data/local.conf"), COUNTING).context("write the server's own settings")?;
      postgres.stop().await.context("stop the private Postgres")?;
      postgres = start(&home).await?;
    }
    let pid = Some(postgres.pid().await);
    let server = Self { postgres, pid, next: AtomicU32::new(1), counts_statements, folder, engine };
    if counts_statements {
      server.execute("CREATE EXTENSION pg_stat_statements").await?;
    }
    Ok(server)
  }

  /// Begins to count statements anew.
  pub(super) async fn forget_statements(&self) -> Result<()> {
    if self.counts_statements { self.execute("SELECT pg_stat_statements_reset()").await } else { Ok(()) }
  }

  /// Says what the statements cost, dearest first.
  pub(super) async fn print_statements(&self) -> Result<()> {
    if !self.counts_statements {
      return Ok(());
    }
    let mut connection = PgConnection::connect(&self.postgres.url_of("postgres")).await.context("connect to the private Postgres")?;
    let rows: Vec<(i64, f64, f64, String)> = sqlx::query_as(
      "SELECT sum(calls)::int8, sum(total_exec_time), sum(total_plan_time), regexp_replace(left(query, 110), '\\s+', ' ', 'g') AS text \
       FROM pg_stat_statements GROUP BY text ORDER BY sum(total_exec_time + total_plan_time) DESC LIMIT 40",
    )
    .fetch_all(&mut connection)
    .await
    .context("read what statements cost")?;
    for (calls, executing, planning, text) in rows {
      eprintln!("{calls:>9} × {:>8.3} ms = {executing:>9.0} ms, planning {planning:>7.0} ms: {text}", executing / calls as f64);
    }
    connection.close().await.context("close a connection")
  }

  /// A folder for whatever a figure keeps.
  pub(super) fn folder(&self, name: &str) -> std::path::PathBuf {
    self.folder.path().join(name)
  }

  /// A fresh database with all that migrations make; its commits wait for the disk, or this fails.
  pub(super) async fn fresh(&self) -> Result<Fresh> {
    let name = format!("b{}", self.next.fetch_add(1, Ordering::Relaxed));
    self.execute(&format!("CREATE DATABASE {name}")).await?;
    let url = self.postgres.url_of(&name);
    let database = Database::new(&url).context("the address of a fresh database")?;
    let pool = database.pool(Role::Log);
    pa_store::migrate(&database.pool(Role::Tool)).await.context("migrate a fresh database")?;
    assert_durable(&pool).await.context("commits must wait for the disk")?;
    pool.close().await;
    Ok(Fresh { url, database, place: self.engine.place(&name) })
  }

  /// Writes all that is dirty, so that no round pays for the one before.
  pub(super) async fn settle(&self) -> Result<()> {
    self.execute("CHECKPOINT").await
  }

  async fn execute(&self, statement: &str) -> Result<()> {
    let mut connection = PgConnection::connect(&self.postgres.url_of("postgres")).await.context("connect to the private Postgres")?;
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.with_context(|| statement.to_owned())?;
    connection.close().await.context("close a connection")
  }

  /// CPU time of the server with all its processes.
  pub(super) fn cpu(&self) -> Result<Duration> {
    cpu::of_family(self.pid.context("the private Postgres is stopped")?)
  }

  /// CPU time of whoever keeps the log: the brokers, or Postgres.
  pub(super) fn log_cpu(&self) -> Result<Duration> {
    self.engine.brokers_cpu()?.map_or_else(|| self.cpu(), Ok)
  }

  /// What [`Self::log_cpu`] counts, as the name of a field.
  pub(super) fn log_cpu_name(&self) -> &'static str {
    if matches!(self.engine, Engine::Embedded) { "postgres_cpu_us" } else { "brokers_cpu_us" }
  }

  /// The log's engine, as it stands in a figure's line.
  pub(super) fn engine(&self) -> &'static str {
    self.engine.name()
  }

  pub(super) fn is_embedded(&self) -> bool {
    matches!(self.engine, Engine::Embedded)
  }

  /// The server in one line.
  pub(super) async fn description(&self) -> Result<String> {
    let mut connection = PgConnection::connect(&self.postgres.url_of("postgres")).await.context("connect to the private Postgres")?;
    let settings: Vec<(String, String)> = sqlx::query_as(
      "SELECT name, setting FROM pg_settings WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method') ORDER BY name",
    )
    .fetch_all(&mut connection)
    .await
    .context("read the server's settings")?;
    connection.close().await.context("close a connection")?;
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let settings: Vec<String> = settings.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(format!("{cores} cores, log: {}; Postgres {}", self.engine(), settings.join(" ")))
  }

  pub(super) async fn stop(mut self) -> Result<()> {
    self.engine.leave().await?;
    self.postgres.stop().await.context("stop the private Postgres")?;
    self.pid = None;
    Ok(())
  }
}

async fn start(home: &std::path::Path) -> Result<PrivatePostgres> {
  PrivatePostgres::start(home, Config { connections: CONNECTIONS }).await.context("start a private Postgres")
}

impl Drop for Server {
  fn drop(&mut self) {
    if let Some(pid) = self.pid
      && let Err(error) = kill(Pid::from_raw(pid), Signal::SIGQUIT)
    {
      eprintln!("bench: the private Postgres (process {pid}) is left running: {error}");
    }
  }
}
