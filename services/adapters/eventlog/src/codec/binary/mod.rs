//! Avro's binary encoding for the shapes that record bodies have, straight from and into serde.
//!
//! A body is written and read with the schema of its own version, whose fields and symbols stand in the order of the Rust type: so the type itself drives the
//! encoding, and no schema is walked. The allowed shapes are string, int and long, boolean, bytes, array, record, unit enum and `[null, T]`; anything else is an
//! error. That the bytes are those of `apache-avro` is proven on every golden record and every example of every schema.

mod de;
mod ser;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A body that does not have an allowed shape, or bytes that are none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
  #[error("{0} has no place in a record body")]
  Shape(&'static str),
  #[error("the bytes end in the middle of a value")]
  End,
  #[error("a number has too many bytes")]
  Number,
  #[error("a length of {0} is out of range")]
  Length(i64),
  #[error("a text is not utf-8")]
  Text,
  #[error("symbol or branch {0} does not exist")]
  Index(i64),
  #[error("{0} bytes after its end")]
  Rest(usize),
  #[error("{0}")]
  Type(String),
}

impl serde::ser::Error for Error {
  fn custom<T: std::fmt::Display>(text: T) -> Self {
    Self::Type(text.to_string())
  }
}

impl serde::de::Error for Error {
  fn custom<T: std::fmt::Display>(text: T) -> Self {
    Self::Type(text.to_string())
  }
}

/// Appends the encoding of `body` to `bytes`.
pub(crate) fn append<T: Serialize>(bytes: &mut Vec<u8>, body: &T) -> Result<(), Error> {
  body.serialize(&mut ser::Writer { bytes })
}

/// Decodes a body that fills `bytes` to the end.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
  let mut reader = de::Reader { bytes };
  let body = T::deserialize(&mut reader)?;
  if reader.bytes.is_empty() { Ok(body) } else { Err(Error::Rest(reader.bytes.len())) }
}
