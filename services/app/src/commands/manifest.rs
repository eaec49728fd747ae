//! What a backup says of itself: written last, so a folder without it is none.
//!
//! ```text
//! manifest.json                 this: the cut, what the log holds, every file with its size and SHA-256
//! log/events-00000.log …        the facts, and the inputs that are still kept, sealed as they are in the log
//! rows/agent_keys.jsonl …       wrapped keys, sealed secrets, hashes of credentials
//! blobs/<agent>/<name>          files, sealed
//! ```

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use aws_lc_rs::digest;
use pa_eventlog::moving::{Archive, Ends};
use pa_eventlog::{Identity, Partition, Position};
use pa_store::durable_file;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The one format that there is.
const FORMAT: u32 = 1;
const FILE: &str = "manifest.json";
/// The folder of the log's files.
pub(super) const LOG: &str = "log";
/// The folder of the control tables' rows.
pub(super) const ROWS: &str = "rows";
/// The folder of the blobs.
pub(super) const BLOBS: &str = "blobs";
/// Files that are named when they are not what they were; the rest is counted.
const NAMED_MAX: usize = 10;

/// A backup.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
  format: u32,
  /// This backup's own id.
  pub(super) id: Uuid,
  /// The program that made it.
  pub(super) version: String,
  pub(super) made_at_ms: i64,
  pub(super) log: Log,
  pub(super) agents: usize,
  pub(super) events: u64,
  /// Over all agents' events, as `pa log copy` counts it.
  pub(super) hash: String,
  pub(super) files: Vec<Entry>,
}

/// The log that was backed up, and the cut.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Log {
  pub(super) kind: String,
  pub(super) id: Uuid,
  pub(super) sealed: bool,
  /// Where each partition's facts end.
  pub(super) events_end: Vec<Position>,
  /// Where each partition's inputs end.
  pub(super) inputs_end: Vec<Position>,
}

/// A file of the backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
  /// From the backup's folder on.
  pub(super) path: String,
  pub(super) bytes: u64,
  pub(super) sha256: String,
}

impl Manifest {
  pub(super) fn new(id: Uuid, made_at_ms: i64, log: Log) -> Self {
    Self { format: FORMAT, id, version: crate::VERSION.to_owned(), made_at_ms, log, agents: 0, events: 0, hash: String::new(), files: Vec::new() }
  }

  /// Reads it.
  pub(super) fn read(dir: &Path) -> Result<Self> {
    let path = dir.join(FILE);
    let text = match fs::read_to_string(&path) {
      Ok(text) => text,
      Err(error) if error.kind() == ErrorKind::NotFound => {
        bail!("{} is no whole backup: it has no {FILE}, which is written last; take one that was finished", dir.display())
      }
      Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
    };
    let manifest: Self = serde_json::from_str(&text).with_context(|| format!("{} is not what `pa backup` wrote", path.display()))?;
    ensure!(manifest.format == FORMAT, "the backup has format {}, and this version of pa knows {FORMAT}: take the version that made it", manifest.format);
    Ok(manifest)
  }

  /// Writes it, as the last of all.
  pub(super) fn write(&self, dir: &Path) -> Result<()> {
    let text = serde_json::to_vec_pretty(self).context("write down what the backup holds")?;
    let path = dir.join(FILE);
    let created = durable_file::create(&path, &text, 0o600).with_context(|| format!("write {}", path.display()))?;
    ensure!(created, "{} is there already", path.display());
    Ok(())
  }

  /// Reads every file and compares it; those that are not what they were are named.
  pub(super) fn check(&self, dir: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    for entry in &self.files {
      match Entry::of(dir, &entry.path) {
        Ok(found) if found == *entry => {}
        Ok(_) => wrong.push(format!("{} was changed", entry.path)),
        Err(error) => wrong.push(format!("{error:#}")),
      }
    }
    let more = wrong.len().saturating_sub(NAMED_MAX);
    wrong.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    ensure!(wrong.is_empty(), "the backup is damaged, nothing was written: {}{more}", wrong.join("; "));
    Ok(())
  }

  pub(super) fn ends(&self) -> Ends {
    Ends { events: self.log.events_end.clone(), inputs: self.log.inputs_end.clone() }
  }

  /// The log in the backup.
  pub(super) fn archive(&self, dir: &Path) -> Result<Archive> {
    let partitions = Partition::try_from(self.log.events_end.len()).context("the manifest's partitions")?;
    let identity = Identity { kind: self.log.kind.clone(), id: self.log.id, partitions, sealed: self.log.sealed };
    Ok(Archive::new(&dir.join(LOG), identity, self.ends()))
  }
}

impl Entry {
  /// A file as it lies there.
  pub(super) fn of(dir: &Path, path: &str) -> Result<Self> {
    let relative = PathBuf::from(path);
    ensure!(relative.components().all(|part| matches!(part, Component::Normal(_))), "{path} is no file of a backup");
    let mut file = File::open(dir.join(relative)).with_context(|| format!("{path} can't be opened"))?;
    let (mut context, mut bytes, mut buffer) = (digest::Context::new(&digest::SHA256), 0, vec![0; 256 * 1024]);
    loop {
      let read = file.read(&mut buffer).with_context(|| format!("{path} can't be read"))?;
      if read == 0 {
        break;
      }
      context.update(&buffer[..read]);
      bytes += read as u64;
    }
    Ok(Self { path: path.to_owned(), bytes, sha256: hex::encode(context.finish()) })
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  fn manifest() -> Manifest {
    let log = Log { kind: "postgres".to_owned(), id: Uuid::from_u128(2), sealed: true, events_end: vec![1], inputs_end: vec![1] };
    Manifest::new(Uuid::from_u128(1), 5, log)
  }

  #[test]
  fn a_folder_without_its_manifest_is_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Manifest::read(folder.path()).unwrap_err().to_string().contains("no whole backup"));
    let written = manifest();
    written.write(folder.path()).unwrap();
    assert_eq!(Manifest::read(folder.path()).unwrap().id, written.id);
    assert!(written.write(folder.path()).is_err(), "never over another");
  }

  #[test]
  fn a_file_that_is_gone_changed_or_outside_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one"), b"content").unwrap();
    let mut manifest = manifest();
    manifest.files.push(Entry::of(folder.path(), "one").unwrap());
    manifest.check(folder.path()).unwrap();
    fs::write(folder.path().join("one"), b"cOntent").unwrap();
    assert!(manifest.check(folder.path()).unwrap_err().to_string().contains("one was changed"));
    for (path, said) in [("two", "two can't be opened"), ("../one", "no file of a backup"), ("/etc/passwd", "no file of a backup")] {
      manifest.files[0].path = path.to_owned();
      let told = manifest.check(folder.path()).unwrap_err().to_string();
      assert!(told.contains(said), "{told}");
    }
  }
}
