//! Bodies that an older version wrote: one step from each version to the next, then into the struct of the current one.
//!
//! A step is Avro's own resolution (an added field takes its default) or, where the meaning changed, an [`Upcast`]. Nothing in the log is ever rewritten.

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use serde::de::DeserializeOwned;

use super::schema_set::Version;

/// A change of meaning from one version of a record to the next: a pure function over the body.
#[derive(Clone, Copy, Debug)]
pub struct Upcast {
  /// `pa.<context>.<Name>`, without version.
  pub name: &'static str,
  /// The version that it takes; it gives the one after it.
  pub from: u16,
  pub apply: Rewrite,
}

/// Rewrites a body of one version as one of the next.
pub type Rewrite = fn(Value) -> Result<Value, String>;

/// How a body gets from one version to the next.
pub(super) enum Step {
  Resolve,
  Upcast(Rewrite),
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Decodes a body that `version`, an older one, wrote.
pub(super) fn decode<T: DeserializeOwned>(version: &Version, body: &[u8]) -> Result<T, Failure> {
  let mut rest = body;
  let reader = GenericDatumReader::builder(&version.full).human_readable(false).build()?;
  let mut value = reader.read_value(&mut rest)?;
  if !rest.is_empty() {
    return Err(format!("{} bytes after its end", rest.len()).into());
  }
  let mut at = version;
  while let Some((step, next)) = &at.next {
    let taken = match step {
      Step::Resolve => value,
      Step::Upcast(apply) => apply(value)?,
    };
    value = taken.resolve(&next.full)?;
    at = next;
  }
  Ok(apache_avro::from_value(&value)?)
}
