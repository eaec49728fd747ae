//! The running server: found by its pid file, started, looked at, stopped.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::cluster::Cluster;
use super::{Error, ROLE, failed};

/// The port in the socket's name.
pub(super) const PORT: u16 = 5432;

/// `sun_path` of Linux holds 108 bytes with the closing NUL.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A fast stop writes a checkpoint; on a slow disk that takes a while.
const STOP_FAST_WITHIN: Duration = Duration::from_secs(30);
/// An immediate stop writes nothing: the next start recovers.
const STOP_IMMEDIATE_WITHIN: Duration = Duration::from_secs(10);
/// Backends notice the death of their postmaster when they next wait for something.
const ORPHANS_END_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// How much of the log's end is looked at for the reason of a failed start.
const LOG_TAIL_BYTES: u64 = 16 * 1024;

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
  Socket { folder: PathBuf },
  Loopback { port: u16 },
}

impl Address {
  /// A socket in the cluster's folder, or a free loopback port when the socket's path would be too long.
  pub(super) fn choose(cluster: &Cluster) -> Result<Self, Error> {
    let folder = cluster.sockets();
    if fits(&folder) {
      return Ok(Self::Socket { folder });
    }
    tracing::info!(folder = %folder.display(), "the path is too long for a socket; the private Postgres listens on loopback with a password");
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).map_err(failed("find a free port for", &folder))?.port();
    Ok(Self::Loopback { port })
  }

  pub(super) fn url(&self, cluster: &Cluster, database: &str) -> String {
    match self {
      Self::Socket { folder } => format!("postgres://{ROLE}@localhost:{PORT}/{database}?host={}&sslmode=disable", percent_encoded(folder)),
      Self::Loopback { port } => format!("postgres://{ROLE}:{}@127.0.0.1:{port}/{database}?sslmode=disable", cluster.password()),
    }
  }
}

fn fits(folder: &Path) -> bool {
  folder.join(format!(".s.PGSQL.{PORT}")).as_os_str().len() <= SOCKET_PATH_BYTES_MAX
}

