//! The schemas of one codec: every version of every record, parsed, each linked to the version after it.

use std::sync::Arc;

use apache_avro::schema_compatibility::{Compatibility, SchemaCompatibility};

use super::older::{Step, Upcast};
use super::{Error, Header};

/// What a single object begins with.
pub(super) const MARKER: [u8; 2] = [0xc3, 0x01];

/// One schema file.
#[derive(Clone, Copy, Debug)]
pub struct SchemaText<'t> {
  /// `pa.<context>.<Name>`, without version.
  pub name: &'t str,
  pub version: u16,
  pub text: &'t str,
}

/// One version of one record.
pub(crate) struct Version {
  pub(super) name: String,
  pub(super) number: u16,
  /// `ce_type`.
  pub(super) type_name: Arc<str>,
  pub(super) header: Header,
  pub(super) full: apache_avro::Schema,
  /// How a body of this version becomes one of the next; `None` for the current one.
  pub(super) next: Option<(Step, Arc<Version>)>,
}

impl Version {
  pub(super) fn is_current(&self) -> bool {
    self.next.is_none()
  }
}

/// The product's schemas.
pub fn published() -> Vec<SchemaText<'static>> {
  pa_schemas::bodies().map(|file| SchemaText { name: file.type_name, version: file.version, text: file.text }).collect()
}

/// Parses and links all versions.
pub(super) fn versions(schemas: &[SchemaText<'_>], upcasts: &[Upcast]) -> Result<Vec<Arc<Version>>, Error> {
  let mut sorted: Vec<&SchemaText<'_>> = schemas.iter().collect();
  // Highest version first: a version is linked to the one after it.
  sorted.sort_by_key(|schema| (schema.name, std::cmp::Reverse(schema.version)));
  let mut all: Vec<Arc<Version>> = Vec::with_capacity(sorted.len());
  for schema in sorted {
    let after = all.last().filter(|after| after.name == schema.name).cloned();
    all.push(Arc::new(parse(schema, after, upcasts)?));
  }
  Ok(all)
}

fn parse(schema: &SchemaText<'_>, after: Option<Arc<Version>>, upcasts: &[Upcast]) -> Result<Version, Error> {
  let unusable = |reason: String| Error::Schema { name: schema.name.to_owned(), version: schema.version, reason };
  let full = apache_avro::Schema::parse_str(schema.text).map_err(|error| unusable(format!("{error}")))?;
  if full.name().map(|name| name.fullname(None)).as_deref() != Some(schema.name) {
    return Err(unusable("its record has another name than its file".to_owned()));
  }
  let next = after.map(|after| link(schema.version, &full, after, upcasts).map_err(unusable)).transpose()?;
  let mut header = [0; super::HEADER_BYTES];
  header[..2].copy_from_slice(&MARKER);
  header[2..].copy_from_slice(&full.fingerprint::<apache_avro::rabin::Rabin>().bytes);
  let type_name = Arc::from(format!("{}.v{}", schema.name, schema.version));
  Ok(Version { name: schema.name.to_owned(), number: schema.version, type_name, header, full, next })
}

fn link(number: u16, full: &apache_avro::Schema, after: Arc<Version>, upcasts: &[Upcast]) -> Result<(Step, Arc<Version>), String> {
  if after.number != number + 1 {
    return Err(format!("version {} follows it", after.number));
  }
  if let Some(upcast) = upcasts.iter().find(|upcast| upcast.name == after.name && upcast.from == number) {
    return Ok((Step::Upcast(upcast.apply), after));
  }
  match SchemaCompatibility::can_read(full, &after.full) {
    Ok(Compatibility::Full) => Ok((Step::Resolve, after)),
    Ok(Compatibility::Partial) => Err(format!("version {} can't read all of it", after.number)),
    Err(error) => Err(format!("version {} can't read it: {error}", after.number)),
  }
}
