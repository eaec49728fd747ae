//! A record as a Kafka message and back: `CloudEvents` 1.0 Kafka binding in binary mode, so that other tools can read the headers.

use std::sync::Arc;

use bytes::Bytes;
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use uuid::Uuid;

use crate::meta;
use crate::record::{CONTENT_TYPE, Record, ce_time};

const SPEC_VERSION: &str = "1.0";

/// A message that is none of ours.
#[derive(Debug, thiserror::Error)]
#[error("its header {0} is missing or malformed")]
pub(super) struct Foreign(&'static str);

/// The headers of a record, and the key by which Kafka's own tools tell agents apart.
pub(super) fn headers(record: &Record) -> (OwnedHeaders, Option<Uuid>) {
  let text = |key: &'static str, value: &str| (key, value.as_bytes().to_vec());
  let mut all = vec![
    text("ce_specversion", SPEC_VERSION),
    text("ce_id", &record.id.to_string()),
    text("ce_source", &record.source),
    text("ce_type", &record.type_name),
    text("content-type", CONTENT_TYPE),
  ];
  // Records about a partition have no agent; what can't be decoded is refused by whoever reads it, not here.
  let core = meta::decode(record.id, &record.meta).ok().map(|meta| meta.core);
  all.extend(core.as_ref().map(|core| text("ce_time", &ce_time(core.at))));
  all.extend(record.traceparent.as_ref().map(|trace| text("traceparent", trace)));
  all.push(("pa-meta", record.meta.to_vec()));
  let headers = all.iter().fold(OwnedHeaders::new_with_capacity(all.len()), |headers, (key, value)| headers.insert(Header { key, value: Some(value) }));
  (headers, core.map(|core| core.agent.0).filter(|agent| !agent.is_nil()))
}

/// The record of a message.
pub(super) fn record(message: &BorrowedMessage<'_>, names: &mut Names) -> Result<Record, Foreign> {
  let headers = message.headers().ok_or(Foreign("ce_id"))?;
  let (mut id, mut type_name, mut source, mut traceparent, mut meta) = (None, None, None, None, None);
  for header in headers.iter() {
    let value = header.value.unwrap_or_default();
    match header.key {
      "ce_id" => id = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()),
      "ce_type" => type_name = names.shared(value),
      "ce_source" => source = names.shared(value),
      "traceparent" => traceparent = std::str::from_utf8(value).ok().map(Arc::from),
      "pa-meta" => meta = Some(Bytes::copy_from_slice(value)),
      // Gateways between clusters add their own.
      _ => {}
    }
  }
  Ok(Record {
    id: id.ok_or(Foreign("ce_id"))?,
    type_name: type_name.ok_or(Foreign("ce_type"))?,
    source: source.ok_or(Foreign("ce_source"))?,
    traceparent,
    meta: meta.ok_or(Foreign("pa-meta"))?,
    value: Bytes::copy_from_slice(message.payload().unwrap_or_default()),
  })
}

/// Type and source names repeat: one allocation each.
#[derive(Default)]
pub(super) struct Names(Vec<Arc<str>>);

/// There are some two hundred types; a foreign writer must not make this grow for ever.
const NAMES_MAX: usize = 512;

impl Names {
  fn shared(&mut self, name: &[u8]) -> Option<Arc<str>> {
    if let Some(known) = self.0.iter().find(|known| known.as_bytes() == name) {
      return Some(Arc::clone(known));
    }
    let name: Arc<str> = Arc::from(std::str::from_utf8(name).ok()?);
    if self.0.len() < NAMES_MAX {
      self.0.push(Arc::clone(&name));
    }
    Some(name)
  }
}
