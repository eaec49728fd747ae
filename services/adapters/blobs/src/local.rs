//! What only a local folder needs: its permissions, flushing, and the half-written files that a crash leaves.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use object_store::local::LocalFileSystem;

use crate::Error;

/// Opens a folder as an object store that flushes what it writes.
pub(crate) fn open(folder: &Path) -> Result<LocalFileSystem, Error> {
  for name in ["blobs", "staging"] {
    let path = folder.join(name);
    // For the owner alone: staged bytes are not sealed yet.
    DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed("create", &path))?;
  }
  let store = LocalFileSystem::new_with_prefix(folder).map_err(crate::error::writing("open the folder of files"))?;
  Ok(store.with_fsync(true))
}

/// Removes files that a crashed process was writing: the store gives them the name of the goal with `#` and a number, and does not list them.
pub(crate) async fn remove_half_written(folder: &Path, before_ms: i64) -> Result<u64, Error> {
  let folder = folder.to_owned();
  blocking(move || {
    let mut removed = remove_in(&folder.join("staging"), before_ms)?;
    let blobs = folder.join("blobs");
    for entry in fs::read_dir(&blobs).map_err(failed("list", &blobs))? {
      let entry = entry.map_err(failed("list", &blobs))?;
      removed += remove_in(&entry.path(), before_ms)?;
    }
    Ok(removed)
  })
  .await
}

/// Removes an agent's folder, which is empty by now.
pub(crate) async fn remove_folder(path: &Path) -> Result<(), Error> {
  let path = path.to_owned();
  blocking(move || match fs::remove_dir_all(&path) {
    Ok(()) => Ok(()),
    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
    Err(error) => Err(failed("remove", &path)(error)),
  })
  .await
}

fn remove_in(folder: &Path, before_ms: i64) -> Result<u64, Error> {
  let entries = match fs::read_dir(folder) {
    Ok(entries) => entries,
    // An agent's folder may go at any moment.
    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
    Err(error) => return Err(failed("list", folder)(error)),
  };
  let mut removed = 0;
  for entry in entries {
    let entry = entry.map_err(failed("list", folder))?;
    let half_written = entry.file_name().to_string_lossy().rsplit_once('#').is_some_and(|(_, end)| end.bytes().all(|byte| byte.is_ascii_digit()));
    let old = half_written && entry.metadata().is_ok_and(|metadata| metadata.mtime() * 1_000 < before_ms);
    if old {
      fs::remove_file(entry.path()).map_err(failed("remove", &entry.path()))?;
      removed += 1;
    }
  }
  Ok(removed)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
  tokio::task::spawn_blocking(work).await.expect("file work does not panic and is not cancelled")
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
  let path = path.display().to_string();
  move |source| Error::Folder { doing, path, source }
}
