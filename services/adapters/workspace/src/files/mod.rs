//! The files of a workspace, for the agent's tools: read, written, listed, while task code changes them as it likes.
//!
//! A path is opened folder by folder from the agent's own, each by the open one above it. Invariants:
//! - No link is followed, anywhere on the way; `..` is no name. What was opened is looked at before it is used: only a plain file, with one name, on the same file
//!   system, is read or replaced. So nothing that is exchanged meanwhile leads out of the workspace.
//! - A file is replaced whole, by rename, and only inside the folders of task code, to whom it then belongs.
//! - Who no longer waits for a change does not get it: it is looked at directly before the rename.
//!
//! `open` walks, `path` is what a path may be, `read`, `write` and `list` are what is done.

mod list;
mod open;
mod path;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use pa_domain::AgentId;
use rustix::io::Errno;
use thiserror::Error;

pub use list::{Entry, Kind, Listing};
pub use path::WorkspacePath;
pub use read::Stamp;

use crate::{TaskUser, Workspaces};

/// Bytes of a file that is read as a whole: as large as a file that is handed over.
pub const READ_BYTES_MAX: u64 = 20 * 1024 * 1024;
/// Bytes of a file that is edited: it is held in memory twice.
pub const EDITED_BYTES_MAX: u64 = 5 * 1024 * 1024;
/// The folders in which files are written.
pub const WRITABLE: [&str; 3] = ["work", "outputs", "scratch"];

/// Why a file can't be used, in words for whoever named it.
#[derive(Debug, Error)]
pub enum FileError {
  #[error("the path {path:?} can't be used: {why}; give a path below /workspace, without ..")]
  Path { path: String, why: &'static str },
  #[error("there is no {path}")]
  Missing { path: String },
  #[error("{path} is {what}, and is not followed or opened")]
  NotPlain { path: String, what: &'static str },
  #[error("{path} is a folder")]
  Folder { path: String },
  #[error("{path} is not a folder")]
  NotAFolder { path: String },
  #[error("{path} has {bytes} bytes; at most {bytes_max} can be taken")]
  TooLarge { path: String, bytes: u64, bytes_max: u64 },
  #[error("{path} changed meanwhile; look at it again")]
  Changed { path: String },
  #[error("{path} can't be written: files are written below /workspace/work, /workspace/outputs and /workspace/scratch only")]
  NotWritable { path: String },
  #[error("the disk is full: {path} was not written")]
  DiskFull { path: String },
  #[error("{path}: nobody waits for this any more")]
  GivenUp { path: String },
  #[error("{path} could not be used")]
  Io {
    path: String,
    #[source]
    source: io::Error,
  },
}

impl FileError {
  /// A stable code of it.
  pub fn code(&self) -> &'static str {
    match self {
      Self::Path { .. } => "PATH_INVALID",
      Self::Missing { .. } => "FILE_NOT_FOUND",
      Self::NotPlain { .. } => "FILE_NOT_PLAIN",
      Self::Folder { .. } => "FILE_IS_FOLDER",
      Self::NotAFolder { .. } => "NOT_A_FOLDER",
      Self::TooLarge { .. } => "FILE_TOO_LARGE",
      Self::Changed { .. } => "FILE_CHANGED",
      Self::NotWritable { .. } => "FILE_NOT_WRITABLE",
      Self::DiskFull { .. } => "DISK_FULL",
      Self::GivenUp { .. } => "GIVEN_UP",
      Self::Io { .. } => "FILE_UNAVAILABLE",
    }
  }

  /// What the system said of a path.
  fn of(path: &WorkspacePath, errno: Errno) -> Self {
    let path = path.to_string();
    match errno {
      Errno::NOENT => Self::Missing { path },
      Errno::LOOP | Errno::MLINK => Self::NotPlain { path, what: "a link, or behind one" },
      Errno::NOTDIR => Self::NotAFolder { path },
      Errno::ISDIR => Self::Folder { path },
      Errno::NXIO | Errno::NODEV => Self::NotPlain { path, what: "no plain file" },
      Errno::NOSPC | Errno::DQUOT => Self::DiskFull { path },
      errno => Self::Io { path, source: errno.into() },
    }
  }
}

/// A whole file.
#[derive(Clone, Debug)]
pub struct FileContent {
  /// The whole path, as task code sees it.
  pub path: String,
  pub bytes: Bytes,
  pub stamp: Stamp,
}

/// Says that nobody waits any more.
#[derive(Clone, Default)]
struct Gone(Arc<AtomicBool>);

impl Gone {
  fn is_so(&self) -> bool {
    self.0.load(Ordering::SeqCst)
  }
}

/// Says it when it is dropped.
struct Waiting(Gone);

impl Drop for Waiting {
  fn drop(&mut self) {
    self.0.0.store(true, Ordering::SeqCst);
  }
}

/// The files of one agent.
struct Files {
  root: std::path::PathBuf,
  task_user: Option<TaskUser>,
  gone: Gone,
}

impl Workspaces {
  /// Reads a plain file whole.
  ///
  /// # Errors
  /// [`FileError`]; also when it was written to meanwhile.
  pub async fn read(&self, agent: AgentId, path: &str, bytes_max: u64) -> Result<FileContent, FileError> {
    let path = WorkspacePath::parse(path)?;
    self.with(agent, move |files| files.read(&path, bytes_max)).await
  }

  /// Writes a file whole, with the folders above it; answers with its path. With a stamp only if it is still the file that was read then. `id` names the half-written
  /// file: the same for every try of one thing.
  ///
  /// # Errors
  /// [`FileError`]; the file is then as it was.
  pub async fn write(&self, agent: AgentId, path: &str, content: Bytes, expected: Option<Stamp>, id: &str) -> Result<String, FileError> {
    let (path, id) = (WorkspacePath::parse(path)?, id.to_owned());
    self.with(agent, move |files| files.write(&path, &content, expected, &id)).await
  }

  /// Lists a folder, sorted, down to `depth` folders inside each other.
  ///
  /// # Errors
  /// [`FileError`].
  pub async fn list(&self, agent: AgentId, path: &str, depth: usize) -> Result<Listing, FileError> {
    let path = WorkspacePath::parse(path)?;
    self.with(agent, move |files| files.list(&path, depth)).await
  }

  /// Whether something has this name, whatever it is.
  ///
  /// # Errors
  /// [`FileError`].
  pub(crate) async fn exists(&self, agent: AgentId, path: &str) -> Result<bool, FileError> {
    let path = WorkspacePath::parse(path)?;
    self.with(agent, move |files| files.exists(&path)).await
  }

  /// Does work with files that is given up when the caller is dropped.
  async fn with<T: Send + 'static>(&self, agent: AgentId, work: impl FnOnce(&Files) -> Result<T, FileError> + Send + 'static) -> Result<T, FileError> {
    let waiting = Waiting(Gone::default());
    let files = Files { root: self.of(agent).path, task_user: self.task_user, gone: waiting.0.clone() };
    let done = tokio::task::spawn_blocking(move || work(&files)).await.expect("file work does not panic and is not cancelled");
    drop(waiting);
    done
  }
}

impl Files {
  fn still_waited_for(&self, path: &WorkspacePath) -> Result<(), FileError> {
    if self.gone.is_so() { Err(FileError::GivenUp { path: path.to_string() }) } else { Ok(()) }
  }
}
