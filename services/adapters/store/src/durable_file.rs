//! Small files that survive a power loss whole: temp, fsync, rename, fsync of the folder.
//!
//! A reader sees the old content or the new, never a part; when a call has returned, the new content stays.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::clock::{Ids as _, SystemIds};

/// Replaces `path` by `content` with the permissions `mode`.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
  let temp = temp_beside(path);
  let written = write_temp(&temp, content, mode).and_then(|()| fs::rename(&temp, path)).and_then(|()| sync_parent(path));
  if written.is_err() {
    remove_temp(&temp);
  }
  written
}

/// Creates `path` with `content`; says `false`, and changes nothing, when it is there already. Two callers at once: exactly one creates it.
pub fn create(path: &Path, content: &[u8], mode: u32) -> io::Result<bool> {
  let temp = temp_beside(path);
  // A hard link, because a rename would replace what another process created meanwhile.
  let created = write_temp(&temp, content, mode).and_then(|()| match fs::hard_link(&temp, path) {
    Ok(()) => Ok(true),
    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
    Err(error) => Err(error),
  });
  remove_temp(&temp);
  let created = created?;
  sync_parent(path)?;
  Ok(created)
}

/// Makes the entries of a folder durable.
pub fn sync_dir(path: &Path) -> io::Result<()> {
  File::open(path)?.sync_all()
}

/// Makes the entry of `path` in its folder durable.
pub fn sync_parent(path: &Path) -> io::Result<()> {
  match path.parent() {
    Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent),
    _ => sync_dir(Path::new(".")),
  }
}

fn temp_beside(path: &Path) -> PathBuf {
  let mut name = std::ffi::OsString::from(".");
  name.push(path.file_name().unwrap_or_default());
  name.push(format!(".{}.tmp", SystemIds.new_id().simple()));
  path.with_file_name(name)
}

fn write_temp(temp: &Path, content: &[u8], mode: u32) -> io::Result<()> {
  let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(temp)?;
  file.write_all(content)?;
  file.sync_all()
}

/// A temp file that can't be removed is only litter: the operation's own outcome is what counts.
fn remove_temp(temp: &Path) {
  if let Err(error) = fs::remove_file(temp)
    && error.kind() != io::ErrorKind::NotFound
  {
    tracing::warn!(path = %temp.display(), %error, "temporary file left behind");
  }
}

#[cfg(test)]
mod tests {
  use std::os::unix::fs::PermissionsExt as _;

  use super::*;

  #[test]
  fn a_file_is_replaced_whole_with_its_mode_and_no_litter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    write(&path, b"one", 0o600).unwrap();
    write(&path, b"two", 0o640).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
  }

  #[test]
  fn of_many_creators_exactly_one_wins_and_all_read_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let winners: usize = std::thread::scope(|scope| {
      let threads: Vec<_> = (0..16_u8)
        .map(|n| {
          let path = &path;
          scope.spawn(move || create(path, &[n; 32], 0o600).unwrap())
        })
        .collect();
      threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!(winners, 1);
    let content = fs::read(&path).unwrap();
    assert!(content.len() == 32 && content.iter().all(|byte| *byte == content[0]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
  }

  #[test]
  fn a_missing_folder_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(write(&folder.path().join("no/x"), b"one", 0o600).unwrap_err().kind(), io::ErrorKind::NotFound);
  }
}
