//! The blobs of a backup on their way back.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use pa_blobs::Blobs;
use pa_blobs::moving::Place;
use tokio::io::AsyncReadExt as _;

use super::super::manifest::{BLOBS, Manifest};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 256 * 1024;

/// Refuses a place that has blobs.
pub(super) async fn ensure_none(folder: &Path) -> Result<()> {
  let found = Blobs::local(folder).context("open the blobs")?.all().next().await;
  ensure!(found.is_none(), "{} holds files of an installation: a backup is brought back into an empty data folder", folder.display());
  Ok(())
}

/// Enters every blob, as it lies in the backup. Answers how many.
pub(super) async fn enter(dir: &Path, manifest: &Manifest, folder: &Path) -> Result<u64> {
  let blobs = Blobs::local(folder).context("open the blobs")?;
  let mut count = 0;
  for entry in &manifest.files {
    let Some(place) = entry.path.strip_prefix(BLOBS).and_then(|path| path.strip_prefix('/')) else { continue };
    let place = place.split_once('/').and_then(|(agent, name)| Place::new(agent, name)).with_context(|| format!("{} is no place of a file", entry.path))?;
    let file = tokio::fs::File::open(dir.join(&entry.path)).await.with_context(|| format!("open {}", entry.path))?;
    let pieces = futures::stream::try_unfold(file, |mut file| async move {
      let mut piece = Vec::with_capacity(PIECE_BYTES);
      let read = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece).await?;
      Ok::<_, std::io::Error>((read > 0).then(|| (piece.into(), file)))
    });
    blobs.enter_sealed(&place, pieces.map_err(std::io::Error::from).boxed()).await.with_context(|| format!("enter {}", entry.path))?;
    count += 1;
  }
  Ok(count)
}
