//! `pa backup DIR`: what is needed to begin again elsewhere, but for the master key.
//!
//! It is taken while messages flow. First the cut: where each partition's facts and inputs end. Then what the records before it need, which was there before them: wrapped
//! keys, secrets, credentials, and the blobs, of which none is ever changed. The manifest comes last, with the hash of every file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt as _;
use pa_eventlog::moving::{ArchiveWriter, Ends, Tally, archive};
use pa_eventlog::{Partition, Stream};
use pa_store::ops::kept::{self, Table};
use pa_store::{Role, durable_file};

use super::landed::Pace;
use super::manifest::{BLOBS, Entry, LOG, Log, Manifest, ROWS};
use crate::config::Config;
use crate::storage::Storage;
use crate::wire::Shared;

/// Records of one read.
const READ_RECORDS: usize = 500;

/// Writes a backup into an empty folder.
pub(crate) async fn run(config: &Config, dir: &Path) -> Result<()> {
  let dir = std::path::absolute(dir).context("find the backup's folder")?;
  super::with(config, async |storage, shared| {
    make_folder(&dir)?;
    let ends = Ends::of(shared.log.as_ref()).await?;
    let log = Log {
      kind: shared.identity.kind.clone(),
      id: shared.identity.id,
      sealed: shared.identity.sealed,
      events_end: ends.events.clone(),
      inputs_end: ends.inputs.clone(),
    };
    let mut manifest = Manifest::new(shared.ids.new_id(), shared.clock.now().0, log);
    let inputs = records(shared, &dir, &ends, &mut manifest).await?;
    rows(storage, &dir, &mut manifest).await?;
    let blobs = files(shared, &dir, &mut manifest).await?;
    // Read back from the files: what can't be read is no backup.
    let tally = Tally::of(&manifest.archive(&dir)?, &shared.opener, &ends).await?;
    (manifest.agents, manifest.events, manifest.hash) = (tally.agents.len(), tally.events(), hex::encode(tally.hash()));
    for folder in [LOG, ROWS, BLOBS] {
      durable_file::sync_dir(&dir.join(folder)).with_context(|| format!("write {}", dir.join(folder).display()))?;
    }
    pa_store::fail_point!("backup.before_manifest");
    manifest.write(&dir)?;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    super::print(&format!("agents={} events={} hash={}", manifest.agents, manifest.events, manifest.hash))?;
    super::print(&format!("inputs={inputs} files={blobs} bytes={bytes}"))?;
    super::print(&format!("backup={}", dir.display()))?;
    super::print("the master key is not in it: keep that apart, nothing can be restored without it")
  })
  .await
}

fn make_folder(dir: &Path) -> Result<()> {
  let make = |path: &Path| DirBuilder::new().mode(0o700).recursive(true).create(path).with_context(|| format!("make the folder {}", path.display()));
  match fs::read_dir(dir) {
    Ok(mut entries) => ensure!(entries.next().is_none(), "{} is not empty: a backup gets a folder of its own", dir.display()),
    Err(error) if error.kind() == ErrorKind::NotFound => {}
    Err(error) => return Err(error).with_context(|| format!("look into {}", dir.display())),
  }
  [LOG, ROWS, BLOBS].iter().try_for_each(|folder| make(&dir.join(folder)))
}

/// Writes all records before the cut. Answers how many inputs there are.
async fn records(shared: &Shared, dir: &Path, ends: &Ends, manifest: &mut Manifest) -> Result<u64> {
  let (mut inputs, mut count, mut pace) = (0, 0, Pace::start("saved"));
  for stream in [Stream::Events, Stream::Inputs] {
    for partition in 0..ends.partitions() {
      let written = partition_file(shared, dir, (stream, partition), ends, |more| {
        count += more;
        pace.told(count);
      })
      .await?;
      inputs += if stream == Stream::Inputs { written } else { 0 };
      manifest.files.push(Entry::of(dir, &format!("{LOG}/{}", archive::file_name(stream, partition)))?);
    }
  }
  crate::say(&format!("saved: {}", pace.rate(count)));
  Ok(inputs)
}

async fn partition_file(shared: &Shared, dir: &Path, (stream, partition): (Stream, Partition), ends: &Ends, mut told: impl FnMut(u64)) -> Result<u64> {
  let mut writer = ArchiveWriter::create(&dir.join(LOG), stream, partition)?;
  let (mut from, end, mut written) = (0, ends.end(stream, partition), 0);
  while from < end {
    let batch = shared.log.read(stream, partition, from, READ_RECORDS).await?;
    let Some(last) = batch.last() else { break };
    from = last.position + 1;
    for stored in batch.iter().take_while(|stored| stored.position < end) {
      writer.write(stored)?;
      written += 1;
    }
    told(batch.len() as u64);
  }
  writer.finish()?;
  Ok(written)
}

/// A new file of the backup.
fn create(path: &Path) -> Result<BufWriter<File>> {
  let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
  Ok(BufWriter::new(file.with_context(|| format!("create {}", path.display()))?))
}

fn finish(out: BufWriter<File>, path: &Path) -> Result<()> {
  let flushed = out.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
  flushed.with_context(|| format!("write {}", path.display()))
}

/// The name of a table's file.
pub(super) fn rows_path(table: Table) -> String {
  format!("{ROWS}/{}.jsonl", table.name())
}

async fn rows(storage: &Storage, dir: &Path, manifest: &mut Manifest) -> Result<()> {
  let mut out = Vec::new();
  for table in Table::ALL {
    out.push((table, create(&dir.join(rows_path(table)))?));
  }
  kept::read(&storage.database.pool(Role::Tool), |table, row| -> Result<()> {
    let (_, out) = out.iter_mut().find(|(of, _)| *of == table).expect("every table has its file");
    writeln!(out, "{row}").with_context(|| format!("write {}", rows_path(table)))
  })
  .await?;
  for (table, out) in out {
    finish(out, &dir.join(rows_path(table)))?;
    manifest.files.push(Entry::of(dir, &rows_path(table))?);
  }
  Ok(())
}

/// Copies every blob, sealed. One whose agent is erased meanwhile is left out.
async fn files(shared: &Shared, dir: &Path, manifest: &mut Manifest) -> Result<u64> {
  let mut places: Vec<_> = shared.blobs.all().try_collect().await.context("list the blobs")?;
  places.sort_unstable();
  let mut count = 0;
  for place in places {
    let Some(mut bytes) = shared.blobs.sealed(&place).await? else { continue };
    let (folder, path) = (dir.join(BLOBS).join(&place.agent), format!("{BLOBS}/{}/{}", place.agent, place.name));
    DirBuilder::new().mode(0o700).recursive(true).create(&folder).with_context(|| format!("make the folder {}", folder.display()))?;
    let mut out = create(&dir.join(&path))?;
    while let Some(piece) = bytes.try_next().await? {
      out.write_all(&piece).with_context(|| format!("write {path}"))?;
    }
    finish(out, &dir.join(&path))?;
    durable_file::sync_dir(&folder).with_context(|| format!("write {}", folder.display()))?;
    manifest.files.push(Entry::of(dir, &path)?);
    count += 1;
  }
  Ok(count)
}
