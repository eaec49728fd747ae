//! Opens a path from the agent's folder, name by name.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, mkdirat, open, openat, statat};
use rustix::io::Errno;

use super::{FileError, Files, WorkspacePath};

/// A folder on the way: looked through, never followed as a link.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A file to read. `NONBLOCK`: a pipe in its place is not waited for.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

impl Files {
  /// Opens the folder of these names.
  pub(super) fn folder(&self, path: &WorkspacePath, names: &[String]) -> Result<OwnedFd, FileError> {
    let root = open(&self.root, FOLDER, Mode::empty()).map_err(|errno| FileError::of(path, errno))?;
    let device = look(path, &root)?.st_dev;
    names.iter().try_fold(root, |above, name| inside(path, &above, name, device))
  }

  /// Opens the folder of these names and makes those that are missing, for task code.
  pub(super) fn folder_made(&self, path: &WorkspacePath, names: &[String]) -> Result<OwnedFd, FileError> {
    let root = open(&self.root, FOLDER, Mode::empty()).map_err(|errno| FileError::of(path, errno))?;
    let device = look(path, &root)?.st_dev;
    names.iter().try_fold(root, |above, name| {
      let made = match mkdirat(&above, name.as_str(), Mode::from_raw_mode(0o755)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(FileError::of(path, errno)),
      };
      let folder = inside(path, &above, name, device)?;
      if made {
        self.give_away(path, &folder)?;
      }
      Ok(folder)
    })
  }

  /// Whether something has this name.
  pub(super) fn exists(&self, path: &WorkspacePath) -> Result<bool, FileError> {
    let Some((folder, name)) = path.split() else { return Ok(true) };
    match self.folder(path, folder) {
      Ok(folder) => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(FileError::of(path, errno)),
      },
      Err(FileError::Missing { .. }) => Ok(false),
      Err(error) => Err(error),
    }
  }

  /// Opens a plain file.
  pub(super) fn file(&self, path: &WorkspacePath) -> Result<(OwnedFd, Stat), FileError> {
    let Some((folder, name)) = path.split() else { return Err(FileError::Folder { path: path.to_string() }) };
    let folder = self.folder(path, folder)?;
    let file = openat(&folder, name, FILE, Mode::empty()).map_err(|errno| FileError::of(path, errno))?;
    let found = look(path, &file)?;
    plain(path, &found)?;
    if found.st_dev != look(path, &folder)?.st_dev {
      return Err(FileError::NotPlain { path: path.to_string(), what: "on another file system" });
    }
    Ok((file, found))
  }

  /// Gives what we made to the user as whom task code runs. By what is open, so it can be nothing else.
  pub(super) fn give_away(&self, path: &WorkspacePath, made: impl AsFd) -> Result<(), FileError> {
    let Some(user) = self.task_user else { return Ok(()) };
    let (uid, gid) = (rustix::fs::Uid::from_raw(user.uid), rustix::fs::Gid::from_raw(user.gid));
    rustix::fs::fchown(made, Some(uid), Some(gid)).map_err(|errno| FileError::of(path, errno))
  }
}

/// Opens the folder of a name in an open one, on the same file system.
pub(super) fn inside(path: &WorkspacePath, above: impl AsFd, name: &str, device: u64) -> Result<OwnedFd, FileError> {
  let folder = openat(above, name, FOLDER, Mode::empty()).map_err(|errno| FileError::of(path, errno))?;
  if look(path, &folder)?.st_dev == device { Ok(folder) } else { Err(FileError::NotPlain { path: path.to_string(), what: "on another file system" }) }
}

/// What something open is.
pub(super) fn look(path: &WorkspacePath, open: impl AsFd) -> Result<Stat, FileError> {
  fstat(open).map_err(|errno| FileError::of(path, errno))
}

/// Only a plain file with one name passes: with a second one it may be somebody else's.
pub(super) fn plain(path: &WorkspacePath, found: &Stat) -> Result<(), FileError> {
  let not_plain = |what| Err(FileError::NotPlain { path: path.to_string(), what });
  match FileType::from_raw_mode(found.st_mode) {
    FileType::RegularFile if found.st_nlink <= 1 => Ok(()),
    FileType::RegularFile => not_plain("a file with more than one name (a hard link)"),
    FileType::Directory => Err(FileError::Folder { path: path.to_string() }),
    FileType::Symlink => not_plain("a link"),
    FileType::Fifo => not_plain("a pipe"),
    FileType::Socket => not_plain("a socket"),
    FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => not_plain("a device"),
  }
}
