//! One agent's keys, ready for use.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use aws_lc_rs::hmac;

use super::KEY_BYTES;

/// Permanent: another label would be another key, and everything sealed or named before would be lost.
const SEAL_LABEL: &[u8] = b"pa/seal/v1";
const BLOB_LABEL: &[u8] = b"pa/blob/v1";
const KEY_HASH_LABEL: &[u8] = b"pa/key/v1";

/// The keys of one agent, derived from its data key.
pub struct AgentKeys {
  id: i32,
  /// AES-256-GCM over record values and blobs; shared, so that a file can be read while nothing else holds the keys.
  pub seal: Arc<LessSafeKey>,
  /// HMAC-SHA256 that names blobs.
  pub blob: hmac::Key,
  /// HMAC-SHA256 over idempotency keys.
  pub key_hash: hmac::Key,
}

impl fmt::Debug for AgentKeys {
  fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "AgentKeys({})", self.id)
  }
}

impl AgentKeys {
  /// Derives the keys from a data key.
  pub fn derive(id: i32, data_key: &[u8; KEY_BYTES]) -> Self {
    // The data key is uniformly random already, so the extract step of HKDF would add nothing.
    let prk = Prk::new_less_safe(HKDF_SHA256, data_key);
    let seal = UnboundKey::new(&AES_256_GCM, &expand(&prk, SEAL_LABEL)).expect("32 bytes fit AES-256");
    Self {
      id,
      seal: Arc::new(LessSafeKey::new(seal)),
      blob: hmac::Key::new(hmac::HMAC_SHA256, &expand(&prk, BLOB_LABEL)),
      key_hash: hmac::Key::new(hmac::HMAC_SHA256, &expand(&prk, KEY_HASH_LABEL)),
    }
  }

  /// The number of the data key, as records carry it.
  pub fn id(&self) -> i32 {
    self.id
  }

  /// The hash of an idempotency key, as records and tables carry it.
  pub fn hash_key(&self, key: &[u8]) -> [u8; 32] {
    hmac::sign(&self.key_hash, key).as_ref().try_into().expect("HMAC-SHA256 gives 32 bytes")
  }
}

struct Length;

impl KeyType for Length {
  fn len(&self) -> usize {
    KEY_BYTES
  }
}

fn expand(prk: &Prk, label: &[u8]) -> [u8; KEY_BYTES] {
  let mut key = [0; KEY_BYTES];
  prk.expand(&[label], Length).and_then(|okm| okm.fill(&mut key)).expect("32 bytes are within HKDF's limit");
  key
}