fn percent_encoded(path: &Path) -> String {
  use std::os::unix::ffi::OsStrExt as _;
  let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~');
  path.as_os_str().as_bytes().iter().map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A server process: started by us (then a child, to be reaped), or adopted.
#[derive(Debug)]
pub(super) struct Postmaster {
  pid: i32,
  child: Option<Child>,
  address: Address,
  /// How long the log was when this server was started.
  log_from: u64,
}

impl Postmaster {
  /// Finds the cluster's running server, and clears away what a dead one left so that another can start.
  pub(super) async fn find(cluster: &Cluster) -> Result<Option<Self>, Error> {
    let path = cluster.data().join("postmaster.pid");
    let text = match fs::read_to_string(&path) {
      Ok(text) => text,
      Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
      Err(error) => return Err(failed("read", &path)(error)),
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pid = lines.first().and_then(|line| line.parse::<i32>().ok()).map(i32::abs);
    if let Some(pid) = pid.filter(|pid| works_in(*pid, &cluster.data()) && !is_child_of_postmaster(*pid, &cluster.data())) {
      let mut running = Self { pid, child: None, address: address_in(&lines), log_from: 0 };
      if lines.get(7).is_none_or(|status| !status.starts_with("stopping")) {
        return Ok(Some(running));
      }
      // It was told to stop and is at it: start another when it is done.
      running.wait_for_end(STOP_FAST_WITHIN).await.then_some(()).ok_or(Error::DoesNotStop { pid })?;
    }
    end_orphans(&cluster.data()).await?;
    // The number in the file may belong to another program by now; the server itself would then refuse to start.
    for stale in [path, cluster.sockets().join(format!(".s.PGSQL.{PORT}.lock"))] {
      match fs::remove_file(&stale) {
        Ok(()) => tracing::info!(file = %stale.display(), "removed what a dead server left"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("remove", &stale)(error)),
      }
    }
    Ok(None)
  }

  /// Starts a server.
  pub(super) fn spawn(cluster: &Cluster) -> Result<Self, Error> {
    let (log, log_from) = cluster.open_log()?;
    let log_too = log.try_clone().map_err(failed("open", &cluster.log()))?;
    let mut command = cluster.program("postgres");
    command.arg("-D").arg(cluster.data()).arg("-c").arg(format!("config_file={}", cluster.settings().display())).stdout(log).stderr(log_too);
    let child = command.spawn().map_err(failed("run the server of", &cluster.data()))?;
    let pid = i32::try_from(child.id()).expect("process numbers of Linux fit");
    Ok(Self { pid, child: Some(child), address: Address::Loopback { port: 0 }, log_from })
  }

  pub(super) fn pid(&self) -> i32 {
    self.pid
  }

  /// Where an adopted server listens.
  pub(super) fn address(&self) -> Address {
    self.address.clone()
  }

  pub(super) fn is_alive(&mut self) -> bool {
    match &mut self.child {
      // Also reaps it.
      Some(child) => matches!(child.try_wait(), Ok(None)),
      None => is_running(self.pid),
    }
  }

  /// Stops it fast, and if that does not come to an end, immediately.
  pub(super) async fn stop(&mut self) -> Result<(), Error> {
    for (signal, within) in [(Signal::SIGINT, STOP_FAST_WITHIN), (Signal::SIGQUIT, STOP_IMMEDIATE_WITHIN)] {
      if !self.is_alive() {
        return Ok(());
      }
      send(self.pid, signal);
      if self.wait_for_end(within).await {
        return Ok(());
      }
    }
    Err(Error::DoesNotStop { pid: self.pid })
  }

  /// Reads from its log why it ended.
  pub(super) fn why_it_ended(&self, cluster: &Cluster) -> Error {
    let log = cluster.log();
    let said = tail(&log, self.log_from).unwrap_or_default();
    // The last word of a server with a bad configuration does not say what is bad; the lines before do.
    let configuration =
      |line: &&str| ["invalid value for parameter", "unrecognized configuration parameter", "syntax error in file"].iter().any(|mark| line.contains(mark));
    let reason = |line: &&str| ["FATAL:", "PANIC:", "ERROR:", "LOG:  could not"].iter().any(|mark| line.contains(mark));
    let line = said.lines().find(configuration).or_else(|| said.lines().rev().find(reason)).or(said.lines().last()).unwrap_or("it said nothing").to_owned();
    if said.contains("No space left on device") {
      Error::DiskFull { path: cluster.data() }
    } else if said.contains("Address already in use") || said.contains("lock file") && said.contains("already exists") {
      Error::AddressTaken { line }
    } else {
      Error::StartFailed { line, log }
    }
  }

  async fn wait_for_end(&mut self, within: Duration) -> bool {
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < within {
      if !self.is_alive() {
        return true;
      }
      tokio::time::sleep(POLL).await;
    }
    !self.is_alive()
  }
}

/// Lines of the pid file: pid, data folder, start, port, socket folder, listen address, shared memory, status.
fn address_in(lines: &[&str]) -> Address {
  match lines.get(4) {
    Some(folder) if !folder.is_empty() => Address::Socket { folder: PathBuf::from(folder) },
    _ => Address::Loopback { port: lines.get(3).and_then(|port| port.parse().ok()).unwrap_or(PORT) },
  }
}

/// Ends backends that outlived their postmaster: as long as one is there no server can start, and none of them can commit anything useful any more.
async fn end_orphans(data: &Path) -> Result<(), Error> {
  let begun = tokio::time::Instant::now();
  let mut signalled = false;
  loop {
    let orphans = processes_in(data)?;
    let Some(first) = orphans.first() else { return Ok(()) };
    if begun.elapsed() > ORPHANS_END_WITHIN && !signalled {
      for orphan in &orphans {
        send(*orphan, Signal::SIGQUIT);
      }
      signalled = true;
    }
    if begun.elapsed() > ORPHANS_END_WITHIN + STOP_IMMEDIATE_WITHIN {
      return Err(Error::DoesNotStop { pid: *first });
    }
    tokio::time::sleep(POLL).await;
  }
}

/// The processes whose working folder is the cluster: the postmaster goes there, and its children stay.
fn processes_in(data: &Path) -> Result<Vec<i32>, Error> {
  let mut found = Vec::new();
  for entry in fs::read_dir("/proc").map_err(failed("list", Path::new("/proc")))? {
    let entry = entry.map_err(failed("list", Path::new("/proc")))?;
    if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok())
      && works_in(pid, data)
    {
      found.push(pid);
    }
  }
  Ok(found)
}

fn works_in(pid: i32, folder: &Path) -> bool {
  is_running(pid) && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder)
}

/// A number that was reused for a backend of a dead postmaster is not a postmaster. A postmaster's parent never works in the cluster.
fn is_child_of_postmaster(pid: i32, folder: &Path) -> bool {
  stat(pid).is_some_and(|(_, parent)| works_in(parent, folder))
}

/// Running, and not merely waiting to be reaped.
fn is_running(pid: i32) -> bool {
  stat(pid).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

/// State and parent of a process, from `/proc/<pid>/stat`: `pid (name) state parent …`; the name may hold anything, so the fields count from its last bracket.
fn stat(pid: i32) -> Option<(char, i32)> {
  let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
  let mut fields = text.rsplit_once(')')?.1.split_whitespace();
  let state = fields.next()?.chars().next()?;
  Some((state, fields.next()?.parse().ok()?))
}

fn send(pid: i32, signal: Signal) {
  // Already gone is what we want; anything else shows when it does not end.
  if let Err(error) = kill(Pid::from_raw(pid), signal) {
    tracing::debug!(pid, %error, "could not signal the private Postgres");
  }
}

fn tail(path: &Path, from: u64) -> io::Result<String> {
  let mut file = File::open(path)?;
  let length = file.metadata()?.len();
  file.seek(SeekFrom::Start(from.max(length.saturating_sub(LOG_TAIL_BYTES)).min(length)))?;
  let mut bytes = Vec::new();
  file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
  Ok(String::from_utf8_lossy(&bytes).into_owned())
}
