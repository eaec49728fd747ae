//! The contract: every record of the log as an Avro schema, written by hand.
//!
//! `<context>/<name>.v<version>.avsc` holds one version of one record with its `"examples"`; `log/meta.v1.avsc` is the `pa-meta` header. A published file never
//! changes: an added field is a new version, a changed meaning a new record. Parsing and checking is `pa_eventlog::codec`'s; here the files are only collected.
//! `golden/` holds stored bodies that every later binary must still read; they may only be added.

/// One schema file.
#[derive(Clone, Copy, Debug)]
pub struct SchemaFile {
  /// Its folder, such as `conversation`.
  pub context: &'static str,
  /// Its name, such as `message_admitted`.
  pub name: &'static str,
  pub version: u16,
  /// The record's name, such as `pa.conversation.MessageAdmitted`.
  pub type_name: &'static str,
  pub text: &'static str,
}

/// Every schema, by context, name and version.
pub const FILES: &[SchemaFile] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The record that the `pa-meta` header holds.
pub const META: &str = "pa.log.Meta";

/// Every schema of a record's body: all but the header's.
pub fn bodies() -> impl Iterator<Item = &'static SchemaFile> {
  FILES.iter().filter(|file| file.type_name != META)
}
