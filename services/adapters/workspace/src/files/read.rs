//! Reads a file whole.

use std::fs::File;
use std::io::Read as _;

use bytes::Bytes;
use rustix::fs::Stat;

use super::open::look;
use super::{FileContent, FileError, Files, WorkspacePath};

/// Bytes of one read; between two it is looked whether somebody still waits.
const PIECE_BYTES: usize = 256 * 1024;

/// What a file was when it was read: another file, or the same one written to, has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
  device: u64,
  inode: u64,
  size: i64,
  modified: (i64, i64),
  changed: (i64, i64),
}

impl Stamp {
  pub(super) fn of(found: &Stat) -> Self {
    let nanos = |nanos| i64::try_from(nanos).unwrap_or(i64::MAX);
    Self {
      device: found.st_dev,
      inode: found.st_ino,
      size: found.st_size,
      modified: (found.st_mtime, nanos(found.st_mtime_nsec)),
      changed: (found.st_ctime, nanos(found.st_ctime_nsec)),
    }
  }
}

impl Files {
  pub(super) fn read(&self, path: &WorkspacePath, bytes_max: u64) -> Result<FileContent, FileError> {
    let (file, found) = self.file(path)?;
    let too_large = |bytes| FileError::TooLarge { path: path.to_string(), bytes, bytes_max };
    let size = u64::try_from(found.st_size).unwrap_or(0);
    if size > bytes_max {
      return Err(too_large(size));
    }
    let mut file = File::from(file);
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    loop {
      self.still_waited_for(path)?;
      let read = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut content);
      let read = read.map_err(|source| FileError::Io { path: path.to_string(), source })?;
      if content.len() as u64 > bytes_max {
        return Err(too_large(content.len() as u64));
      }
      if read == 0 {
        break;
      }
    }
    let stamp = Stamp::of(&found);
    // Written to while it was read: what was read is neither the one nor the other.
    if Stamp::of(&look(path, &file)?) != stamp || content.len() as u64 != size {
      return Err(FileError::Changed { path: path.to_string() });
    }
    Ok(FileContent { path: path.to_string(), bytes: Bytes::from(content), stamp })
  }
}
