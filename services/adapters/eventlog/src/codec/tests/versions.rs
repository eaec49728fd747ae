//! Versions: an added field, a new version behind one fingerprint, an upcast, and what is unknown; with schemas of their own.

use serde::Deserialize;

use super::*;

/// A record of three versions: the second added a field, the third changed what `size` counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Parcel {
  label: String,
  note: Option<String>,
  grams: i64,
}

/// Stands for an enum of the domain.
#[derive(Debug, PartialEq)]
struct Parcels(Parcel);

const NAME: &str = "pa.test.Parcel";

impl Content for Parcels {
  fn encode_with<E: BodyEncoder>(&self, encoder: E) -> Result<E::Ok, E::Error> {
    encoder.encode(NAME, &self.0)
  }

  fn decode_with<D: BodyDecoder>(name: &str, decoder: D) -> Option<Result<Self, D::Error>> {
    (name == NAME).then(|| decoder.decode().map(Self))
  }
}

fn schema(fields: &str) -> String {
  format!(r#"{{ "type": "record", "name": "Parcel", "namespace": "pa.test", "fields": [{fields}] }}"#)
}

const LABEL: &str = r#"{ "name": "label", "type": "string" }"#;
const NOTE: &str = r#"{ "name": "note", "type": ["null", "string"], "default": null }"#;
const KILOS: &str = r#"{ "name": "kilos", "type": "int" }"#;
const GRAMS: &str = r#"{ "name": "grams", "type": "long", "default": 0 }"#;

fn text(version: u16, text: &str) -> SchemaText<'_> {
  SchemaText { name: NAME, version, text }
}

fn kilos_to_grams(body: Avro) -> Result<Avro, String> {
  let Avro::Record(fields) = body else { return Err("not a record".to_owned()) };
  let fields = fields.into_iter().map(|(name, value)| match (name.as_str(), value) {
    ("kilos", Avro::Int(kilos)) => ("grams".to_owned(), Avro::Long(i64::from(kilos) * 1000)),
    (_, value) => (name, value),
  });
  Ok(Avro::Record(fields.collect()))
}

const UPCAST: Upcast = Upcast { name: NAME, from: 2, apply: kilos_to_grams };

fn object(schema: &str, json: &Json) -> (Header, Vec<u8>) {
  let schema = apache_avro::Schema::parse_str(schema).unwrap();
  let mut header = [0xc3, 0x01, 0, 0, 0, 0, 0, 0, 0, 0];
  header[2..].copy_from_slice(&schema.fingerprint::<apache_avro::rabin::Rabin>().bytes);
  (header, plain_avro(&schema, json))
}

#[test]
fn older_versions_are_read_step_by_step_as_the_current_one() {
  let (one, two, three) = (schema(&[LABEL, KILOS].join(",")), schema(&[LABEL, NOTE, KILOS].join(",")), schema(&[LABEL, NOTE, GRAMS].join(",")));
  let codec = Codec::new(&[text(1, &one), text(3, &three), text(2, &two)], &[UPCAST]).unwrap();

  let (header, body) = object(&one, &serde_json::json!({ "label": "书", "kilos": 3 }));
  let read: Parcels = codec.decode("pa.test.Parcel.v1", &header, &body).unwrap();
  assert_eq!(read, Parcels(Parcel { label: "书".to_owned(), note: None, grams: 3_000 }));

  let (header, body) = object(&two, &serde_json::json!({ "label": "b", "note": "fragile", "kilos": 1 }));
  let read: Parcels = codec.decode("pa.test.Parcel.v2", &header, &body).unwrap();
  assert_eq!(read, Parcels(Parcel { label: "b".to_owned(), note: Some("fragile".to_owned()), grams: 1_000 }));

  let current = Parcels(Parcel { label: "c".to_owned(), note: None, grams: 5 });
  let encoded = codec.encode(&current, 12).unwrap();
  assert_eq!((&*encoded.type_name, encoded.body_at), ("pa.test.Parcel.v3", 22));
  assert_eq!(codec.decode::<Parcels>(&encoded.type_name, header_of(&encoded.bytes), &encoded.bytes[22..]).unwrap(), current);
}

