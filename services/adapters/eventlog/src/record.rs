//! A record as the log stores it, the same on every engine.
//!
//! `CloudEvents` 1.0 Kafka binding, binary mode: `id`, `type_name`, `source`, `ce_time` (mirrors `at` of the meta) and `traceparent` are headers, `meta` is the binary
//! header `pa-meta`, `value` the sealed single-object Avro body. Headers hold no content.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pa_domain::Timestamp;
use uuid::Uuid;

use crate::meta::{self, PaMeta};
use crate::opener::Opened;

/// A partition's number, from 0.
pub type Partition = u16;
/// A record's offset in one partition of one stream. Only for resuming readers and for the `input` field: the outside counts in ordinals.
pub type Position = i64;

/// The three streams of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
  /// Commands and reports; kept 90 days.
  Inputs,
  /// Facts; kept for ever.
  Events,
  /// Pieces of replies and step names between processes; minutes, best effort.
  Pieces,
}

impl Stream {
  /// The stream's topic name behind the prefix: `inputs`, `events`, `stream`.
  pub fn name(self) -> &'static str {
    match self {
      Self::Inputs => "inputs",
      Self::Events => "events",
      Self::Pieces => "stream",
    }
  }
}

/// The `content-type` of every record: its value is an Avro single object, its body sealed.
pub(crate) const CONTENT_TYPE: &str = "application/avro";

/// What is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
  pub id: Uuid,
  /// `ce_type`: `pa.<context>.<Name>.v<version>`.
  pub type_name: Arc<str>,
  /// `ce_source`: which part of the product appended it, such as `pa/gateway`.
  pub source: Arc<str>,
  pub traceparent: Option<Arc<str>>,
  /// The `pa-meta` header's bytes.
  pub meta: Bytes,
  pub value: Bytes,
}

impl Record {
  /// The size that limits count: header and value bytes.
  pub fn size_bytes(&self) -> usize {
    16 + self.type_name.len() + self.source.len() + self.traceparent.as_ref().map_or(0, |trace| trace.len()) + self.meta.len() + self.value.len()
  }
}

/// A record as read back. Metadata, digest and opened content are computed once and shared by all readers of the process.
#[derive(Debug)]
pub struct Stored {
  pub position: Position,
  pub record: Record,
  pub(crate) meta: OnceLock<Arc<PaMeta>>,
  pub(crate) digest: OnceLock<[u8; 32]>,
  pub(crate) opened: OnceLock<Opened>,
}

impl Stored {
  /// A record that was read at `position`.
  pub fn new(position: Position, record: Record) -> Self {
    Self { position, record, meta: OnceLock::new(), digest: OnceLock::new(), opened: OnceLock::new() }
  }

  /// The record's metadata, decoded once.
  ///
  /// # Errors
  /// The header is of a newer binary or damaged: both stop a reader.
  pub fn meta(&self) -> Result<&Arc<PaMeta>, meta::Error> {
    if let Some(meta) = self.meta.get() {
      return Ok(meta);
    }
    let decoded = meta::decode(self.record.id, &self.record.meta)?;
    Ok(self.meta.get_or_init(|| Arc::new(decoded)))
  }
}

/// An instant as `CloudEvents` writes a time: RFC 3339 in UTC, with milliseconds.
pub(crate) fn ce_time(at: Timestamp) -> String {
  let ms = at.0;
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
  use super::*;

  #[test]
  fn times_are_written_as_the_calendar_has_them() {
    for (ms, written) in [
      (0, "1970-01-01T00:00:00.000Z"),
      (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (1_767_225_600_123, "2026-01-01T00:00:00.123Z"),
      (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
      (-1, "1969-12-31T23:59:59.999Z"),
    ] {
      assert_eq!(ce_time(Timestamp(ms)), written);
    }
  }
}
