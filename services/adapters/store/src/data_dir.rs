//! The data folder: who owns it now, which node it is, and the secrets that lie in it.
//!
//! One process owns a data folder at a time (an exclusive lock that the kernel drops with the process, however it ends). The node id lies in it, so whoever holds
//! the lock *is* that node. Secret files are 0600 and refused when others may read them.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use pa_domain::NodeId;
use thiserror::Error;

use crate::clock::{Ids, SystemIds};
use crate::durable_file;

/// Secret files hold a key or a token; anything longer is not one of ours.
const SECRET_BYTES_MAX: u64 = 4_096;

/// Only the owner may look into the folder; `private_postgres` opens it just enough (0711) when it must run as another user.
const FOLDER_MODE: u32 = 0o700;

const SECRET_MODE: u32 = 0o600;

#[derive(Debug, Error)]
pub enum Error {
  #[error("another pa (process {pid}) is using the data folder {path}: stop it first, or choose another folder by PA_DATA_DIR")]
  Locked { path: PathBuf, pid: String },
  #[error("the secret file {path} may be read by others (mode {mode:04o}): run chmod 600 {path}")]
  OpenToOthers { path: PathBuf, mode: u32 },
  #[error("the file {path} does not hold what it should: {what}")]
  Malformed { path: PathBuf, what: &'static str },
  #[error("the disk of {path} is full")]
  DiskFull { path: PathBuf },
  #[error("could not {doing} {path}")]
  Io {
    doing: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
  },
}

/// A data folder that this process owns until the value is dropped.
#[derive(Debug)]
pub struct DataDir {
  path: PathBuf,
  node: NodeId,
  _lock: File,
}

impl DataDir {
  /// Opens the folder, creating it when it is missing, and takes its lock.
  ///
  /// # Errors
  /// [`Error::Locked`] names the process that owns it.
  pub fn open(path: &Path) -> Result<Self, Error> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path).map_err(failed("create the data folder", path))?;
    let path = path.canonicalize().map_err(failed("find the data folder", path))?;
    let lock = take_lock(&path.join("lock"))?;
    let node = node_id(&path.join("node"))?;
    Ok(Self { path, node, _lock: lock })
  }

  /// The folder, as an absolute path.
  pub fn path(&self) -> &Path {
    &self.path
  }

  /// The node that this folder is, over all lives of its processes.
  pub fn node(&self) -> NodeId {
    self.node
  }
}

/// Reads a secret file, trimmed at its end; `None` when there is none.
///
/// # Errors
/// [`Error::OpenToOthers`] when group or others have any right to it.
pub fn read_secret(path: &Path) -> Result<Option<Vec<u8>>, Error> {
  let file = match File::open(path) {
    Ok(file) => file,
    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
    Err(error) => return Err(failed("open", path)(error)),
  };
  // Of the opened file, not of the path: it can't be exchanged in between.
  let mode = file.metadata().map_err(failed("look at", path))?.mode() & 0o7777;
  if mode & 0o077 != 0 {
    return Err(Error::OpenToOthers { path: path.to_owned(), mode });
  }
  let mut content = Vec::new();
  file.take(SECRET_BYTES_MAX + 1).read_to_end(&mut content).map_err(failed("read", path))?;
  if content.len() as u64 > SECRET_BYTES_MAX {
    return Err(Error::Malformed { path: path.to_owned(), what: "it is longer than any secret" });
  }
  content.truncate(content.trim_ascii_end().len());
  Ok(Some(content))
}

/// Reads a secret file, or creates it with what `make` gives; answers with the content that stands in the end, whoever created it.
pub fn read_or_create_secret(path: &Path, make: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, Error> {
  if let Some(content) = read_secret(path)? {
    return Ok(content);
  }
  let mut content = make();
  content.push(b'\n');
  durable_file::create(path, &content, SECRET_MODE).map_err(failed("create", path))?;
  read_secret(path)?.ok_or_else(|| Error::Malformed { path: path.to_owned(), what: "it vanished while it was created" })
}

fn take_lock(path: &Path) -> Result<File, Error> {
  let mut file =
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(SECRET_MODE).open(path).map_err(failed("open the lock file", path))?;
  match file.try_lock() {
    Ok(()) => {}
    Err(TryLockError::WouldBlock) => {
      let mut pid = String::new();
      // The owner writes its number right after it has the lock; until then the number is not known.
      file.read_to_string(&mut pid).map_err(failed("read the lock file", path))?;
      let pid = if pid.trim().is_empty() { "unknown".to_owned() } else { pid.trim().to_owned() };
      let folder = path.parent().unwrap_or(path).to_owned();
      return Err(Error::Locked { path: folder, pid });
    }
    Err(TryLockError::Error(error)) => return Err(failed("lock", path)(error)),
  }
  let pid = format!("{}\n", std::process::id());
  file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes())).map_err(failed("write the lock file", path))?;
  Ok(file)
}

fn node_id(path: &Path) -> Result<NodeId, Error> {
  let content = match fs::read_to_string(path) {
    Ok(content) => content,
    Err(error) if error.kind() == io::ErrorKind::NotFound => {
      let id = format!("{}\n", SystemIds.new_id());
      durable_file::create(path, id.as_bytes(), 0o644).map_err(failed("create the node id", path))?;
      id
    }
    Err(error) => return Err(failed("read the node id", path)(error)),
  };
  content.trim().parse().map_err(|_| Error::Malformed { path: path.to_owned(), what: "a node id is a UUID" })
}

/// Sets the permissions of a folder of ours when they differ.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
  let now = fs::metadata(path).map_err(failed("look at", path))?.permissions().mode() & 0o7777;
  if now == mode {
    return Ok(());
  }
  fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed("set the permissions of", path))
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
  let path = path.to_owned();
  move |source| {
    if source.kind() == io::ErrorKind::StorageFull { Error::DiskFull { path } } else { Error::Io { doing, path, source } }
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn a_second_owner_is_refused_with_the_number_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let first = DataDir::open(folder.path()).unwrap();
    let error = DataDir::open(folder.path()).unwrap_err();
    assert!(matches!(&error, Error::Locked { pid, .. } if *pid == std::process::id().to_string()), "{error}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())));
    drop(first);
    DataDir::open(folder.path()).unwrap();
  }

  #[test]
  fn a_folder_stays_the_same_node() {
    let folder = tempfile::tempdir().unwrap();
    let node = DataDir::open(&folder.path().join("new")).unwrap().node();
    assert_eq!(DataDir::open(&folder.path().join("new")).unwrap().node(), node);
    assert_eq!(fs::metadata(folder.path().join("new")).unwrap().permissions().mode() & 0o777, 0o700);
  }

  #[test]
  fn a_secret_that_others_may_read_is_refused_with_the_mend() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("owner.token");
    let made = read_or_create_secret(&path, || b"abc".to_vec()).unwrap();
    assert_eq!(made, b"abc");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(read_or_create_secret(&path, || panic!("it is there")).unwrap(), b"abc");
    set_mode(&path, 0o640).unwrap();
    let error = read_secret(&path).unwrap_err();
    assert!(error.to_string().contains(&format!("chmod 600 {}", path.display())), "{error}");
  }
}
