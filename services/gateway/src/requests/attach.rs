//! Uploads become attachments: their bytes enter the agent's blobs directly before the message is appended.

use std::collections::HashMap;
use std::sync::Arc;

use async_graphql::ID;
use pa_domain::Origin;
use pa_domain::conversation::FileRef;
use pa_projections::conversation;
use pa_store::Disposition;
use pa_store::keys::{AgentKeys, Lookup};
use pa_store::ops::uploads::{self, Upload};
use uuid::Uuid;

use crate::auth::Viewer;
use crate::edge::Edge;

/// Files that can't be attached now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
  #[error(transparent)]
  Store(#[from] pa_store::Error),
  #[error(transparent)]
  Keys(#[from] pa_store::keys::Error),
  #[error("the account's agent has no key")]
  NoKey,
  #[error(transparent)]
  Reads(#[from] pa_projections::Error),
  #[error(transparent)]
  Blobs(#[from] pa_blobs::Error),
}

impl crate::graphql::env::Failure for Error {
  fn passes(&self) -> bool {
    match self {
      Self::Store(error) => error.passes(),
      Self::Reads(error) => error.passes(),
      Self::Blobs(error) => error.disposition() != Disposition::Fail,
      Self::Keys(_) | Self::NoKey => false,
    }
  }

  fn lacks_key(&self) -> bool {
    matches!(self, Self::NoKey)
  }
}

/// The files that these ids name, each in the agent's blobs; `None` when one of them names nothing of the viewer's.
pub(crate) async fn attached(edge: &Edge, viewer: &Viewer, ids: &[ID]) -> Result<Option<Vec<FileRef>>, Error> {
  if ids.is_empty() {
    return Ok(Some(Vec::new()));
  }
  let Some(ids) = ids.iter().map(|id| Uuid::parse_str(id).ok()).collect::<Option<Vec<_>>>() else { return Ok(None) };
  let keys = keys(edge, viewer).await?;
  let found = uploads::get(&edge.pool, viewer.account, &ids).await?;
  let uploads: HashMap<Uuid, Upload> = found.into_iter().map(|upload| (upload.id, upload)).collect();
  let mut files = Vec::with_capacity(ids.len());
  for id in ids {
    let staged = match uploads.get(&id) {
      Some(upload) => committed(edge, viewer, &keys, upload).await?,
      None => None,
    };
    let file = match staged {
      Some(file) => Some(file),
      // Attached before, by this request or another: the file is what it was.
      None => conversation::attachment(&edge.reads, viewer.account, &id.to_string()).await?.map(known),
    };
    match file {
      Some(file) => files.push(file),
      None => return Ok(None),
    }
  }
  Ok(Some(files))
}

async fn committed(edge: &Edge, viewer: &Viewer, keys: &AgentKeys, upload: &Upload) -> Result<Option<FileRef>, Error> {
  let blob = match edge.blobs.commit(viewer.account, keys, upload.id).await {
    Ok(blob) => blob,
    // Its day is over.
    Err(pa_blobs::Error::Missing { .. }) => return Ok(None),
    Err(error) => return Err(error.into()),
  };
  Ok(Some(FileRef {
    id: upload.id.to_string(),
    name: upload.name.clone(),
    media_type: upload.media_type.clone(),
    size_bytes: upload.size,
    sha256: hex::encode(upload.sha256),
    blob: blob.name,
    // The owner sends it, but what is in it was written by whoever wrote it.
    origin: Origin::ThirdParty,
  }))
}

fn known(file: conversation::Attachment) -> FileRef {
  FileRef { id: file.id, name: file.name, media_type: file.media_type, size_bytes: file.size_bytes, sha256: file.sha256, blob: file.blob, origin: file.origin }
}

/// The keys of the viewer's agent.
pub(crate) async fn keys(edge: &Edge, viewer: &Viewer) -> Result<Arc<AgentKeys>, Error> {
  match edge.keys.get(viewer.account).await? {
    Lookup::Key(keys) => Ok(keys),
    Lookup::Erased(_) | Lookup::Missing => Err(Error::NoKey),
  }
}
