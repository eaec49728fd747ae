//! temporary
#![allow(unused)]
use bytes::Bytes;
use futures::stream::BoxStream;
use pa_domain::*;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;
pub const FILE_BYTES_MAX: u64 = 20 * 1024 * 1024;
pub struct Blobs;
pub struct Staged {
  pub size: i64,
  pub sha256: [u8; 32],
}
pub struct BlobRef {
  pub name: String,
}
#[derive(Debug, thiserror::Error)]
pub enum Error {
  #[error("x")]
  TooLarge { bytes_max: u64 },
  #[error("y")]
  Io,
}
impl Blobs {
  pub async fn stage(&self, _: Uuid, _s: impl futures::Stream<Item = std::io::Result<Bytes>> + Unpin) -> Result<Staged, Error> {
    Err(Error::Io)
  }
  pub async fn staged(&self, _: Uuid) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
    Err(Error::Io)
  }
  pub async fn commit(&self, _: AgentId, _: &pa_store::keys::AgentKeys, _: Uuid) -> Result<BlobRef, Error> {
    Err(Error::Io)
  }
  pub async fn get(&self, _: AgentId, _: &pa_store::keys::AgentKeys, _: &str) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
    Err(Error::Io)
  }
}
