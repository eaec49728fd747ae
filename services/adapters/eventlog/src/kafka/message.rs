//! A record as a Kafka message and back: `CloudEvents` 1.0 Kafka binding in binary mode, so that other tools can read the headers.

use std::sync::Arc;

use bytes::Bytes;
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use uuid::Uuid;

use crate::meta;
use crate::record::Record;

const SPEC_VERSION: &str = "1.0";
/// The value is an Avro single object, its body sealed.
const CONTENT_TYPE: &str = "application/avro";

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
  all.extend(core.as_ref().map(|core| text("ce_time", &rfc3339(core.at.0))));
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

/// Milliseconds UTC as `CloudEvents` writes a time.
fn rfc3339(ms: i64) -> String {
  let (days, in_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
  // Days since 1970 to a date of the Gregorian calendar, in eras of 400 years that begin on 1 March.
  let shifted = days + 719_468;
  let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
  let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
  let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  let month_from_march = (5 * of_year + 2) / 153;
  let day = of_year - (153 * month_from_march + 2) / 5 + 1;
  let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
  let year = year_of_era + era * 400 + i64::from(month <= 2);
  let (hour, minute, second, milli) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1_000 % 60, in_day % 1_000);
  format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
  use super::rfc3339;

  #[test]
  fn times_are_written_as_the_calendar_has_them() {
    for (ms, written) in [
      (0, "1970-01-01T00:00:00.000Z"),
      (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (1_767_225_600_123, "2026-01-01T00:00:00.123Z"),
      (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
      (-1, "1969-12-31T23:59:59.999Z"),
    ] {
      assert_eq!(rfc3339(ms), written);
    }
  }
}
