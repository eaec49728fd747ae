//! Lists a folder: sorted, bounded, with what each thing is.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use super::open::{inside, look};
use super::{FileError, Files, WorkspacePath};

/// Entries of one listing: more would fill a prompt.
const ENTRIES_MAX: usize = 500;
/// Names that are looked at in one folder, so that a folder with millions of files does not hold anybody up.
const NAMES_MAX: usize = 10_000;

/// What something in a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
  File { bytes: u64 },
  Folder,
  Link,
  Other,
}

/// Something in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
  /// Below the folder that was listed. What can't be shown of a name is replaced.
  pub path: String,
  pub kind: Kind,
}

/// What is in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
  pub path: String,
  /// Sorted by name; what is in a folder stands behind it.
  pub entries: Vec<Entry>,
  /// There is more than this.
  pub is_cut: bool,
}

/// A listing that is being made.
struct Walk<'a> {
  files: &'a Files,
  path: &'a WorkspacePath,
  device: u64,
  listing: Listing,
}

impl Files {
  pub(super) fn list(&self, path: &WorkspacePath, depth: usize) -> Result<Listing, FileError> {
    let folder = self.folder(path, path.names())?;
    let device = look(path, &folder)?.st_dev;
    let listing = Listing { path: path.to_string(), entries: Vec::new(), is_cut: false };
    let mut walk = Walk { files: self, path, device, listing };
    walk.folder(&folder, "", depth.max(1))?;
    Ok(walk.listing)
  }
}

impl Walk<'_> {
  fn folder(&mut self, folder: &OwnedFd, above: &str, depth: usize) -> Result<(), FileError> {
    for name in self.names(folder)? {
      self.files.still_waited_for(self.path)?;
      if self.listing.entries.len() >= ENTRIES_MAX {
        self.listing.is_cut = true;
        return Ok(());
      }
      let found = match statat(folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        // Removed meanwhile.
        Err(Errno::NOENT) => continue,
        Err(errno) => return Err(FileError::of(self.path, errno)),
      };
      let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Kind::File { bytes: u64::try_from(found.st_size).unwrap_or(0) },
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Kind::Other,
      };
      let path = format!("{above}{}", shown(&name));
      self.listing.entries.push(Entry { path: path.clone(), kind });
      if kind == Kind::Folder && depth > 1 {
        self.below(folder, &name, &path, depth - 1)?;
      }
    }
    Ok(())
  }

  fn below(&mut self, folder: &OwnedFd, name: &[u8], path: &str, depth: usize) -> Result<(), FileError> {
    // A name that is no text can be listed, and nothing in it can be named.
    let Ok(name) = std::str::from_utf8(name) else { return Ok(()) };
    match inside(self.path, folder, name, self.device) {
      Ok(below) => self.folder(&below, &format!("{path}/"), depth),
      // Exchanged meanwhile, or not ours to look into.
      Err(FileError::Missing { .. } | FileError::NotPlain { .. } | FileError::NotAFolder { .. } | FileError::Io { .. }) => Ok(()),
      Err(error) => Err(error),
    }
  }

  fn names(&mut self, folder: &OwnedFd) -> Result<Vec<Vec<u8>>, FileError> {
    let failed = |errno| FileError::of(self.path, errno);
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).map_err(failed)? {
      let name = entry.map_err(failed)?.file_name().to_bytes().to_vec();
      if name == b"." || name == b".." {
        continue;
      }
      if names.len() >= NAMES_MAX {
        self.listing.is_cut = true;
        break;
      }
      names.push(name);
    }
    names.sort_unstable();
    Ok(names)
  }
}

/// A name as one line: control characters in it can't make another.
fn shown(name: &[u8]) -> String {
  String::from_utf8_lossy(name).chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
