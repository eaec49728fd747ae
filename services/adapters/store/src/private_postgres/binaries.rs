//! Finds the server's programs where Debian puts them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Error, failed};

const INSTALLED_IN: &str = "/usr/lib/postgresql";

/// The folder with the programs of the version that made the cluster, or of the newest for a new cluster.
pub(super) fn find(data: &Path) -> Result<PathBuf, Error> {
  find_in(Path::new(INSTALLED_IN), data)
}

fn find_in(installed_in: &Path, data: &Path) -> Result<PathBuf, Error> {
  let installed = installed(installed_in)?;
  let newest = installed.last().ok_or(Error::NotInstalled)?;
  let Some(version) = made_by(data)? else { return Ok(newest.1.clone()) };
  let fitting = installed.iter().find(|(installed, _)| *installed == version);
  fitting.map(|(_, folder)| folder.clone()).ok_or_else(|| Error::VersionMissing { version, path: data.to_owned() })
}

/// Installed versions, oldest first.
fn installed(installed_in: &Path) -> Result<Vec<(u32, PathBuf)>, Error> {
  let entries = match fs::read_dir(installed_in) {
    Ok(entries) => entries,
    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
    Err(error) => return Err(failed("list", installed_in)(error)),
  };
  let mut found = Vec::new();
  for entry in entries {
    let entry = entry.map_err(failed("list", installed_in))?;
    let version = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
    let folder = entry.path().join("bin");
    // A client-only package has the folder without the server.
    if let Some(version) = version
      && folder.join("postgres").is_file()
      && folder.join("initdb").is_file()
    {
      found.push((version, folder));
    }
  }
  found.sort();
  Ok(found)
}

/// The major version that made a cluster; `None` when there is no cluster.
fn made_by(data: &Path) -> Result<Option<u32>, Error> {
  let path = data.join("PG_VERSION");
  match fs::read_to_string(&path) {
    Ok(text) => Ok(text.trim().parse().ok()),
    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
    Err(error) => Err(failed("read", &path)(error)),
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  fn install(folder: &Path, version: &str) {
    let bin = folder.join(version).join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("postgres"), "").unwrap();
    fs::write(bin.join("initdb"), "").unwrap();
  }

  #[test]
  fn the_newest_serves_a_new_cluster_and_its_own_an_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    assert!(matches!(find_in(folder.path(), &data).unwrap_err(), Error::NotInstalled));
    for version in ["9", "15", "17", "notes"] {
      install(folder.path(), version);
    }
    fs::create_dir_all(folder.path().join("18/bin")).unwrap();
    assert!(find_in(folder.path(), &data).unwrap().ends_with("17/bin"));
    fs::create_dir(&data).unwrap();
    fs::write(data.join("PG_VERSION"), "15\n").unwrap();
    assert!(find_in(folder.path(), &data).unwrap().ends_with("15/bin"));
    fs::write(data.join("PG_VERSION"), "16\n").unwrap();
    assert!(find_in(folder.path(), &data).unwrap_err().to_string().contains("install postgresql-16"));
  }
}
