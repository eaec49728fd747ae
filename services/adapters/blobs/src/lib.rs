//! Blobs: the bytes of files that records refer to.
//!
//! An upload is staged under its own id, for a day. When it is attached its content is sealed under the agent's key and entered as
//! `blobs/<agent>/<HMAC(agent's blob key, content)>`, directly before the record that refers to it is appended. Invariants:
//! - When [`Blobs::commit`] or [`Blobs::put`] has returned, the blob survives a power loss: on a local folder the store writes beside, flushes the file, renames it
//!   and flushes the folder (`LocalFileSystem::with_fsync`; without that setting it flushes nothing); S3 promises as much by itself.
//! - A blob is bound to its name: chunks can't be cut off, exchanged or moved between blobs unnoticed. [`Blobs::get`] never gives out an unverified byte.
//! - Nothing is collected: blobs go with their agent. The name says nothing about the content to whoever has no key, and equal content of two agents has two names.
//!
//! `sealed` is the format, `local` what only a folder needs.

mod error;
mod local;
pub mod moving;
mod sealed;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::{digest, hmac};
use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, WriteMultipart};
use pa_domain::{AgentId, Timestamp};
use pa_store::keys::AgentKeys;
use uuid::Uuid;

pub use error::Error;

/// The largest file: what people send in chats fits, and a prompt or a page never has to deal with more.
pub const FILE_BYTES_MAX: u64 = 20 * 1024 * 1024;

/// An upload that nobody attached within a day was given up.
pub const STAGED_FOR: Duration = Duration::from_hours(24);

/// Names the store that it lies in, beside the files: nodes that share files must find the same.
pub const MARK: &str = "files.id";

/// How many parts of a file are on their way to the store at once; a part is 5 MiB, the least that S3 takes.
const PARTS_AT_ONCE: usize = 2;

/// What is known of a staged upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staged {
  pub size: i64,
  pub sha256: [u8; 32],
}

/// A blob that a record may refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
  /// The name under its agent: 64 hexadecimal digits.
  pub name: String,
  pub size: i64,
  /// Of the content.
  pub sha256: [u8; 32],
}

/// Verified pieces of a file, in order.
pub type Content = BoxStream<'static, Result<Bytes, Error>>;

/// The files of all agents; cloning shares the store.
#[derive(Clone, Debug)]
pub struct Blobs {
  store: Arc<dyn ObjectStore>,
  /// Only for a local folder.
  folder: Option<PathBuf>,
}

impl Blobs {
  /// Files in `blobs/` and `staging/` of a local folder.
  pub fn local(folder: &Path) -> Result<Self, Error> {
    Ok(Self { store: Arc::new(local::open(folder)?), folder: Some(folder.to_owned()) })
  }

  /// Files in any object store whose writes are durable when they return.
  pub fn new(store: Arc<dyn ObjectStore>) -> Self {
    Self { store, folder: None }
  }

  /// The mark of this store; `None` when it has none yet.
  pub async fn mark(&self) -> Result<Option<Uuid>, Error> {
    let found = match self.store.get(&Key::from(MARK)).await {
      Ok(found) => found.bytes().await.map_err(error::reading(MARK))?,
      Err(object_store::Error::NotFound { .. }) => return Ok(None),
      Err(source) => return Err(error::reading(MARK)(source)),
    };
    let text = str::from_utf8(&found).map_or("", str::trim);
    Uuid::try_parse(text).map(Some).map_err(|_| Error::Damaged { name: MARK.to_owned() })
  }

  /// Marks this store unless it is marked already, and answers with the mark that stands.
  pub async fn mark_with(&self, mark: Uuid) -> Result<Uuid, Error> {
    match self.store.put_opts(&Key::from(MARK), PutPayload::from(format!("{mark}\n")), PutMode::Create.into()).await {
      Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => {}
      Err(source) => return Err(error::writing("mark the store of files")(source)),
    }
    self.mark().await?.ok_or_else(|| Error::Missing { name: MARK.to_owned() })
  }

