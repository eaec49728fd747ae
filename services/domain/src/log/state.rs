//! What the root remembers of inputs that are set aside.

use serde::{Deserialize, Serialize};

/// The inputs of an agent that are set aside, in the order in which they will be decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quarantine {
  /// The quarantined input first.
  pub held: Vec<HeldAt>,
  /// After a release: held inputs are being decided.
  pub draining: bool,
}

/// Where a held input stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldAt {
  /// Its position in the input log, where it may have expired.
  pub input: i64,
  /// The ordinal of the event that carries its bytes.
  pub ordinal: i64,
}
