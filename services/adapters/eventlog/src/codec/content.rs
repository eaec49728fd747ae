//! What the codec encodes: the domain's inputs and events.

use pa_domain::{BodyDecoder, BodyEncoder, Event, Input};

/// An enum over record bodies.
pub trait Content: Sized {
  /// Encodes the body.
  fn encode_with<E: BodyEncoder>(&self, encoder: E) -> Result<E::Ok, E::Error>;
  /// Decodes the body of type `name` (without version); `None` for a type that isn't of this enum.
  fn decode_with<D: BodyDecoder>(name: &str, decoder: D) -> Option<Result<Self, D::Error>>;
}

impl Content for Input {
  fn encode_with<E: BodyEncoder>(&self, encoder: E) -> Result<E::Ok, E::Error> {
    self.encode(encoder)
  }

  fn decode_with<D: BodyDecoder>(name: &str, decoder: D) -> Option<Result<Self, D::Error>> {
    Self::decode(name, decoder)
  }
}

impl Content for Event {
  fn encode_with<E: BodyEncoder>(&self, encoder: E) -> Result<E::Ok, E::Error> {
    self.encode(encoder)
  }

  fn decode_with<D: BodyDecoder>(name: &str, decoder: D) -> Option<Result<Self, D::Error>> {
    Self::decode(name, decoder)
  }
}