  /// Takes an upload in. Nothing of it is left when it fails or is given up half-way.
  ///
  /// # Errors
  /// [`Error::TooLarge`] as soon as more than [`FILE_BYTES_MAX`] have come; [`Error::Upload`] when the sender's stream breaks.
  pub async fn stage(&self, upload: Uuid, mut content: impl Stream<Item = io::Result<Bytes>> + Unpin) -> Result<Staged, Error> {
    let mut writer = self.writer(&staging(upload)).await?;
    let mut hash = digest::Context::new(&digest::SHA256);
    let mut size = 0_u64;
    loop {
      let piece = match content.next().await {
        None => break,
        Some(Ok(piece)) => piece,
        Some(Err(source)) => return Err(give_up(writer, Error::Upload { source }).await),
      };
      size += piece.len() as u64;
      if size > FILE_BYTES_MAX {
        return Err(give_up(writer, Error::TooLarge { bytes_max: FILE_BYTES_MAX }).await);
      }
      hash.update(&piece);
      writer.wait_for_capacity(PARTS_AT_ONCE).await.map_err(error::writing("stage an upload"))?;
      writer.put(piece);
    }
    writer.finish().await.map_err(error::writing("stage an upload"))?;
    Ok(Staged { size: signed(size), sha256: bytes32(hash.finish().as_ref()) })
  }

  /// The content of a staged upload.
  pub async fn staged(&self, upload: Uuid) -> Result<Content, Error> {
    let found = self.store.get(&staging(upload)).await.map_err(error::reading(&upload.to_string()))?;
    let name = upload.to_string();
    Ok(found.into_stream().map_err(move |source| error::reading(&name)(source)).boxed())
  }

  /// Enters a staged upload among the agent's blobs, durable when this returns. The same content gives the same name, so doing it again is harmless; the staged
  /// bytes stay until they expire, so that it can be done again.
  pub async fn commit(&self, agent: AgentId, keys: &AgentKeys, upload: Uuid) -> Result<BlobRef, Error> {
    // Twice through the bytes, since the name is known after the last one and every chunk is bound to it.
    let mut name = hmac::Context::with_key(&keys.blob);
    let mut hash = digest::Context::new(&digest::SHA256);
    let mut size = 0_u64;
    let mut content = self.staged(upload).await?;
    while let Some(piece) = content.try_next().await? {
      name.update(&piece);
      hash.update(&piece);
      size += piece.len() as u64;
    }
    let blob = BlobRef { name: hex::encode(name.sign()), size: signed(size), sha256: bytes32(hash.finish().as_ref()) };
    let content = self.staged(upload).await?;
    self.write_sealed(agent, keys, &blob.name, content).await?;
    Ok(blob)
  }

  /// Enters bytes among the agent's blobs, durable when this returns: for results of tools.
  pub async fn put(&self, agent: AgentId, keys: &AgentKeys, content: Bytes) -> Result<BlobRef, Error> {
    if content.len() as u64 > FILE_BYTES_MAX {
      return Err(Error::TooLarge { bytes_max: FILE_BYTES_MAX });
    }
    let name = hex::encode(hmac::sign(&keys.blob, &content));
    let sha256 = bytes32(digest::digest(&digest::SHA256, &content).as_ref());
    let size = signed(content.len() as u64);
    self.write_sealed(agent, keys, &name, futures::stream::once(async { Ok(content) }).boxed()).await?;
    Ok(BlobRef { name, size, sha256 })
  }

  /// The content of an agent's blob, verified chunk by chunk. A blob that was cut off is noticed at its end: what came before is genuine, but not all.
  pub async fn get(&self, agent: AgentId, keys: &AgentKeys, name: &str) -> Result<Content, Error> {
    let id = sealed::BlobId::parse(name).ok_or_else(|| Error::Missing { name: name.to_owned() })?;
    let found = self.store.get(&place(agent, name)).await.map_err(error::reading(name))?;
    let named = name.to_owned();
    let pieces = found.into_stream().map_err(move |source| error::reading(&named)(source)).boxed();
    Ok(sealed::open(Arc::clone(&keys.seal), id, pieces))
  }