#[test]
fn an_added_field_takes_its_default() {
  let (one, two) = (schema(LABEL), schema(&[LABEL, NOTE, r#"{ "name": "grams", "type": "long", "default": 7 }"#].join(",")));
  let codec = Codec::new(&[text(1, &one), text(2, &two)], &[]).unwrap();
  let (header, body) = object(&one, &serde_json::json!({ "label": "a" }));
  let read: Parcels = codec.decode("pa.test.Parcel.v1", &header, &body).unwrap();
  assert_eq!(read.0, Parcel { label: "a".to_owned(), note: None, grams: 7 });
}

#[test]
fn versions_that_share_a_fingerprint_are_told_apart_by_their_type() {
  let (one, two) = (schema(&[LABEL, NOTE, KILOS].join(",")), schema(&[LABEL, r#"{ "name": "note", "type": ["null", "string"] }"#, KILOS].join(",")));
  let three = schema(&[LABEL, NOTE, GRAMS].join(","));
  let codec = Codec::new(&[text(1, &one), text(2, &two), text(3, &three)], &[UPCAST]).unwrap();
  let (header, body) = object(&one, &serde_json::json!({ "label": "a", "note": null, "kilos": 2 }));
  assert_eq!(codec.by_fingerprint[&header].len(), 2, "the two share a fingerprint");
  for type_name in ["pa.test.Parcel.v1", "pa.test.Parcel.v2"] {
    assert_eq!(codec.writer(type_name, &header).unwrap().type_name.as_ref(), type_name);
    assert_eq!(codec.decode::<Parcels>(type_name, &header, &body).unwrap().0.grams, 2_000);
  }
  assert!(matches!(codec.decode::<Parcels>("pa.test.Parcel.v3", &header, &body), Err(Error::UnknownFingerprint { .. })));
}

#[test]
fn what_a_newer_binary_wrote_stops_a_partition_and_what_is_broken_does_not() {
  let one = schema(&[LABEL, NOTE, GRAMS].join(","));
  let codec = Codec::new(&[text(1, &one)], &[]).unwrap();
  let (header, body) = object(&one, &serde_json::json!({ "label": "a", "note": null, "grams": 1 }));
  let mut foreign = header;
  foreign[5] ^= 1;

  let unknown_schema = codec.decode::<Parcels>("pa.test.Parcel.v2", &foreign, &body).unwrap_err();
  assert!(matches!(&unknown_schema, Error::UnknownFingerprint { .. }) && unknown_schema.stops_partition());
  let unknown_type = codec.decode::<Parcels>("pa.test.Letter.v1", &foreign, &body).unwrap_err();
  assert!(matches!(&unknown_type, Error::UnknownType { .. }) && unknown_type.stops_partition());

  for broken in [&body[..body.len() - 1], &[body.as_slice(), &[0]].concat(), &[2, 0xff]] {
    let error = codec.decode::<Parcels>("pa.test.Parcel.v1", &header, broken).unwrap_err();
    assert!(matches!(&error, Error::Decode { .. }) && !error.stops_partition(), "{error}");
  }
  let error = codec.decode::<Parcels>("pa.test.Parcel.v1", &[0; HEADER_BYTES], &body).unwrap_err();
  assert!(matches!(&error, Error::NotSingleObject { .. }) && !error.stops_partition());
}

#[test]
fn an_input_among_events_is_an_unknown_type_there() {
  let codec = Codec::of_product();
  let body = from_json("pa.agent.AgentCreateAsked", &serde_json::json!({ "owner_name": "a" }));
  let encoded = body.encode(codec).unwrap();
  let error = codec.decode::<Event>(&encoded.type_name, header_of(&encoded.bytes), &encoded.bytes[encoded.body_at..]).unwrap_err();
  assert!(matches!(error, Error::UnknownType { .. }));
}

#[test]
fn schemas_that_do_not_fit_each_other_are_refused_at_the_start() {
  let (one, two) = (schema(LABEL), schema(&[LABEL, KILOS].join(",")));
  let no_default = Codec::new(&[text(1, &one), text(2, &two)], &[]).err().unwrap();
  assert!(matches!(&no_default, Error::Schema { version: 1, .. }), "{no_default}");
  let skipped = Codec::new(&[text(1, &one), text(3, &one)], &[]).err().unwrap();
  assert!(matches!(&skipped, Error::Schema { version: 1, .. }), "{skipped}");
  let renamed = Codec::new(&[SchemaText { name: "pa.test.Other", version: 1, text: &one }], &[]).err().unwrap();
  assert!(matches!(&renamed, Error::Schema { .. }), "{renamed}");
}
