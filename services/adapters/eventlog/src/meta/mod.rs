//! The `pa-meta` header: what a record says about itself, and the hashes that bind records together.
//!
//! `core` is what rules and folds read, bound to the sealed body; `prevhash` chains an agent's events; `place` says where in the log the record stands and is all
//! that copying a log rewrites. The header is an Avro single object of `schemas/log/meta.v1.avsc`, by a small codec of its own ([`bytes`](self)) since every
//! reader decodes it for every record. The layouts that are hashed stand in [`hash`]: they are permanent.

mod avro;
pub mod hash;

use pa_domain::Meta;
use pa_domain::meta::Kind;
use uuid::Uuid;

use crate::record::Position;

pub use avro::{FINGERPRINT, decode, encode};
pub use hash::{chain, core_hash, digest, partition_of};

/// The `input` of a record that decides no input.
pub const NO_INPUT: Position = -1;
/// The `prevhash` of an agent's first event, and of records that stand in no chain.
pub const NO_HASH: [u8; 32] = [0; 32];
/// Bytes of `actor` and of `producer` at most: names, not content.
pub const NAME_BYTES_MAX: usize = 256;

/// Where in the log a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
  /// The position of the input that the decision is about; [`NO_INPUT`] for inputs and announcements.
  pub input: Position,
  /// The input had been held: the decision moves neither the next input nor the comparison.
  pub held: bool,
  /// 1 to `parts`.
  pub part: i32,
  pub parts: i32,
  /// The term of the decider that wrote it; 0 for inputs.
  pub epoch: i64,
  /// Counts a term's records from 1; an announcement has 0.
  pub seq: i64,
  /// Under which of the agent's keys the value is sealed; 0: not sealed.
  pub keyid: i32,
}

impl Place {
  /// The place of an input.
  pub fn of_input(keyid: i32) -> Self {
    Self { input: NO_INPUT, held: false, part: 1, parts: 1, epoch: 0, seq: 0, keyid }
  }

  /// The place of an announcement.
  pub fn of_announcement(epoch: i64) -> Self {
    Self { input: NO_INPUT, held: false, part: 1, parts: 1, epoch, seq: 0, keyid: 0 }
  }
}

/// A record's metadata as stored in its `pa-meta` header. The id of `core` is the record's own header `ce_id`; its `input`, `held` and `part` mirror `place`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaMeta {
  pub core: Meta,
  /// The chain's hash after the agent's event before this one; [`NO_HASH`] for the first event and for other kinds.
  pub prevhash: [u8; 32],
  pub place: Place,
}

impl PaMeta {
  /// Puts metadata together; `core` takes over what it mirrors of `place`.
  pub fn new(mut core: Meta, prevhash: [u8; 32], place: Place) -> Self {
    (core.input, core.held, core.part) = mirrored(core.kind, &place);
    Self { core, prevhash, place }
  }

  /// Whether the record is about the partition itself.
  pub fn is_about_partition(&self) -> bool {
    self.core.kind == Kind::Partition
  }
}

/// What the rules see of an event's place; an input has none.
fn mirrored(kind: Kind, place: &Place) -> (Position, bool, i32) {
  match kind {
    Kind::Event => (place.input, place.held, place.part),
    Kind::Input | Kind::Partition => (0, false, 0),
  }
}

/// A `pa-meta` header that can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  /// Written by a newer binary.
  #[error("record {id} has metadata of an unknown schema {fingerprint}")]
  UnknownFingerprint { id: Uuid, fingerprint: String },
  /// Not what any binary writes: the log is damaged.
  #[error("record {id} has malformed metadata: {what}")]
  Malformed { id: Uuid, what: &'static str },
  /// A name is longer than [`NAME_BYTES_MAX`].
  #[error("{what} has {bytes} bytes")]
  NameTooLong { what: &'static str, bytes: usize },
}

#[cfg(test)]
mod tests;
