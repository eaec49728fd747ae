//! A record as the log stores it, the same on every engine.
//!
//! `CloudEvents` 1.0 Kafka binding, binary mode: `id`, `type_name`, `source`, `ce_time` (mirrors `at` of the meta) and `traceparent` are headers, `meta` is the binary
//! header `pa-meta`, `value` the sealed single-object Avro body. Headers hold no content.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use uuid::Uuid;

use crate::meta::{self, PaMeta};
use crate::opener::Opened;

/// A partition's number, from 0.
pub type Partition = u16;
/// A record's offset in one partition of one stream. Only for resuming readers and for the `input` field: the outside counts in ordinals.
pub type Position = i64;

/// The three streams of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
  /// Commands and reports; kept 90 days.
  Inputs,
  /// Facts; kept for ever.
  Events,
  /// Pieces of replies and step names between processes; minutes, best effort.
  Pieces,
}

impl Stream {
  /// The stream's topic name behind the prefix: `inputs`, `events`, `stream`.
  pub fn name(self) -> &'static str {
    match self {
      Self::Inputs => "inputs",
      Self::Events => "events",
      Self::Pieces => "stream",
    }
  }
}

/// What is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
  pub id: Uuid,
  /// `ce_type`: `pa.<context>.<Name>.v<version>`.
  pub type_name: Arc<str>,
  /// `ce_source`: which part of the product appended it, such as `pa/gateway`.
  pub source: Arc<str>,
  pub traceparent: Option<Arc<str>>,
  /// The `pa-meta` header's bytes.
  pub meta: Bytes,
  pub value: Bytes,
}

impl Record {
  /// The size that limits count: header and value bytes.
  pub fn size_bytes(&self) -> usize {
    16 + self.type_name.len() + self.source.len() + self.traceparent.as_ref().map_or(0, |trace| trace.len()) + self.meta.len() + self.value.len()
  }
}

/// A record as read back. Metadata, digest and opened content are computed once and shared by all readers of the process.
#[derive(Debug)]
pub struct Stored {
  pub position: Position,
  pub record: Record,
  pub(crate) meta: OnceLock<Arc<PaMeta>>,
  pub(crate) digest: OnceLock<[u8; 32]>,
  pub(crate) opened: OnceLock<Opened>,
}

impl Stored {
  /// A record that was read at `position`.
  pub fn new(position: Position, record: Record) -> Self {
    Self { position, record, meta: OnceLock::new(), digest: OnceLock::new(), opened: OnceLock::new() }
  }

  /// The record's metadata, decoded once.
  ///
  /// # Errors
  /// The header is of a newer binary or damaged: both stop a reader.
  pub fn meta(&self) -> Result<&Arc<PaMeta>, meta::Error> {
    if let Some(meta) = self.meta.get() {
      return Ok(meta);
    }
    let decoded = meta::decode(self.record.id, &self.record.meta)?;
    Ok(self.meta.get_or_init(|| Arc::new(decoded)))
  }
}
