//! Sealing: a value is readable only with its agent's key, and bound to the record that it stands in.
//!
//! A sealed value is the single-object header, a random 12-byte nonce, and AES-256-GCM of the body with its 16-byte tag, under the agent's seal key; the additional
//! data is `pa/aad/1`, id, type and the hash of the metadata's core ([`crate::meta::hash`]), so who asked can't be changed afterwards. A log may be created without sealing; its
//! records carry key id 0 and plain single objects. Records about a partition are never sealed. See [`crate::opener`] for reading and [`crate::compose`] for writing.

use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce};
use aws_lc_rs::rand;
use pa_domain::{AgentId, Meta};
use pa_store::keys::{AgentKeys, KeyRing, Lookup};

use crate::codec::{Encoded, HEADER_BYTES};
use crate::meta::hash::aad;

/// Bytes between header and sealed body.
pub const NONCE_BYTES: usize = NONCE_LEN;
/// Bytes behind a sealed body.
pub const TAG_BYTES: usize = 16;
/// The key id of a value that is not sealed.
pub const UNSEALED: i32 = 0;

/// What is known of an agent's keys.
#[derive(Clone, Debug)]
pub enum KeyState {
  Ready(Arc<AgentKeys>),
  /// The agent was erased: its records are skipped.
  Erased,
  /// No key, and no erasure either: whoever reads must stop.
  Missing,
}

/// The keys could not be looked up now.
#[derive(Debug, thiserror::Error)]
#[error("the keys of agent {agent} can't be looked up")]
pub struct KeysError {
  pub agent: AgentId,
  #[source]
  pub source: pa_store::keys::Error,
}

/// Where agents' keys come from.
#[async_trait]
pub trait Keys: Send + Sync + 'static {
  /// The agent's keys.
  async fn keys(&self, agent: AgentId) -> Result<KeyState, KeysError>;

  /// The agent's keys if they are at hand; never waits.
  fn cached(&self, agent: AgentId) -> Option<Arc<AgentKeys>>;

  /// The agent's erasure was read: its keys are not kept at hand any more.
  fn forget(&self, agent: AgentId);
}

#[async_trait]
impl Keys for KeyRing {
  async fn keys(&self, agent: AgentId) -> Result<KeyState, KeysError> {
    match self.get(agent).await {
      Ok(Lookup::Key(keys)) => Ok(KeyState::Ready(keys)),
      Ok(Lookup::Erased(_)) => Ok(KeyState::Erased),
      Ok(Lookup::Missing) => Ok(KeyState::Missing),
      Err(source) => Err(KeysError { agent, source }),
    }
  }

  fn cached(&self, agent: AgentId) -> Option<Arc<AgentKeys>> {
    KeyRing::cached(self, agent)
  }

  fn forget(&self, agent: AgentId) {
    KeyRing::forget(self, agent);
  }
}

/// Seals an encoded body that was given [`NONCE_BYTES`] of room behind its header.
pub(crate) fn seal(keys: &AgentKeys, core: &Meta, mut encoded: Encoded) -> Vec<u8> {
  let mut nonce = [0; NONCE_BYTES];
  rand::fill(&mut nonce).expect("the operating system's random generator does not fail once it is seeded");
  let additional = aad(core.id, &encoded.type_name, core);
  let (front, body) = encoded.bytes.split_at_mut(encoded.body_at);
  front[HEADER_BYTES..].copy_from_slice(&nonce);
  let tag = keys
    .seal
    .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(additional), body)
    .expect("sealing fails only for bodies of many gigabytes");
  encoded.bytes.extend_from_slice(tag.as_ref());
  encoded.bytes
}

/// Opens what stands behind the header of a sealed value; `None` when it was sealed with another key, for another record, or changed.
pub(crate) fn open(keys: &AgentKeys, core: &Meta, type_name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
  let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
  let (body, tag) = sealed.split_at_checked(sealed.len().checked_sub(TAG_BYTES)?)?;
  let mut plain = vec![0; body.len()];
  let additional = aad(core.id, type_name, core);
  keys.seal.open_separate_gather(Nonce::assume_unique_for_key(*nonce), Aad::from(additional), body, tag, &mut plain).ok()?;
  Some(plain)
}

#[cfg(test)]
mod tests;
