//! Record bodies: structs of the domain to and from Avro, each body with the schema that wrote it.
//!
//! A stored value begins with the single-object header, `C3 01` and the fingerprint of the writer's schema, so every body is read with the schema that wrote it and
//! no registry is needed. Written with the current version, the usual case, it is read straight into the struct (`binary`); an older one is resolved to the current version by
//! `apache-avro` (`older`). The fingerprint leaves out defaults, so the version counts as `ce_type` says it. An unknown type or fingerprint was
//! written by a newer binary and stops a partition; a known body that can't be decoded concerns its agent alone.

mod binary;
mod content;
mod older;
mod schema_set;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use pa_domain::{BodyDecoder, BodyEncoder};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use content::Content;
pub use older::{Rewrite, Upcast};
pub(crate) use schema_set::Version;
pub use schema_set::{SchemaText, published};

/// Bytes of the single-object header.
pub const HEADER_BYTES: usize = 10;
/// The single-object header of one schema.
pub type Header = [u8; HEADER_BYTES];

/// Every upcast of the product: changes of meaning between two versions of one record.
const UPCASTS: &[Upcast] = &[];

static PUBLISHED: LazyLock<Codec> = LazyLock::new(|| Codec::new(&published(), UPCASTS).expect("the walk test parses every schema in the tree"));

/// A body that can't be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  #[error("schema {name}.v{version} is not usable: {reason}")]
  Schema { name: String, version: u16, reason: String },
  #[error("type {type_name} is not known")]
  UnknownType { type_name: String },
  #[error("type {type_name} was written with an unknown schema {fingerprint}")]
  UnknownFingerprint { type_name: String, fingerprint: String },
  #[error("the value of a {type_name} is not an avro single object")]
  NotSingleObject { type_name: String },
  #[error("a {type_name} can't be encoded")]
  Encode {
    type_name: String,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
  },
  #[error("a {type_name} can't be decoded")]
  Decode {
    type_name: String,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
  },
}

impl Error {
  /// Whether the record was written by a newer binary, so that nothing may go on; otherwise it concerns one agent.
  pub fn stops_partition(&self) -> bool {
    match self {
      Self::Schema { .. } | Self::UnknownType { .. } | Self::UnknownFingerprint { .. } => true,
      Self::NotSingleObject { .. } | Self::Encode { .. } | Self::Decode { .. } => false,
    }
  }
}

/// An encoded body behind its header.
#[derive(Debug)]
pub struct Encoded {
  /// `ce_type`.
  pub type_name: Arc<str>,
  /// Header, the room that was asked for, body.
  pub bytes: Vec<u8>,
  /// Where the body begins.
  pub body_at: usize,
}

/// All schemas, parsed once.
pub struct Codec {
  by_fingerprint: HashMap<Header, Vec<Arc<Version>>>,
  current: HashMap<String, Arc<Version>>,
}

impl Codec {
  /// Parses schemas; of each name the highest version is the current one.
  ///
  /// # Errors
  /// A schema does not parse, a version is missing, or an older version can't be read as the next one.
  pub fn new(schemas: &[SchemaText<'_>], upcasts: &[Upcast]) -> Result<Self, Error> {
    let mut by_fingerprint: HashMap<Header, Vec<Arc<Version>>> = HashMap::new();
    let mut current = HashMap::new();
    for version in schema_set::versions(schemas, upcasts)? {
      if version.is_current() {
        current.insert(version.name.clone(), Arc::clone(&version));
      }
      by_fingerprint.entry(version.header).or_default().push(version);
    }
    Ok(Self { by_fingerprint, current })
  }

  /// The codec of the product's schemas.
  pub fn of_product() -> &'static Self {
    &PUBLISHED
  }

  /// Encodes a body with the current version of its type, leaving `room` bytes between header and body.
  ///
  /// # Errors
  /// The type has no schema, or the struct does not fit it.
  pub fn encode<C: Content>(&self, content: &C, room: usize) -> Result<Encoded, Error> {
    content.encode_with(Encoder { codec: self, room })
  }

  /// Decodes a body of type `type_name` (`ce_type`) whose value began with `header`.
  ///
  /// # Errors
  /// The type or the schema is unknown, or the body does not fit.
  pub fn decode<C: Content>(&self, type_name: &str, header: &Header, body: &[u8]) -> Result<C, Error> {
    Self::decode_as(self.writer(type_name, header)?, body)
  }

  /// Decodes a body that `version` wrote.
  pub(crate) fn decode_as<C: Content>(version: &Version, body: &[u8]) -> Result<C, Error> {
    C::decode_with(&version.name, Decoder { version, body }).ok_or_else(|| Error::UnknownType { type_name: version.type_name.to_string() })?
  }

  /// The schema that wrote a value: by fingerprint, and among versions that share one by `ce_type`.
  pub(crate) fn writer(&self, type_name: &str, header: &Header) -> Result<&Version, Error> {
    if header[..2] != schema_set::MARKER {
      return Err(Error::NotSingleObject { type_name: type_name.to_owned() });
    }
    let same = self.by_fingerprint.get(header).map(Vec::as_slice).unwrap_or_default();
    same.iter().find(|version| &*version.type_name == type_name).map(|version| &**version).ok_or_else(|| self.unknown(type_name, header))
  }

  fn unknown(&self, type_name: &str, header: &Header) -> Error {
    let name = type_name.rsplit_once(".v").map_or(type_name, |(name, _)| name);
    if self.current.contains_key(name) {
      Error::UnknownFingerprint { type_name: type_name.to_owned(), fingerprint: hex::encode(&header[2..]) }
    } else {
      Error::UnknownType { type_name: type_name.to_owned() }
    }
  }
}

struct Encoder<'c> {
  codec: &'c Codec,
  room: usize,
}

impl BodyEncoder for Encoder<'_> {
  type Ok = Encoded;
  type Error = Error;

  fn encode<T: Serialize>(self, type_name: &'static str, body: &T) -> Result<Encoded, Error> {
    let version = self.codec.current.get(type_name).ok_or_else(|| Error::UnknownType { type_name: type_name.to_owned() })?;
    let mut bytes = Vec::with_capacity(512);
    bytes.extend_from_slice(&version.header);
    bytes.resize(HEADER_BYTES + self.room, 0);
    binary::append(&mut bytes, body).map_err(|source| Error::Encode { type_name: type_name.to_owned(), source: Box::new(source) })?;
    Ok(Encoded { type_name: Arc::clone(&version.type_name), bytes, body_at: HEADER_BYTES + self.room })
  }
}

struct Decoder<'c> {
  version: &'c Version,
  body: &'c [u8],
}

impl BodyDecoder for Decoder<'_> {
  type Error = Error;

  fn decode<T: DeserializeOwned>(self) -> Result<T, Error> {
    let failed = |source| Error::Decode { type_name: self.version.type_name.to_string(), source };
    if !self.version.is_current() {
      return older::decode(self.version, self.body).map_err(failed);
    }
    binary::decode(self.body).map_err(|error| failed(Box::new(error)))
  }
}

#[cfg(test)]
mod tests;
