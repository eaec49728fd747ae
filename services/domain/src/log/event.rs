//! Records of the log itself.

use serde::{Deserialize, Serialize};

use crate::ids::RecordId;
use crate::record::records;

/// A decider's term begins (its own epoch and id are in the record's headers). It is about the partition: no agent, ordinal or seal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochAnnounced {
  /// The position of the first input that the term decides, if `base` holds.
  pub inputs_from: i64,
  /// The fence state that the announcement was computed on: it counts only if this is the state right before it.
  pub base_epoch: i64,
  pub base_seq: i64,
  /// The announcing process.
  pub holder: RecordId,
}

/// How an input was settled that led to no other fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Settlement {
  /// Nothing to do.
  NoChange,
  /// A command that a rule refuses; `reason` says which.
  Refused,
  /// Its key was decided before; `of` says by which input.
  Repeated,
}

/// An input that led to no other fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputSettled {
  pub outcome: Settlement,
  /// A reason code, such as `QUEUE_FULL`; empty when there is nothing to say.
  pub reason: String,
  /// The id of the input that was decided first under the same key.
  pub of: Option<RecordId>,
}

/// An input that can't be decided is set aside; it is the first held one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputQuarantined {
  /// `PANIC`, `UNREADABLE`, `TOO_MANY_EVENTS`, `ROOT_TOO_LARGE`, `DEADLY`.
  pub reason: String,
  /// What was seen, without content; at most 500 characters.
  pub detail: String,
  pub held: HeldInput,
}

/// A later input of an agent with a quarantine, set aside with its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputHeld {
  pub held: HeldInput,
}

/// An input as it stands in the input log, so that it outlives its expiry there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldInput {
  /// Its position in the input log.
  pub position: i64,
  pub id: RecordId,
  /// `ce_type`.
  pub type_name: String,
  /// The `pa-meta` header's bytes.
  #[serde(with = "serde_bytes")]
  pub meta: Vec<u8>,
  /// The stored value's bytes.
  #[serde(with = "serde_bytes")]
  pub value: Vec<u8>,
}

/// Asks that held inputs be decided again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuarantineReleaseAsked {
  /// The quarantined input to drop instead of deciding it again, if it is known to be deadly.
  pub drop_first: bool,
}

/// Held inputs are decided from here on, in order, before any new one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuarantineReleased {
  pub drop_first: bool,
}

records! {
  /// Commands about the log.
  "log" Input { QuarantineReleaseAsked = 1 }
}

records! {
  /// Facts about the log.
  "log" Event { EpochAnnounced = 1, InputSettled = 1, InputQuarantined = 1, InputHeld = 1, QuarantineReleased = 1 }
}
