//! Workspaces: one folder an agent, with what its tasks work on.
//!
//! `<root>/<agent>/{work,outputs,scratch}`. The agent's folder belongs to us and task code can't add to it; the three inside belong to the user as whom task code
//! runs. Files here are no facts: a file becomes one when it is delivered or attached, and then it is a blob. Invariants:
//! - Nobody but us and task code can look into a workspace.
//! - Making one is idempotent, and mends permissions. Nothing that task code put in a folder's place (a link, a file) is followed or used.
//!
//! `files` reads, writes and lists what is inside for the agent's tools; `inputs` lays files of messages into a task.

mod files;
mod inputs;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};

use pa_domain::AgentId;
use thiserror::Error;

pub use files::{EDITED_BYTES_MAX, Entry, FileContent, FileError, Kind, Listing, READ_BYTES_MAX, Stamp, WRITABLE, WorkspacePath};
pub use inputs::{INPUTS_MAX, Input, input_paths};

/// The folders of task code: what it works on, what it delivers, and what may be thrown away.
const FOLDERS: [&str; 3] = ["work", "outputs", "scratch"];

/// What can go wrong with workspaces.
#[derive(Debug, Error)]
pub enum Error {
  #[error("{path} is not a folder of the workspace: something else is in its place")]
  NotAFolder { path: PathBuf },
  #[error("the disk is full: could not {doing} {path}")]
  DiskFull { doing: &'static str, path: PathBuf },
  #[error("could not {doing} {path}")]
  Io {
    doing: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
  },
}

/// The user as whom task code runs in the computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskUser {
  pub uid: u32,
  pub gid: u32,
}

impl TaskUser {
  /// The computer's user.
  pub const COMPUTER: Self = Self { uid: 1_000, gid: 1_000 };
}

/// The workspaces of all agents.
#[derive(Clone, Debug)]
pub struct Workspaces {
  root: PathBuf,
  /// `None` when we are not root, and so can't give folders away: then they stay ours.
  task_user: Option<TaskUser>,
}

/// One agent's workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
  pub path: PathBuf,
  pub work: PathBuf,
  pub outputs: PathBuf,
  pub scratch: PathBuf,
}

impl Workspaces {
  /// Workspaces under `root`; with a task user the folders of task code are given to it, which only root can.
  pub fn new(root: PathBuf, task_user: Option<TaskUser>) -> Self {
    Self { root, task_user }
  }

  /// Where an agent's workspace lies, whether it was made or not.
  pub fn of(&self, agent: AgentId) -> Workspace {
    let path = self.root.join(agent.0.simple().to_string());
    let [work, outputs, scratch] = FOLDERS.map(|name| path.join(name));
    Workspace { path, work, outputs, scratch }
  }

  /// Makes an agent's workspace, or mends what is there.
  pub async fn create(&self, agent: AgentId) -> Result<Workspace, Error> {
    let (this, workspace) = (self.clone(), self.of(agent));
    blocking(move || this.make(workspace)).await
  }

  /// Removes an agent's workspace with everything in it; may be done again.
  pub async fn remove(&self, agent: AgentId) -> Result<(), Error> {
    let path = self.of(agent).path;
    // Links are removed, not followed.
    blocking(move || match fs::remove_dir_all(&path) {
      Ok(()) => Ok(()),
      Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
      Err(error) => Err(failed("remove", &path)(error)),
    })
    .await
  }

  fn make(&self, workspace: Workspace) -> Result<Workspace, Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(&self.root).map_err(failed("create", &self.root))?;
    // Task code passes its agent's folder by the group, and can't write to it.
    let group = self.task_user.map(|user| user.gid);
    folder(&workspace.path, if group.is_some() { 0o750 } else { 0o700 }, (None, group))?;
    for path in [&workspace.work, &workspace.outputs, &workspace.scratch] {
      folder(path, 0o700, (self.task_user.map(|user| user.uid), group))?;
    }
    Ok(workspace)
  }
}

