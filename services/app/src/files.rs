//! The files of an installation, which all its nodes must share.
//!
//! The folder bears a mark that the database knows. A node that is pointed at another folder would not find what the others have taken in, and would keep what they
//! never find; it does not start.

use anyhow::{Context, Result, bail};
use pa_blobs::{Blobs, MARK};
use pa_store::clock::Ids;
use pa_store::ops::log_identity;
use uuid::Uuid;

use crate::storage::Storage;

/// Opens the files and compares their mark; the first start makes it.
pub(crate) async fn open(storage: &Storage, ids: &dyn Ids) -> Result<Blobs> {
  let folder = &storage.paths.shared;
  let blobs = Blobs::local(folder).context("open the blobs")?;
  let found = blobs.mark().await.with_context(|| format!("read the mark of the files in {}", folder.display()))?;
  let known = log_identity::files(&storage.control, None).await?;
  let mark = match (known, found) {
    (Some(known), None) => bail!(missing(&folder.display().to_string(), known)),
    (None, None) => blobs.mark_with(ids.new_id()).await.context("mark the files")?,
    (_, Some(found)) => found,
  };
  // Nodes that start at the same time: the first one's folder counts.
  match log_identity::files(&storage.control, Some(mark)).await? {
    Some(standing) if standing != mark => bail!(
      "the files in {} are not those of this installation: {MARK} there holds {mark}, the other nodes use {standing}; \
       let PA__DATA__SHARED_DIR name the folder that all nodes share",
      folder.display()
    ),
    _ => Ok(blobs),
  }
}

fn missing(folder: &str, known: Uuid) -> String {
  format!(
    "the files of this installation are not in {folder}, where there is no {MARK}: let PA__DATA__SHARED_DIR name the folder that all nodes share; \
     if this is that folder, put back from a backup, write {known} into {folder}/{MARK}"
  )
}
