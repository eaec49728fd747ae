//! Real servers: made, adopted, killed, stopped.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, PgPool};

use super::cluster::Cluster;
use super::postmaster::Address;
use super::{Config, Error, Event, PrivatePostgres};
use crate::data_dir::DataDir;
use crate::pool::{Database, Role, assert_durable};

const SMALL: Config = Config { connections: 20 };

/// A folder that the server's user can pass: temporary folders are 0700.
fn folder() -> tempfile::TempDir {
  let folder = tempfile::Builder::new().prefix("pa-pg-").tempdir().unwrap();
  fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
  folder
}

async fn start(home: &Path) -> PrivatePostgres {
  let started = PrivatePostgres::start(home, SMALL).await;
  // The folder goes with the test, so what the server said has to be shown here.
  started.unwrap_or_else(|error| panic!("{error}\n{}", fs::read_to_string(home.join("server.log")).unwrap_or_default()))
}

fn pool(postgres: &PrivatePostgres) -> PgPool {
  Database::new(&postgres.url()).unwrap().pool(Role::Log)
}

fn signal(pid: i32, signal: Signal) {
  kill(Pid::from_raw(pid), signal).unwrap();
}

#[tokio::test]
async fn it_is_made_durable_closed_to_others_and_survives_its_owner() {
  let folder = folder();
  let home = folder.path().join("postgres");
  let first = start(&home).await;
  assert!(!first.adopted());
  assert_durable(&pool(&first)).await.unwrap();
  let tcp: String = sqlx::query_scalar("SHOW listen_addresses").fetch_one(&pool(&first)).await.unwrap();
  assert_eq!(tcp, "");
  assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
  let pid = first.pid().await;
  if Uid::effective().is_root() {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(!status.contains("Uid:\t0\t"), "it runs as root");
    assert!(status.lines().any(|line| line.trim_end() == "Groups:"), "it kept groups of root: {status}");
  }
  let environment = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
  assert!(!environment.contains("CARGO"), "it inherited our environment");
  sqlx::raw_sql("CREATE TABLE public.kept (n int); INSERT INTO public.kept VALUES (1)").execute(&pool(&first)).await.unwrap();
  drop(first);
  let second = start(&home).await;
  assert!(second.adopted() && second.pid().await == pid);
  assert_eq!(sqlx::query_scalar::<_, i32>("SELECT n FROM public.kept").fetch_one(&pool(&second)).await.unwrap(), 1);
  second.stop().await.unwrap();
  assert!(!Path::new(&format!("/proc/{pid}")).exists() || PgConnection::connect(&second.url()).await.is_err());
  let third = start(&home).await;
  assert!(!third.adopted());
  assert_eq!(sqlx::query_scalar::<_, i32>("SELECT n FROM public.kept").fetch_one(&pool(&third)).await.unwrap(), 1);
  third.stop().await.unwrap();
}

/// Tells the process that is to be killed where its folder lies.
const OWNED_HOME: &str = "PA_TEST_OWNED_HOME";

