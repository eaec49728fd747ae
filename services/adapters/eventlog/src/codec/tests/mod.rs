//! The schema walk, the golden records, and versions.

mod golden;
mod versions;
mod walk;

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as Avro;
use apache_avro::writer::datum::GenericDatumWriter;
use pa_domain::{BodyDecoder, BodyEncoder, Event, Input};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::*;

/// A body of either stream.
#[derive(Debug, PartialEq)]
enum Body {
  Input(Input),
  Event(Event),
}

impl Body {
  fn encode(&self, codec: &Codec) -> Result<Encoded, Error> {
    match self {
      Self::Input(input) => codec.encode(input, 0),
      Self::Event(event) => codec.encode(event, 0),
    }
  }

  fn json(&self) -> Json {
    match self {
      Self::Input(input) => input.encode(AsJson).unwrap(),
      Self::Event(event) => event.encode(AsJson).unwrap(),
    }
  }
}

impl Content for Body {
  fn encode_with<E: BodyEncoder>(&self, encoder: E) -> Result<E::Ok, E::Error> {
    match self {
      Self::Input(input) => input.encode(encoder),
      Self::Event(event) => event.encode(encoder),
    }
  }

  fn decode_with<D: BodyDecoder>(name: &str, decoder: D) -> Option<Result<Self, D::Error>> {
    if Input::types().any(|(known, _)| *known == name) {
      Input::decode(name, decoder).map(|body| body.map(Self::Input))
    } else {
      Event::decode(name, decoder).map(|body| body.map(Self::Event))
    }
  }
}

struct AsJson;

impl BodyEncoder for AsJson {
  type Ok = Json;
  type Error = serde_json::Error;

  fn encode<T: Serialize>(self, _: &'static str, body: &T) -> Result<Json, serde_json::Error> {
    serde_json::to_value(body)
  }
}

struct FromJson(Json);

impl BodyDecoder for FromJson {
  type Error = serde_json::Error;

  fn decode<T: DeserializeOwned>(self) -> Result<T, serde_json::Error> {
    serde_json::from_value(self.0)
  }
}

fn from_json(type_name: &str, json: &Json) -> Body {
  Body::decode_with(type_name, FromJson(json.clone()))
    .unwrap_or_else(|| panic!("{type_name} is no record of the domain"))
    .unwrap_or_else(|error| panic!("{type_name}: {error}"))
}

/// Encodes with apache-avro alone, from the JSON, without any struct.
fn plain_avro(schema: &apache_avro::Schema, json: &Json) -> Vec<u8> {
  let value = Avro::try_from(json.clone()).unwrap().resolve(schema).unwrap();
  GenericDatumWriter::builder(schema).human_readable(false).build().unwrap().write_value_to_vec(value).unwrap()
}

struct FromAvro<'a>(&'a apache_avro::Schema, &'a [u8]);

impl BodyDecoder for FromAvro<'_> {
  type Error = apache_avro::Error;

  fn decode<T: DeserializeOwned>(mut self) -> Result<T, apache_avro::Error> {
    let reader = GenericDatumReader::builder(self.0).human_readable(false).build()?;
    apache_avro::from_value(&reader.read_value(&mut self.1)?)
  }
}

fn examples(schema: &str) -> Vec<Json> {
  let schema: Json = serde_json::from_str(schema).unwrap();
  schema["examples"].as_array().unwrap_or_else(|| panic!("{} has no examples", schema["name"])).clone()
}

fn header_of(bytes: &[u8]) -> &Header {
  bytes.first_chunk().unwrap()
}
