//! The format of a sealed blob, which streams both ways.
//!
//! `PAB1`, then chunks. A chunk is a random 12-byte nonce, up to 64 KiB of AES-256-GCM ciphertext under the agent's seal key, and the tag. Its AAD is a label, the
//! blob's name, the chunk's index, and whether it is the last one; so chunks can't be moved, left out, or cut off at the end. Only the last chunk is shorter, and an
//! empty file has one empty chunk. The format is permanent.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce};
use bytes::{Buf as _, Bytes, BytesMut};
use futures::StreamExt as _;
use futures::TryStreamExt as _;

use crate::{Content, Error};

const MAGIC: &[u8; 4] = b"PAB1";
const LABEL: &[u8; 10] = b"pa/blob/v1";
const CHUNK_BYTES: usize = 64 * 1024;
const TAG_BYTES: usize = 16;
const SEALED_CHUNK_BYTES: usize = NONCE_LEN + CHUNK_BYTES + TAG_BYTES;

/// A blob's name as bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlobId([u8; 32]);

impl BlobId {
  /// Takes 64 lower-case hexadecimal digits, and nothing else: a name is part of a path.
  pub(crate) fn parse(name: &str) -> Option<Self> {
    let mut id = [0; 32];
    hex::decode_to_slice(name, &mut id).ok()?;
    (hex::encode(id) == name).then_some(Self(id))
  }
}

struct Chunks {
  key: Arc<LessSafeKey>,
  id: BlobId,
  source: Content,
  buffer: BytesMut,
  index: u32,
  state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
  Begin,
  Reading,
  /// The source has ended; what is in the buffer is all.
  Drained,
  Done,
}

impl Chunks {
  fn new(key: Arc<LessSafeKey>, id: BlobId, source: Content) -> Self {
    Self { key, id, source, buffer: BytesMut::new(), index: 0, state: State::Begin }
  }

  /// Reads until more than `length` bytes are there, or all: whether a chunk is the last one shows only by what follows it.
  async fn fill_beyond(&mut self, length: usize) -> Result<(), Error> {
    while self.state != State::Drained && self.buffer.len() <= length {
      match self.source.try_next().await? {
        Some(piece) => self.buffer.extend_from_slice(&piece),
        None => self.state = State::Drained,
      }
    }
    Ok(())
  }

  /// Takes the next chunk of `length` out of the buffer, with its AAD.
  fn take(&mut self, length: usize) -> (BytesMut, [u8; 47]) {
    let last = self.state == State::Drained && self.buffer.len() <= length;
    let chunk = self.buffer.split_to(self.buffer.len().min(length));
    let mut place = [0; 47];
    place[..10].copy_from_slice(LABEL);
    place[10..42].copy_from_slice(&self.id.0);
    place[42..46].copy_from_slice(&self.index.to_be_bytes());
    place[46] = u8::from(last);
    self.index += 1;
    if last {
      self.state = State::Done;
    }
    (chunk, place)
  }

  fn damaged(&self) -> Error {
    Error::Damaged { name: hex::encode(self.id.0) }
  }

  async fn next_sealed(&mut self) -> Result<Option<Bytes>, Error> {
    if self.state == State::Begin {
      self.state = State::Reading;
      return Ok(Some(Bytes::from_static(MAGIC)));
    }
    if self.state == State::Done {
      return Ok(None);
    }
    self.fill_beyond(CHUNK_BYTES).await?;
    let (mut chunk, place) = self.take(CHUNK_BYTES);
    let mut nonce = [0; NONCE_LEN];
    aws_lc_rs::rand::fill(&mut nonce).expect("the operating system's random generator does not fail once it is seeded");
    let tag = self
      .key
      .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut chunk)
      .expect("sealing fails only for content of many gigabytes");
    let mut sealed = BytesMut::with_capacity(NONCE_LEN + chunk.len() + TAG_BYTES);
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(&chunk);
    sealed.extend_from_slice(tag.as_ref());
    Ok(Some(sealed.freeze()))
  }

  async fn next_opened(&mut self) -> Result<Option<Bytes>, Error> {
    if self.state == State::Begin {
      self.state = State::Reading;
      self.fill_beyond(MAGIC.len()).await?;
      if !self.buffer.starts_with(MAGIC) {
        return Err(self.damaged());
      }
      self.buffer.advance(MAGIC.len());
    }
    if self.state == State::Done {
      return Ok(None);
    }
    self.fill_beyond(SEALED_CHUNK_BYTES).await?;
    let (mut chunk, place) = self.take(SEALED_CHUNK_BYTES);
    if chunk.len() < NONCE_LEN + TAG_BYTES {
      return Err(self.damaged());
    }
    let nonce = chunk.split_to(NONCE_LEN);
    let nonce = Nonce::try_assume_unique_for_key(&nonce).expect("it has the length of a nonce");
    let length = self.key.open_in_place(nonce, Aad::from(place), &mut chunk).map_err(|_| Error::Damaged { name: hex::encode(self.id.0) })?.len();
    chunk.truncate(length);
    Ok(Some(chunk.freeze()))
  }
}

/// Seals a content under a name.
pub(crate) fn seal(key: Arc<LessSafeKey>, id: BlobId, content: Content) -> Content {
  debug_assert_eq!(AES_256_GCM.tag_len(), TAG_BYTES);
  let chunks = Chunks::new(key, id, content);
  futures::stream::try_unfold(chunks, |mut chunks| async move { Ok(chunks.next_sealed().await?.map(|chunk| (chunk, chunks))) }).boxed()
}

/// Opens what [`seal`] made under the same name.
pub(crate) fn open(key: Arc<LessSafeKey>, id: BlobId, sealed: Content) -> Content {
  let chunks = Chunks::new(key, id, sealed);
  futures::stream::try_unfold(chunks, |mut chunks| async move { Ok(chunks.next_opened().await?.map(|chunk| (chunk, chunks))) }).boxed()
}