/// Makes a folder with these permissions and this owner, or mends the one that is there.
fn folder(path: &Path, mode: u32, (uid, gid): (Option<u32>, Option<u32>)) -> Result<(), Error> {
  match DirBuilder::new().mode(mode).create(path) {
    Ok(()) => {}
    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
    Err(error) => return Err(failed("create", path)(error)),
  }
  let found = fs::symlink_metadata(path).map_err(failed("look at", path))?;
  if !found.is_dir() {
    return Err(Error::NotAFolder { path: path.to_owned() });
  }
  // The folder above is not writable for task code, so what was looked at just now is what is changed here.
  if found.permissions().mode() & 0o7777 != mode {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed("set the permissions of", path))?;
  }
  if uid.is_some() || gid.is_some() {
    lchown(path, uid, gid).map_err(failed("give away", path))?;
  }
  Ok(())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
  tokio::task::spawn_blocking(work).await.expect("file work does not panic and is not cancelled")
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
  let path = path.to_owned();
  move |source| {
    if source.kind() == io::ErrorKind::StorageFull { Error::DiskFull { doing, path } } else { Error::Io { doing, path, source } }
  }
}

#[cfg(test)]
mod tests {
  use std::os::unix::fs::{MetadataExt as _, symlink};

  use uuid::Uuid;

  use super::*;

  const AGENT: AgentId = AgentId(Uuid::from_u128(5));

  fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
  }

  #[tokio::test]
  async fn a_workspace_is_made_once_mended_and_closed_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::new(folder.path().join("workspaces"), None);
    let workspace = workspaces.create(AGENT).await.unwrap();
    fs::write(workspace.work.join("kept"), "x").unwrap();
    fs::set_permissions(&workspace.work, fs::Permissions::from_mode(0o777)).unwrap();
    fs::remove_dir(&workspace.scratch).unwrap();
    assert_eq!(workspaces.create(AGENT).await.unwrap(), workspace);
    assert_eq!(fs::read_to_string(workspace.work.join("kept")).unwrap(), "x");
    for path in [&folder.path().join("workspaces"), &workspace.path, &workspace.work, &workspace.outputs, &workspace.scratch] {
      assert_eq!(mode(path), 0o700, "{}", path.display());
    }
  }

  #[tokio::test]
  async fn a_link_in_the_place_of_a_folder_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::create_dir(&target).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
    let workspaces = Workspaces::new(folder.path().join("workspaces"), None);
    let workspace = workspaces.create(AGENT).await.unwrap();
    fs::remove_dir(&workspace.work).unwrap();
    symlink(&target, &workspace.work).unwrap();
    assert!(matches!(workspaces.create(AGENT).await.unwrap_err(), Error::NotAFolder { path } if path == workspace.work));
    assert_eq!(mode(&target), 0o755);
    fs::write(target.join("kept"), "x").unwrap();
    workspaces.remove(AGENT).await.unwrap();
    workspaces.remove(AGENT).await.unwrap();
    assert!(!workspace.path.exists() && target.join("kept").exists());
  }

  #[tokio::test]
  async fn task_code_owns_its_folders_and_not_the_one_above() {
    let folder = tempfile::tempdir().unwrap();
    let ours = fs::metadata(folder.path()).unwrap();
    // Without root only what is ours anyway can be given away.
    let user = if ours.uid() == 0 { TaskUser::COMPUTER } else { TaskUser { uid: ours.uid(), gid: ours.gid() } };
    let workspace = Workspaces::new(folder.path().join("workspaces"), Some(user)).create(AGENT).await.unwrap();
    let above = fs::metadata(&workspace.path).unwrap();
    assert_eq!((above.uid(), above.gid(), mode(&workspace.path)), (ours.uid(), user.gid, 0o750));
    for path in [&workspace.work, &workspace.outputs, &workspace.scratch] {
      let metadata = fs::metadata(path).unwrap();
      assert_eq!((metadata.uid(), metadata.gid(), mode(path)), (user.uid, user.gid, 0o700));
    }
  }
}
