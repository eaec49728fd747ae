//! Keys: the master key, the agents' keys that it wraps, and secrets that it seals.
//!
//! Invariants:
//! - The master key never is in the database, and no key is ever in `Debug`, an error or a log line.
//! - An agent's bytes end with its key: erasing deletes the wrapped key and keeps the instant. A key that is missing without that instant is a fault, not an
//!   erasure, and stops whoever reads.
//! - Sealing, blob names and key hashes use separate keys, derived from the agent's key by HKDF labels. The labels are permanent.

mod agent;
mod master;
mod ring;
pub mod secrets;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use agent::AgentKeys;
pub use master::MasterKey;
pub use ring::{KeyRing, Lookup, check_wrapped};

use crate::Disposition;
use crate::data_dir;

/// What can go wrong with keys.
#[derive(Debug, Error)]
pub enum Error {
  #[error("the master key is not valid: it must be 32 bytes in base64 (such as from: openssl rand -base64 32)")]
  MasterKeyMalformed,
  #[error(
    "the master key does not fit this database: the key of agent {agent} can't be opened with it; set PA_MASTER_KEY to the key that the database was made with"
  )]
  MasterKeyWrong { agent: pa_domain::AgentId },
  #[error("the sealed secret {id} can't be opened: it is damaged, or was sealed by another master key")]
  SecretDamaged { id: uuid::Uuid },
  #[error("agent {agent} has been erased")]
  Erased { agent: pa_domain::AgentId },
  #[error(transparent)]
  File(#[from] data_dir::Error),
  #[error(transparent)]
  Database(#[from] crate::Error),
}

impl Error {
  /// Says whether the operation may be repeated.
  pub fn disposition(&self) -> Disposition {
    match self {
      Self::Database(error) => error.disposition(),
      Self::MasterKeyMalformed | Self::MasterKeyWrong { .. } | Self::SecretDamaged { .. } | Self::Erased { .. } | Self::File(_) => Disposition::Fail,
    }
  }
}

/// The length of every key here, in bytes.
const KEY_BYTES: usize = 32;

/// Fresh random bytes from the operating system's generator.
pub(crate) fn random<const N: usize>() -> [u8; N] {
  let mut bytes = [0; N];
  aws_lc_rs::rand::fill(&mut bytes).expect("the operating system's random generator does not fail once it is seeded");
  bytes
}
