//! The test harness: one private Postgres for all test processes of this machine's user, a fresh migrated database for each test.
//!
//! The server is a real one, run by [`crate::private_postgres`] with `fsync` on. Every test process holds a shared lock while it lives; a janitor process waits until
//! nobody holds it any more, stops the server and removes its folder. So nothing is left behind, however the tests end.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::unistd::Uid;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::sync::OnceCell;

use crate::pool::{Database, Role};
use crate::private_postgres::{Config, PrivatePostgres};

/// Many tests run at once, each with pools of its own.
const CONNECTIONS: u32 = 500;

/// Stops the server when no test process has held `users.lock` for a while, so that test binaries that follow each other share one server.
const JANITOR: &str = r#"
exec 9>"$1/janitor.lock"; flock -n 9 || exit 0
while :; do
  sleep 15
  exec 8>"$1/users.lock"
  if flock -n 8; then
    pid=$(head -n 1 "$1/server/data/postmaster.pid" 2>/dev/null)
    if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$1/server/data" ]; then
      kill -QUIT "$pid"
      while [ -d "/proc/$pid" ]; do sleep 0.1; done
    fi
    # What the server's last children still write makes a removal fail; whatever stays all the same is removed by the next start.
    for _ in 1 2 3 4 5; do rm -rf "$1/server" && break; sleep 1; done
    exit 0
  fi
  exec 8>&-
done
"#;

struct Server {
  postgres: PrivatePostgres,
  template: String,
  /// Held until this process ends.
  _users: File,
}

static SERVER: OnceCell<Server> = OnceCell::const_new();
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A migrated database that nobody else uses.
#[derive(Debug)]
pub struct TestDb {
  /// Its address, for whoever connects by itself.
  pub url: String,
  /// Makes pools of every role.
  pub database: Database,
  /// A pool with `synchronous_commit` on, for the test's own statements.
  pub pool: PgPool,
}

impl TestDb {
  /// Makes a database.
  pub async fn new() -> Self {
    let server = SERVER.get_or_init(Server::start).await;
    let name = format!("t_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut connection = server.connect("postgres").await;
    execute(&mut connection, format!("CREATE DATABASE {name} TEMPLATE {}", server.template)).await;
    connection.close().await.expect("close the maintenance connection");
    let url = server.postgres.url_of(&name);
    let database = Database::new(&url).expect("the harness makes a valid address");
    let pool = database.pool(Role::Tool);
    Self { url, database, pool }
  }
}

impl TestDb {
  /// A copy as it is now, as a backup would have it. Whoever is connected to this one is thrown out.
  pub async fn copy(&self) -> Self {
    let server = SERVER.get_or_init(Server::start).await;
    // The query names a folder, too.
    let of = self.url.split('?').next().and_then(|place| place.rsplit('/').next()).expect("the address ends with the name");
    let name = format!("t_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut connection = server.connect("postgres").await;
    execute(&mut connection, format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{of}'")).await;
    execute(&mut connection, format!("CREATE DATABASE {name} TEMPLATE {of}")).await;
    connection.close().await.expect("close the maintenance connection");
    let url = server.postgres.url_of(&name);
    let database = Database::new(&url).expect("the harness makes a valid address");
    let pool = database.pool(Role::Tool);
    Self { url, database, pool }
  }
}

impl Server {
  async fn start() -> Self {
    let folder = folder();
    let users = open(&folder.join("users.lock"));
    users.lock_shared().expect("share the test server");
    let starting = open(&folder.join("start.lock"));
    starting.lock().expect("wait for other test processes that start the server");
    start_janitor(&folder);
    remove_remains(&folder.join("server"));
    let postgres = PrivatePostgres::start(&folder.join("server"), Config { connections: CONNECTIONS }).await.expect("start the test server");
    let template = format!("template_{}", crate::migrations_hash());
    let server = Self { postgres, template, _users: users };
    server.drop_left_behind().await;
    server.make_template().await;
    server
  }

  async fn connect(&self, database: &str) -> PgConnection {
    PgConnection::connect(&self.postgres.url_of(database)).await.expect("connect to the test server")
  }

  /// Databases of test processes that have ended.
  async fn drop_left_behind(&self) {
    let mut connection = self.connect("postgres").await;
    let names: Vec<String> =
      sqlx::query_scalar("SELECT datname::text FROM pg_database WHERE datname LIKE 't\\_%'").fetch_all(&mut connection).await.expect("list the test databases");
    for name in names {
      let alive = name.split('_').nth(1).is_some_and(|pid| Path::new("/proc").join(pid).exists());
      if !alive {
        execute(&mut connection, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
      }
    }
  }

  /// The migrated database that tests are copied from; it gets its name when it is complete.
  async fn make_template(&self) {
    let mut connection = self.connect("postgres").await;
    let there: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)")
      .bind(&self.template)
      .fetch_one(&mut connection)
      .await
      .expect("look for the template");
    if there {
      return;
    }
    execute(&mut connection, "DROP DATABASE IF EXISTS building WITH (FORCE)".to_owned()).await;
    execute(&mut connection, "CREATE DATABASE building".to_owned()).await;
    let pool = Database::new(&self.postgres.url_of("building")).expect("the harness makes a valid address").pool(Role::Tool);
    crate::migrate(&pool).await.expect("migrate the template");
    pool.close().await;
    execute(&mut connection, format!("ALTER DATABASE building RENAME TO {}", self.template)).await;
  }
}

/// Only with names that the harness made.
async fn execute(connection: &mut PgConnection, statement: String) {
  sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.expect("manage the test databases");
}

/// A short path, since a socket lies in it; one for each user, since its files are.
fn folder() -> PathBuf {
  let folder = std::env::temp_dir().join(format!("pa-test-{}", Uid::effective()));
  match DirBuilder::new().mode(0o711).create(&folder) {
    Ok(()) => {}
    Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "create {}", folder.display()),
  }
  fs::canonicalize(&folder).expect("find the test folder")
}

fn open(path: &Path) -> File {
  OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path).expect("open a lock file of the test folder")
}

/// Removes what an interrupted removal has left: a cluster without its version is none.
fn remove_remains(server: &Path) {
  if server.join("data").exists() && !server.join("data/PG_VERSION").exists() {
    fs::remove_dir_all(server).expect("remove the remains of a test server");
  }
}

#[expect(clippy::zombie_processes, reason = "it outlives this process on purpose")]
fn start_janitor(folder: &Path) {
  Command::new("/bin/sh")
    .args(["-c", JANITOR, "pa-test-janitor"])
    .arg(folder)
    .env_clear()
    .env("PATH", "/usr/bin:/bin")
    .current_dir("/")
    .process_group(0)
    .stdin(Stdio::null())
    .stdout(Stdio::null())
    .stderr(Stdio::null())
    .spawn()
    .expect("start the janitor");
}
