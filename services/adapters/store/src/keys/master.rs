//! The master key: 32 bytes from the environment or from a 0600 file, which wraps the agents' keys and seals secrets.

use std::fmt;
use std::path::Path;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString, zeroize::Zeroize as _};

use super::{Error, KEY_BYTES, random};
use crate::data_dir;

/// The installation's master key.
pub struct MasterKey {
  key: LessSafeKey,
}

impl fmt::Debug for MasterKey {
  fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("MasterKey")
  }
}

impl MasterKey {
  /// Takes the key as base64.
  pub fn from_base64(text: &SecretString) -> Result<Self, Error> {
    let mut bytes = STANDARD.decode(text.expose_secret().trim()).map_err(|_| Error::MasterKeyMalformed)?;
    let key = Self::from_bytes(&bytes);
    bytes.zeroize();
    key
  }

  /// Reads the key from its file, or makes one there; of two processes that make one at once, both get the same.
  pub fn load_or_create(path: &Path) -> Result<Self, Error> {
    let content = data_dir::read_or_create_secret(path, || STANDARD.encode(random::<KEY_BYTES>()).into_bytes())?;
    let text = String::from_utf8(content).map_err(|_| Error::MasterKeyMalformed)?;
    Self::from_base64(&SecretString::from(text))
  }

  /// Makes a key that is kept nowhere.
  pub fn ephemeral() -> Self {
    Self::from_bytes(&random::<KEY_BYTES>()).expect("32 bytes make a key")
  }

  fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
    if bytes.len() != KEY_BYTES {
      return Err(Error::MasterKeyMalformed);
    }
    let key = UnboundKey::new(&AES_256_GCM, bytes).map_err(|_| Error::MasterKeyMalformed)?;
    Ok(Self { key: LessSafeKey::new(key) })
  }

  /// Seals `content`, bound to `place`: a random nonce, then ciphertext and tag.
  pub(super) fn seal(&self, place: &[u8], content: &[u8]) -> Vec<u8> {
    // Random nonces are safe here: a master key seals some thousands of keys and secrets, far from the 2^32 of the birthday bound.
    let nonce = random::<NONCE_LEN>();
    let mut sealed = Vec::with_capacity(NONCE_LEN + content.len() + AES_256_GCM.tag_len());
    sealed.extend_from_slice(&nonce);
    let mut body = content.to_vec();
    self
      .key
      .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut body)
      .expect("sealing fails only for content of many gigabytes");
    sealed.append(&mut body);
    sealed
  }

  /// Opens what [`Self::seal`] made for the same place; `None` when it was made by another key, for another place, or was changed.
  pub(super) fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, body) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let mut body = body.to_vec();
    let length = self.key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(place), &mut body).ok()?.len();
    body.truncate(length);
    Some(body)
  }
}