/// Not a test of its own: the process that [`a_server_whose_owner_was_killed_is_adopted_by_the_next`] kills. It gets its folder by the environment.
#[tokio::test]
async fn an_owner_that_is_killed() {
  let Some(home) = std::env::var_os(OWNED_HOME) else { return };
  let data = DataDir::open(Path::new(&home)).unwrap();
  let postgres = start(&data.path().join("postgres")).await;
  sqlx::raw_sql("CREATE TABLE public.kept (n int); INSERT INTO public.kept VALUES (1)").execute(&pool(&postgres)).await.unwrap();
  fs::write(data.path().join("ready"), postgres.pid().await.to_string()).unwrap();
  std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_server_whose_owner_was_killed_is_adopted_by_the_next() {
  let folder = folder();
  let home = folder.path().join("data");
  let mut owner = Command::new(std::env::current_exe().unwrap())
    .args(["--exact", "private_postgres::tests::an_owner_that_is_killed", "--nocapture"])
    .env(OWNED_HOME, &home)
    .stdout(Stdio::null())
    .spawn()
    .unwrap();
  let ready = home.join("ready");
  while !ready.exists() {
    assert!(owner.try_wait().unwrap().is_none(), "it ended");
    tokio::time::sleep(Duration::from_millis(20)).await;
  }
  let refused = DataDir::open(&home).unwrap_err();
  assert!(refused.to_string().contains(&format!("process {}", owner.id())), "{refused}");
  owner.kill().unwrap();
  owner.wait().unwrap();
  let data = DataDir::open(&home).unwrap();
  let adopted = start(&data.path().join("postgres")).await;
  assert!(adopted.adopted());
  assert_eq!(adopted.pid().await.to_string(), fs::read_to_string(&ready).unwrap());
  assert_eq!(sqlx::query_scalar::<_, i32>("SELECT n FROM public.kept").fetch_one(&pool(&adopted)).await.unwrap(), 1);
  adopted.stop().await.unwrap();
}

#[tokio::test]
async fn a_killed_server_recovers_what_it_acknowledged() {
  let folder = folder();
  let home = folder.path().join("postgres");
  let first = start(&home).await;
  sqlx::raw_sql("CREATE TABLE public.kept (n int)").execute(&pool(&first)).await.unwrap();
  sqlx::query("INSERT INTO public.kept VALUES (1)").execute(&pool(&first)).await.unwrap();
  signal(first.pid().await, Signal::SIGKILL);
  // The pid file is stale now, and backends of the dead postmaster may still be there.
  let second = start(&home).await;
  assert!(!second.adopted());
  assert_eq!(sqlx::query_scalar::<_, i32>("SELECT n FROM public.kept").fetch_one(&pool(&second)).await.unwrap(), 1);
  second.stop().await.unwrap();
}

#[tokio::test]
async fn a_pid_file_that_names_another_program_is_cleared_away() {
  let folder = folder();
  let home = folder.path().join("postgres");
  let first = start(&home).await;
  let text = fs::read_to_string(home.join("data/postmaster.pid")).unwrap();
  first.stop().await.unwrap();
  // As after a power loss: the file is left, and its number belongs to somebody else by now (here to us).
  let ours = text.replacen(&text.lines().next().unwrap().to_owned(), &std::process::id().to_string(), 1);
  fs::write(home.join("data/postmaster.pid"), &ours).unwrap();
  fs::write(home.join("run/.s.PGSQL.5432.lock"), &ours).unwrap();
  let second = start(&home).await;
  assert!(!second.adopted());
  second.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_that_dies_while_we_run_is_started_again_at_the_same_address() {
  let folder = folder();
  let postgres = start(&folder.path().join("postgres")).await;
  let pool = pool(&postgres);
  let (events, mut seen) = tokio::sync::mpsc::unbounded_channel();
  let watching = postgres.keep_running(|event| events.send(matches!(event, Event::Running)).unwrap());
  let scenario = async {
    signal(postgres.postmaster.lock().await.pid(), Signal::SIGKILL);
    assert_eq!(seen.recv().await, Some(false));
    assert_eq!(seen.recv().await, Some(true));
    sqlx::query("SELECT 1").execute(&pool).await
  };
  let answer = tokio::select! {
    never = watching => match never {},
    answer = scenario => answer,
  };
  // The pool may have one dead connection; it is replaced.
  if answer.is_err() {
    sqlx::query("SELECT 1").execute(&pool).await.unwrap();
  }
  postgres.stop().await.unwrap();
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_falls_back_to_loopback_with_a_password() {
  let folder = folder();
  let deep = folder.path().join("d".repeat(90));
  fs::create_dir(&deep).unwrap();
  let first = start(&deep.join("postgres")).await;
  let url = first.url();
  assert!(url.contains("@127.0.0.1:"), "no socket");
  assert_durable(&pool(&first)).await.unwrap();
  let (before, rest) = url.split_once("pa:").unwrap();
  let (_, after) = rest.split_once('@').unwrap();
  let wrong = Database::new(&format!("{before}pa:wrong@{after}")).unwrap().wait(|_| panic!("a wrong password is not waited for")).await.unwrap_err();
  assert!(format!("{:?}", std::error::Error::source(&wrong).unwrap()).contains("28P01"));
  let pid = first.pid().await;
  drop(first);
  let second = start(&deep.join("postgres")).await;
  assert!(second.adopted() && second.url() == url && second.pid().await == pid);
  second.stop().await.unwrap();
}

#[tokio::test]
async fn a_folder_that_the_servers_user_cannot_pass_is_named_with_the_mend() {
  // Only root runs the server as somebody else.
  if !Uid::effective().is_root() {
    return;
  }
  let folder = folder();
  let closed = folder.path().join("closed");
  fs::create_dir_all(closed.join("data")).unwrap();
  fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
  let error = PrivatePostgres::start(&closed.join("data/postgres"), SMALL).await.unwrap_err();
  assert!(matches!(&error, Error::FolderClosed { path, .. } if path.ends_with("closed")), "{error}");
  assert!(error.to_string().contains("chmod o+x"), "{error}");
}

#[tokio::test]
async fn a_taken_address_is_said_so() {
  let folder = folder();
  let cluster = Cluster::open(&folder.path().join("postgres")).await.unwrap();
  let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
  let port = taken.local_addr().unwrap().port();
  let error = super::launch(&cluster, &SMALL, &Address::Loopback { port }).await.unwrap_err();
  assert!(matches!(error, Error::AddressTaken { .. }), "{error}");
}

#[tokio::test]
async fn a_full_disk_is_said_so_and_the_next_start_begins_anew() {
  // Only root may mount a tiny file system.
  if !Uid::effective().is_root() {
    return;
  }
  let folder = folder();
  let mount = |size: &str| Command::new("mount").args(["-t", "tmpfs", "-o", size, "tmpfs"]).arg(folder.path()).status().unwrap().success();
  assert!(mount("size=20m,mode=711"));
  let home = folder.path().join("postgres");
  let error = PrivatePostgres::start(&home, SMALL).await.unwrap_err();
  let more_room = mount("remount,size=400m");
  let next = PrivatePostgres::start(&home, SMALL).await;
  if let Ok(next) = &next {
    next.stop().await.unwrap();
  }
  let unmounted = Command::new("umount").arg(folder.path()).status().unwrap().success();
  assert!(matches!(&error, Error::DiskFull { .. }), "{error}");
  assert!(more_room && unmounted && next.is_ok(), "{:?}", next.err());
}

#[tokio::test]
async fn a_half_made_cluster_is_made_anew() {
  let folder = folder();
  let home = folder.path().join("postgres");
  fs::create_dir_all(home.join("data.new")).unwrap();
  fs::write(home.join("data.new/PG_VERSION"), "15\n").unwrap();
  let postgres = start(&home).await;
  assert!(!home.join("data.new").exists() && !home.join("password.init").exists());
  postgres.stop().await.unwrap();
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
  let folder = folder();
  let home = folder.path().join("postgres");
  start(&home).await.stop().await.unwrap();
  fs::write(home.join("data/local.conf"), "shared_buffers = a lot\n").unwrap();
  let error = PrivatePostgres::start(&home, SMALL).await.unwrap_err();
  assert!(matches!(&error, Error::StartFailed { line, .. } if line.contains("local.conf")), "{error}");
}

#[tokio::test]
async fn a_setting_that_would_forget_is_found_out() {
  let folder = folder();
  let home = folder.path().join("postgres");
  start(&home).await.stop().await.unwrap();
  fs::write(home.join("data/local.conf"), "fsync = off\n").unwrap();
  let postgres = start(&home).await;
  assert!(assert_durable(&pool(&postgres)).await.unwrap_err().to_string().contains("fsync is off"));
  tokio::time::timeout(Duration::from_secs(30), postgres.stop()).await.unwrap().unwrap();
}