  /// The whole content of a blob of at most `bytes_max`.
  pub async fn get_all(&self, agent: AgentId, keys: &AgentKeys, name: &str, bytes_max: u64) -> Result<Bytes, Error> {
    let mut content = self.get(agent, keys, name).await?;
    let mut all = BytesMut::new();
    while let Some(piece) = content.try_next().await? {
      if (all.len() + piece.len()) as u64 > bytes_max {
        return Err(Error::TooLarge { bytes_max });
      }
      all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
  }

  /// Removes a staged upload now.
  pub async fn discard(&self, upload: Uuid) -> Result<(), Error> {
    self.remove(&staging(upload)).await
  }

  /// Removes uploads that were staged longer ago than [`STAGED_FOR`], and half-written files of crashed processes; answers with how many.
  pub async fn expire_staging(&self, now: Timestamp) -> Result<u64, Error> {
    let before_ms = now.0 - i64::try_from(STAGED_FOR.as_millis()).expect("a day fits");
    let mut removed = 0;
    let mut found = self.store.list(Some(&Key::from("staging")));
    while let Some(meta) = found.try_next().await.map_err(error::reading("staging"))? {
      if meta.last_modified.timestamp_millis() < before_ms {
        self.remove(&meta.location).await?;
        removed += 1;
      }
    }
    if let Some(folder) = &self.folder {
      removed += local::remove_half_written(folder, before_ms).await?;
    }
    Ok(removed)
  }

  /// Removes all blobs of an agent, and answers with how many there were. May be done again.
  pub async fn erase(&self, agent: AgentId) -> Result<u64, Error> {
    let mut removed = 0;
    let mut found = self.store.list(Some(&folder_of(agent)));
    while let Some(meta) = found.try_next().await.map_err(error::reading("the agent's blobs"))? {
      self.remove(&meta.location).await?;
      removed += 1;
    }
    if let Some(folder) = &self.folder {
      local::remove_folder(&folder.join(folder_of(agent).as_ref())).await?;
    }
    Ok(removed)
  }

  async fn write_sealed(&self, agent: AgentId, keys: &AgentKeys, name: &str, content: Content) -> Result<(), Error> {
    let id = sealed::BlobId::parse(name).expect("the name was just made");
    let mut chunks = sealed::seal(Arc::clone(&keys.seal), id, content);
    let mut writer = self.writer(&place(agent, name)).await?;
    loop {
      match chunks.try_next().await {
        Ok(Some(chunk)) => {
          writer.wait_for_capacity(PARTS_AT_ONCE).await.map_err(error::writing("enter a blob"))?;
          writer.put(chunk);
        }
        Ok(None) => break,
        Err(error) => return Err(give_up(writer, error).await),
      }
    }
    writer.finish().await.map_err(error::writing("enter a blob"))?;
    Ok(())
  }

  async fn writer(&self, key: &Key) -> Result<WriteMultipart, Error> {
    let upload = self.store.put_multipart(key).await.map_err(error::writing("begin a file"))?;
    Ok(WriteMultipart::new(upload))
  }

  async fn remove(&self, key: &Key) -> Result<(), Error> {
    match self.store.delete(key).await {
      Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
      Err(source) => Err(error::writing("remove a file")(source)),
    }
  }

  /// Checks that files can be written and read back, for the start and for a health check.
  pub async fn check(&self) -> Result<(), Error> {
    let key = Key::from("staging/check");
    self.store.put(&key, PutPayload::from_static(b"check")).await.map_err(error::writing("write a first file"))?;
    self.store.get(&key).await.map_err(error::reading("staging/check"))?;
    self.remove(&key).await
  }
}

fn staging(upload: Uuid) -> Key {
  Key::from(format!("staging/{}", upload.simple()))
}

fn folder_of(agent: AgentId) -> Key {
  Key::from(format!("blobs/{}", agent.0.simple()))
}

fn place(agent: AgentId, name: &str) -> Key {
  Key::from(format!("blobs/{}/{name}", agent.0.simple()))
}

/// The first error is the one that counts; parts that can't be taken back are removed by the sweep.
async fn give_up(writer: WriteMultipart, error: Error) -> Error {
  if let Err(source) = writer.abort().await {
    tracing::warn!(error = %source, "half a file left behind");
  }
  error
}

fn bytes32(bytes: &[u8]) -> [u8; 32] {
  bytes.try_into().expect("SHA-256 gives 32 bytes")
}

fn signed(size: u64) -> i64 {
  i64::try_from(size).expect("bounded by FILE_BYTES_MAX")
}
