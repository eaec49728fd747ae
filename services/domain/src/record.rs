//! The one macro: a context's record enum, with the names that the log knows each record by.

/// Declares a context's enum over its record structs, one per line as `Name = version`, and the table that names, encodes and decodes them.
macro_rules! records {
  ($(#[$doc:meta])* $context:literal $enum:ident { $($name:ident = $version:literal),+ $(,)? }) => {
    $(#[$doc])*
    #[derive(Clone, Debug, PartialEq)]
    pub enum $enum { $($name($name)),+ }

    impl $enum {
      /// The type of each record of this enum as the log writes it, with its current version.
      pub const TYPES: &'static [(&'static str, u16)] = &[$((concat!("pa.", $context, ".", stringify!($name)), $version)),+];

      /// The record's type, without its version: `pa.<context>.<Name>`.
      pub fn type_name(&self) -> &'static str {
        match self { $(Self::$name(_) => concat!("pa.", $context, ".", stringify!($name))),+ }
      }

      /// The record's type as `CloudEvents` carry it: `pa.<context>.<Name>.v<version>`.
      pub fn versioned_type(&self) -> &'static str {
        match self { $(Self::$name(_) => concat!("pa.", $context, ".", stringify!($name), ".v", $version)),+ }
      }

      /// Encodes the body with an encoder that knows the schemas.
      pub fn encode<E: $crate::event::BodyEncoder>(&self, encoder: E) -> Result<E::Ok, E::Error> {
        match self { $(Self::$name(body) => encoder.encode(concat!("pa.", $context, ".", stringify!($name)), body)),+ }
      }

      /// Decodes the body of type `type_name` (without version); `None` for a type that isn't of this enum.
      pub fn decode<D: $crate::event::BodyDecoder>(type_name: &str, decoder: D) -> Option<Result<Self, D::Error>> {
        match type_name {
          $(concat!("pa.", $context, ".", stringify!($name)) => Some(decoder.decode::<$name>().map(Self::$name)),)+
          _ => None,
        }
      }
    }

    $(impl From<$name> for $enum { fn from(body: $name) -> Self { Self::$name(body) } })+
    $(impl From<$name> for $crate::event::$enum { fn from(body: $name) -> Self { Self::from($enum::$name(body)) } })+
  };
}
pub(crate) use records;
