//! The JSON object of one record.

use pa_domain::BodyEncoder;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::meta::PaMeta;
use crate::opener::Opened;
use crate::record::{CONTENT_TYPE, Partition, Stored, Stream, ce_time};

/// A record's content, as far as it can be shown.
pub(super) enum Body {
  Json(Value),
  Erased,
  Unreadable(String),
}

/// Gives a body as JSON, by the same names that its schema has.
struct Json;

impl BodyEncoder for Json {
  type Ok = Value;
  type Error = serde_json::Error;

  fn encode<T: Serialize>(self, _type_name: &'static str, body: &T) -> Result<Value, serde_json::Error> {
    serde_json::to_value(body)
  }
}

impl Body {
  pub(super) fn of(opened: &Opened) -> Self {
    let encoded = match opened {
      Opened::Event(recorded) => recorded.event.encode(Json),
      Opened::Input(recorded) => recorded.input.encode(Json),
      Opened::Erased => return Self::Erased,
      Opened::Unreadable(reason) => return Self::Unreadable(reason.to_string()),
    };
    encoded.map_or_else(Self::failed, Self::Json)
  }

  pub(super) fn json(body: &impl Serialize) -> Self {
    serde_json::to_value(body).map_or_else(Self::failed, Self::Json)
  }

  pub(super) fn failed(error: impl std::fmt::Display) -> Self {
    Self::Unreadable(error.to_string())
  }
}

/// The line of a record.
pub(super) fn of(stream: Stream, partition: Partition, stored: &Stored, void: Option<String>, body: Option<Body>) -> Value {
  let mut line = Map::new();
  line.insert("stream".to_owned(), json!(format!("pa.{}", stream.name())));
  line.insert("partition".to_owned(), json!(partition));
  line.insert("offset".to_owned(), json!(stored.position));
  line.insert("headers".to_owned(), headers(stored));
  match stored.meta() {
    Ok(meta) => line.insert("meta".to_owned(), metadata(meta)),
    Err(error) => line.insert("unreadable".to_owned(), json!(error.to_string())),
  };
  if let Some(void) = void {
    line.insert("void".to_owned(), json!(void));
  }
  match body {
    None => None,
    Some(Body::Json(body)) => line.insert("body".to_owned(), body),
    Some(Body::Erased) => line.insert("erased".to_owned(), json!(true)),
    Some(Body::Unreadable(reason)) => line.insert("unreadable".to_owned(), json!(reason)),
  };
  Value::Object(line)
}

fn headers(stored: &Stored) -> Value {
  let record = &stored.record;
  let mut headers = Map::new();
  headers.insert("ce_specversion".to_owned(), json!("1.0"));
  headers.insert("ce_id".to_owned(), json!(record.id.to_string()));
  headers.insert("ce_type".to_owned(), json!(&*record.type_name));
  headers.insert("ce_source".to_owned(), json!(&*record.source));
  if let Ok(meta) = stored.meta() {
    headers.insert("ce_time".to_owned(), json!(ce_time(meta.core.at)));
  }
  headers.insert("content-type".to_owned(), json!(CONTENT_TYPE));
  if let Some(trace) = &record.traceparent {
    headers.insert("traceparent".to_owned(), json!(&**trace));
  }
  Value::Object(headers)
}

fn metadata(meta: &PaMeta) -> Value {
  let PaMeta { core, prevhash, place } = meta;
  json!({
    "core": {
      "kind": core.kind,
      "agent": core.agent,
      "ordinal": core.ordinal,
      "at_ms": core.at.0,
      "cause": core.cause.to_string(),
      "correlation": core.correlation.to_string(),
      "actor": core.actor,
      "origin": core.origin,
      "producer": core.producer,
      "key": hex::encode(&core.key),
    },
    "prevhash": hex::encode(prevhash),
    "place": {
      "input": place.input,
      "held": place.held,
      "part": place.part,
      "parts": place.parts,
      "epoch": place.epoch,
      "seq": place.seq,
      "keyid": place.keyid,
    },
  })
}
