//! The cluster's folders and files, and the user that owns them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::unistd::{Uid, User};

use super::{Error, ROLE, ROOT_RUNS_AS, binaries, failed};
use crate::data_dir;
use crate::durable_file;

/// A person's own settings, beside ours.
const LOCAL_SETTINGS: &str = "local.conf";

/// A server log of this size is put aside at the next start.
const LOG_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// As which user the server runs, when not as our own.
#[derive(Clone, Debug)]
pub(super) struct Account {
  pub name: String,
  pub uid: u32,
  pub gid: u32,
}

/// A cluster that is complete, or was made just now.
#[derive(Debug)]
pub(super) struct Cluster {
  home: PathBuf,
  binaries: PathBuf,
  account: Option<Account>,
  password: String,
}

impl Cluster {
  /// Opens the cluster in `home`, making it when there is none.
  pub(super) async fn open(home: &Path) -> Result<Self, Error> {
    let account = account()?;
    let home = make_home(home, account.as_ref())?;
    let password = data_dir::read_or_create_secret(&home.join("password"), || hex::encode(crate::keys::random::<16>()).into_bytes())?;
    let password = String::from_utf8_lossy(&password).into_owned();
    let binaries = binaries::find(&home.join("data"))?;
    let cluster = Self { home, binaries, account, password };
    if !cluster.data().join("PG_VERSION").exists() {
      cluster.make().await?;
    }
    Ok(cluster)
  }

  pub(super) fn data(&self) -> PathBuf {
    self.home.join("data")
  }

  pub(super) fn sockets(&self) -> PathBuf {
    self.home.join("run")
  }

  pub(super) fn log(&self) -> PathBuf {
    self.home.join("server.log")
  }

  pub(super) fn settings(&self) -> PathBuf {
    self.data().join("pa.conf")
  }

  pub(super) fn password(&self) -> &str {
    &self.password
  }

  /// A program of the server, to be run as its user, with nothing of our environment.
  pub(super) fn program(&self, name: &str) -> std::process::Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = std::process::Command::new(self.binaries.join(name));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("TZ", "UTC").current_dir(&self.home).process_group(0).stdin(Stdio::null());
    if let Some(account) = &self.account {
      command.uid(account.uid).gid(account.gid);
    }
    command
  }

  /// Writes the configuration file, and an empty one for a person's own settings.
  pub(super) fn write_settings(&self, text: &str) -> Result<(), Error> {
    let path = self.settings();
    durable_file::write(&path, text.as_bytes(), 0o600).map_err(failed("write", &path))?;
    self.give(&path)?;
    let own = self.data().join(LOCAL_SETTINGS);
    if durable_file::create(&own, b"# Your own settings of the private Postgres; they override pa.conf.\n", 0o600).map_err(failed("create", &own))? {
      self.give(&own)?;
    }
    Ok(())
  }

  /// Opens the server's log for appending, and says how long it is already.
  pub(super) fn open_log(&self) -> Result<(File, u64), Error> {
    let path = self.log();
    let length = fs::metadata(&path).map_or(0, |metadata| metadata.len());
    if length > LOG_BYTES_MAX {
      fs::rename(&path, self.home.join("server.log.1")).map_err(failed("put aside", &path))?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(failed("open", &path))?;
    let length = file.metadata().map_err(failed("look at", &path))?.len();
    Ok((file, length))
  }

  /// Makes the cluster beside its place and moves it there when it is complete.
  async fn make(&self) -> Result<(), Error> {
    let new = self.home.join("data.new");
    match fs::remove_dir_all(&new) {
      Ok(()) => tracing::info!("removed a cluster that was never completed"),
      Err(error) if error.kind() == io::ErrorKind::NotFound => {}
      Err(error) => return Err(failed("remove", &new)(error)),
    }
    let password = self.home.join("password.init");
    self.write_password(&password)?;
    let made = self.run_initdb(&new, &password).await;
    let removed = fs::remove_file(&password).map_err(failed("remove", &password));
    made.and(removed)?;
    fs::rename(&new, self.data()).map_err(failed("complete the cluster in", &new))?;
    durable_file::sync_dir(&self.home).map_err(failed("flush", &self.home))
  }

  async fn run_initdb(&self, new: &Path, password: &Path) -> Result<(), Error> {
    let mut command = self.program("initdb");
    command
      .arg("--pgdata")
      .arg(new)
      .arg("--pwfile")
      .arg(password)
      .args(["--username", ROLE, "--encoding", "UTF8", "--data-checksums", "--no-instructions"])
      // Plain bytes order text: the same everywhere, whatever languages a machine has.
      .args(["--locale", "C"])
      // The socket's folder admits its owner alone; loopback needs the password.
      .args(["--auth-local", "trust", "--auth-host", "scram-sha-256"]);
    let output = tokio::process::Command::from(command).output().await.map_err(failed("run initdb of", &self.binaries))?;
    if output.status.success() {
      return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("No space left on device") {
      return Err(Error::DiskFull { path: self.home.clone() });
    }
    let line = said.lines().rev().find(|line| line.contains("error") || line.contains("FATAL")).or(said.lines().last()).unwrap_or("it said nothing");
    Err(Error::InitFailed { line: line.to_owned() })
  }

  fn write_password(&self, path: &Path) -> Result<(), Error> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).map_err(failed("create", path))?;
    file.write_all(self.password.as_bytes()).map_err(failed("write", path))?;
    self.give(path)
  }

  fn give(&self, path: &Path) -> Result<(), Error> {
    give(path, self.account.as_ref())
  }
}

fn account() -> Result<Option<Account>, Error> {
  if !Uid::effective().is_root() {
    return Ok(None);
  }
  // A name service that fails is to us the same as no such user.
  let user = User::from_name(ROOT_RUNS_AS).ok().flatten().ok_or(Error::NoUser { user: ROOT_RUNS_AS })?;
  Ok(Some(Account { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() }))
}

/// Makes `home` and its socket folder, owned by the server's user, and sees that this user can get there.
fn make_home(home: &Path, account: Option<&Account>) -> Result<PathBuf, Error> {
  make_folder(home)?;
  let home = home.canonicalize().map_err(failed("find", home))?;
  if let Some(account) = account {
    let data_folder = home.parent().unwrap_or(&home);
    // To be passed, not to be listed: what lies in it keeps its own permissions.
    data_dir::set_mode(data_folder, 0o711)?;
    for folder in data_folder.ancestors() {
      if !may_pass(folder, account)? {
        return Err(Error::FolderClosed { user: account.name.clone(), path: folder.to_owned() });
      }
    }
  }
  give(&home, account)?;
  make_folder(&home.join("run"))?;
  give(&home.join("run"), account)?;
  Ok(home)
}

fn make_folder(path: &Path) -> Result<(), Error> {
  match DirBuilder::new().mode(0o700).create(path) {
    Ok(()) => Ok(()),
    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
    Err(error) => Err(failed("create", path)(error)),
  }
}

fn give(path: &Path, account: Option<&Account>) -> Result<(), Error> {
  let Some(account) = account else { return Ok(()) };
  chown(path, Some(account.uid), Some(account.gid)).map_err(failed("give to the server's user", path))
}

fn may_pass(folder: &Path, account: &Account) -> Result<bool, Error> {
  let metadata = fs::metadata(folder).map_err(failed("look at", folder))?;
  let mode = metadata.permissions().mode();
  let bit = if metadata.uid() == account.uid {
    0o100
  } else if metadata.gid() == account.gid {
    0o010
  } else {
    0o001
  };
  Ok(mode & bit != 0)
}
