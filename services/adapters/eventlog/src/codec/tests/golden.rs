//! Golden records: bodies as some binary stored them, which every later one must read to the same content.
//!
//! `schemas/golden/<type>.v<n>.bin` holds single objects, each behind its length (4 bytes, big-endian), `.json` their content. A run with `PA_GOLDEN=write` adds
//! what is missing and never touches what is there.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::meta;

fn folder() -> PathBuf {
  PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../schemas/golden")
}

#[expect(clippy::disallowed_methods, reason = "a switch of this test alone")]
fn writes() -> bool {
  std::env::var("PA_GOLDEN").is_ok_and(|value| value == "write")
}

fn framed(objects: &[Vec<u8>]) -> Vec<u8> {
  objects.iter().flat_map(|object| [&u32::try_from(object.len()).unwrap().to_be_bytes(), object.as_slice()].concat()).collect()
}

fn unframed(mut bytes: &[u8]) -> Vec<Vec<u8>> {
  let mut objects = Vec::new();
  while let Some((length, rest)) = bytes.split_first_chunk() {
    let (object, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
    objects.push(object.to_vec());
    bytes = rest;
  }
  objects
}

fn stored(name: &str, fresh: impl FnOnce() -> (Vec<Vec<u8>>, Vec<Json>)) -> (Vec<Vec<u8>>, Vec<Json>) {
  let (bin, json) = (folder().join(format!("{name}.bin")), folder().join(format!("{name}.json")));
  if writes() && !bin.exists() {
    let (objects, contents) = fresh();
    fs::create_dir_all(folder()).unwrap();
    fs::write(&json, serde_json::to_string_pretty(&contents).unwrap() + "\n").unwrap();
    fs::write(&bin, framed(&objects)).unwrap();
  }
  let objects = unframed(&fs::read(&bin).unwrap_or_else(|_| panic!("{name} has no golden record: run this test once with PA_GOLDEN=write")));
  (objects, serde_json::from_slice(&fs::read(&json).unwrap()).unwrap())
}

#[test]
fn golden_records_are_read_as_they_were_written() {
  let codec = Codec::of_product();
  for file in pa_schemas::bodies() {
    let type_name = format!("{}.v{}", file.type_name, file.version);
    let fresh = || {
      let contents = examples(file.text);
      let objects = contents.iter().map(|json| from_json(file.type_name, json).encode(codec).unwrap().bytes).collect();
      (objects, contents)
    };
    let (objects, contents) = stored(&type_name, fresh);
    assert_eq!(objects.len(), contents.len(), "{type_name}");
    let schema = apache_avro::Schema::parse_str(file.text).unwrap();
    for (object, content) in objects.iter().zip(&contents) {
      let body: Body = codec.decode(&type_name, header_of(object), &object[HEADER_BYTES..]).unwrap();
      let through_avro = Body::decode_with(file.type_name, FromAvro(&schema, &object[HEADER_BYTES..])).unwrap().unwrap();
      assert_eq!(through_avro, body, "{type_name}: the two codecs read other bodies");
      if codec.current[file.type_name].number == file.version {
        assert_eq!(&body.json(), content, "{type_name}");
        assert_eq!(&body.encode(codec).unwrap().bytes, object, "{type_name}: written in other bytes than before");
        assert_eq!(plain_avro(&schema, content), object[HEADER_BYTES..], "{type_name}: the two codecs write other bytes");
      }
    }
  }
}

#[test]
fn no_golden_record_has_lost_its_schema() {
  let known: Vec<String> = pa_schemas::FILES.iter().map(|file| format!("{}.v{}", file.type_name, file.version)).collect();
  for entry in fs::read_dir(folder()).unwrap() {
    let path = entry.unwrap().path();
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    assert!(known.contains(&name), "{name} has a golden record and no schema");
  }
}

#[test]
fn golden_metadata_is_read_as_it_was_written() {
  let file = pa_schemas::FILES.iter().find(|file| file.type_name == pa_schemas::META).unwrap();
  let schema = apache_avro::Schema::parse_str(file.text).unwrap();
  let fresh = || {
    let contents = examples(file.text);
    (contents.iter().map(|json| [meta::FINGERPRINT.as_slice(), &plain_avro(&schema, json)].concat()).collect(), contents)
  };
  let (objects, contents) = stored("pa.log.Meta.v1", fresh);
  assert_eq!(objects.len(), contents.len());
  for (object, content) in objects.iter().zip(&contents) {
    let decoded = meta::decode(uuid::Uuid::nil(), object).unwrap();
    assert_eq!(meta::encode(&decoded).unwrap(), object, "{content}");
    assert_eq!(plain_avro(&schema, content), object[HEADER_BYTES..], "{content}");
  }
}
