//! Writes a file whole: beside it, flushed, then renamed over it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fchmod, fsync, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::{FileError, Files, Stamp, WRITABLE, WorkspacePath};

/// Permissions of a new file.
const NEW: u32 = 0o644;
/// What of a replaced file's permissions is kept.
const KEPT: u32 = 0o777;
const HALF_WRITTEN: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Files {
  pub(super) fn write(&self, path: &WorkspacePath, content: &[u8], expected: Option<Stamp>, id: &str) -> Result<String, FileError> {
    let Some((names, name)) = path.split().filter(|(names, _)| names.first().is_some_and(|first| WRITABLE.contains(&first.as_str()))) else {
      return Err(FileError::NotWritable { path: path.to_string() });
    };
    let folder = self.folder_made(path, names)?;
    let mode = check(path, &folder, name, expected)?;
    let half = format!(".writing-{id}");
    // Left behind by an earlier try that was cut off.
    remove(path, &folder, &half)?;
    let written = self.half_written(path, &folder, &half, content, mode).and_then(|()| {
      self.still_waited_for(path)?;
      check(path, &folder, name, expected)?;
      renameat(&folder, half.as_str(), &folder, name).map_err(|errno| FileError::of(path, errno))
    });
    if let Err(error) = written {
      remove(path, &folder, &half)?;
      return Err(error);
    }
    fsync(&folder).map_err(|errno| FileError::of(path, errno))?;
    Ok(path.to_string())
  }

  fn half_written(&self, path: &WorkspacePath, folder: &OwnedFd, half: &str, content: &[u8], mode: u32) -> Result<(), FileError> {
    let failed = |errno| FileError::of(path, errno);
    let file = openat(folder, half, HALF_WRITTEN, Mode::from_raw_mode(0o600)).map_err(failed)?;
    let mut file = File::from(file);
    file.write_all(content).map_err(|source| match source.kind() {
      io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FileError::DiskFull { path: path.to_string() },
      _ => FileError::Io { path: path.to_string(), source },
    })?;
    fchmod(&file, Mode::from_raw_mode(mode)).map_err(failed)?;
    self.give_away(path, &file)?;
    fsync(&file).map_err(failed)
  }
}

/// Looks at what would be replaced; answers with the permissions of the new file.
fn check(path: &WorkspacePath, folder: impl AsFd, name: &str, expected: Option<Stamp>) -> Result<u32, FileError> {
  let found: Option<Stat> = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
    Ok(found) => Some(found),
    Err(Errno::NOENT) => None,
    Err(errno) => return Err(FileError::of(path, errno)),
  };
  if let Some(expected) = expected
    && found.as_ref().map(Stamp::of) != Some(expected)
  {
    return Err(FileError::Changed { path: path.to_string() });
  }
  match found {
    None => Ok(NEW),
    Some(found) => match FileType::from_raw_mode(found.st_mode) {
      FileType::RegularFile => Ok(found.st_mode & KEPT),
      FileType::Directory => Err(FileError::Folder { path: path.to_string() }),
      FileType::Symlink => Err(FileError::NotPlain { path: path.to_string(), what: "a link" }),
      FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
        Err(FileError::NotPlain { path: path.to_string(), what: "no plain file" })
      }
    },
  }
}

fn remove(path: &WorkspacePath, folder: impl AsFd, name: &str) -> Result<(), FileError> {
  match unlinkat(folder, name, AtFlags::empty()) {
    Ok(()) | Err(Errno::NOENT) => Ok(()),
    Err(errno) => Err(FileError::of(path, errno)),
  }
}
