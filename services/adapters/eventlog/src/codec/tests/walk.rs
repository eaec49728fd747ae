//! Every schema in the tree against every record of the domain.

use std::collections::{HashMap, HashSet};

use apache_avro::schema_compatibility::{Compatibility, SchemaCompatibility};

use super::*;

fn snake(name: &str) -> String {
  let mut out = String::new();
  for (at, letter) in name.chars().enumerate() {
    if letter.is_uppercase() && at > 0 {
      out.push('_');
    }
    out.extend(letter.to_lowercase());
  }
  out
}

fn types() -> Vec<(&'static str, u16)> {
  Input::types().chain(Event::types()).copied().collect()
}

#[test]
fn schemas_agree_with_types() {
  let codec = Codec::of_product();
  for file in pa_schemas::bodies() {
    let (context, name) = file.type_name.strip_prefix("pa.").and_then(|rest| rest.split_once('.')).unwrap();
    assert_eq!((file.context, file.name), (context, snake(name).as_str()), "the file of {} has another name", file.type_name);
    let (_, current) = *types().iter().find(|(known, _)| *known == file.type_name).unwrap_or_else(|| panic!("{} is no record of the domain", file.type_name));
    let examples = examples(file.text);
    assert!(!examples.is_empty() && (examples.len() >= 2 || file.text.contains("\"fields\": []")), "{} has too few examples", file.type_name);
    if file.version != current {
      continue;
    }
    let schema = apache_avro::Schema::parse_str(file.text).unwrap();
    for json in examples {
      let body = from_json(file.type_name, &json);
      let encoded = body.encode(codec).unwrap();
      assert_eq!(&*encoded.type_name, format!("{}.v{}", file.type_name, file.version));
      let decoded: Body = codec.decode(&encoded.type_name, header_of(&encoded.bytes), &encoded.bytes[encoded.body_at..]).unwrap();
      assert_eq!(decoded, body, "{}", file.type_name);
      assert_eq!(decoded.json(), json, "{}: an example has a field that the struct lacks, or the other way round", file.type_name);
      assert_eq!(plain_avro(&schema, &json), encoded.bytes[encoded.body_at..], "{}: the two codecs write other bytes", file.type_name);
      let through_avro = Body::decode_with(file.type_name, FromAvro(&schema, &encoded.bytes[encoded.body_at..])).unwrap().unwrap();
      assert_eq!(through_avro, body, "{}: the two codecs read other bodies", file.type_name);
    }
  }
}

/// Where an enum stands in an example, and its symbols.
struct Site {
  pointer: String,
  symbols: Vec<String>,
}

/// Compares the order of fields with the order in which the struct has them, and finds every enum on the way.
fn compare(schema: &Json, json: &Json, pointer: &str, named: &mut HashMap<String, Json>, sites: &mut Vec<Site>) {
  match schema {
    Json::String(name) => {
      if let Some(known) = named.get(name.rsplit('.').next().unwrap()).cloned() {
        compare(&known, json, pointer, named, sites);
      }
    }
    Json::Array(union) if !json.is_null() => compare(&union[1], json, pointer, named, sites),
    Json::Object(object) => match object["type"].as_str().unwrap() {
      "record" => {
        named.insert(object["name"].as_str().unwrap().to_owned(), schema.clone());
        let fields = object["fields"].as_array().unwrap();
        let of_schema: Vec<&str> = fields.iter().map(|field| field["name"].as_str().unwrap()).collect();
        let of_struct: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(of_schema, of_struct, "{pointer}: the struct has its fields in another order");
        for field in fields {
          let name = field["name"].as_str().unwrap();
          compare(&field["type"], &json[name], &format!("{pointer}/{name}"), named, sites);
        }
      }
      "enum" => {
        named.insert(object["name"].as_str().unwrap().to_owned(), schema.clone());
        sites.push(Site { pointer: pointer.to_owned(), symbols: serde_json::from_value(object["symbols"].clone()).unwrap() });
      }
      "array" => {
        for (at, item) in json.as_array().unwrap().iter().enumerate() {
          compare(&object["items"], item, &format!("{pointer}/{at}"), named, sites);
        }
      }
      other => panic!("{pointer}: {other} is not used in records"),
    },
    _ => {}
  }
}

/// The hot path follows the Rust type and no schema, so both must have the same fields and symbols in the same order.
#[test]
fn fields_and_symbols_stand_in_the_order_of_the_type() {
  let codec = Codec::of_product();
  let mut enums = HashSet::new();
  for file in pa_schemas::bodies().filter(|file| types().contains(&(file.type_name, file.version))) {
    let text: Json = serde_json::from_str(file.text).unwrap();
    let schema = apache_avro::Schema::parse_str(file.text).unwrap();
    for example in examples(file.text) {
      let mut sites = Vec::new();
      compare(&text, &from_json(file.type_name, &example).json(), "", &mut HashMap::new(), &mut sites);
      for Site { pointer, symbols } in sites {
        for symbol in symbols {
          let mut json = example.clone();
          *json.pointer_mut(&pointer).unwrap() = Json::from(symbol.as_str());
          let encoded = from_json(file.type_name, &json).encode(codec).unwrap();
          assert_eq!(plain_avro(&schema, &json), encoded.bytes[encoded.body_at..], "{}{pointer}: {symbol}", file.type_name);
          enums.insert(format!("{}{pointer}", file.type_name));
        }
      }
    }
  }
  assert!(enums.len() > 20, "the enums of the records are found: {enums:?}");
}

#[test]
fn every_record_of_the_domain_has_a_schema_of_every_version() {
  let files: HashSet<(&str, u16)> = pa_schemas::bodies().map(|file| (file.type_name, file.version)).collect();
  let mut needed = HashSet::new();
  for (name, current) in types() {
    needed.extend((1..=current).map(|version| (name, version)));
  }
  assert_eq!(needed, files);
  let names: Vec<&str> = types().iter().map(|(name, _)| *name).collect();
  assert_eq!(names.len(), names.iter().collect::<HashSet<_>>().len(), "two records have one name");
}

#[test]
fn the_newest_version_reads_every_older_one_fully() {
  for newest in pa_schemas::bodies() {
    let reader = apache_avro::Schema::parse_str(newest.text).unwrap();
    for older in pa_schemas::bodies().filter(|older| older.type_name == newest.type_name && older.version <= newest.version) {
      let writer = apache_avro::Schema::parse_str(older.text).unwrap();
      assert_eq!(
        SchemaCompatibility::can_read(&writer, &reader).unwrap(),
        Compatibility::Full,
        "{} v{} by v{}",
        older.type_name,
        older.version,
        newest.version
      );
    }
  }
}

#[test]
fn every_record_field_and_symbol_is_documented_and_plain() {
  fn walk(schema: &Json, path: &str) {
    match schema {
      Json::String(name) => assert!(
        ["string", "int", "long", "boolean", "bytes", "null"].contains(&name.as_str()) || name.chars().any(char::is_uppercase),
        "{path}: {name} is not used in records"
      ),
      Json::Array(union) => {
        assert!(union.len() == 2 && union[0] == "null", "{path}: the one kind of union is null and something");
        walk(&union[1], path);
      }
      Json::Object(object) => match object["type"].as_str().unwrap() {
        "record" => {
          assert!(object["doc"].as_str().is_some_and(|doc| doc.len() > 5), "{path}: a record without doc");
          for field in object["fields"].as_array().unwrap() {
            let path = format!("{path}.{}", field["name"].as_str().unwrap());
            assert!(field["doc"].as_str().is_some_and(|doc| doc.len() > 2), "{path}: a field without doc");
            walk(&field["type"], &path);
          }
        }
        "enum" => assert!(object["doc"].is_string(), "{path}: an enum without doc"),
        "array" => walk(&object["items"], path),
        other => panic!("{path}: {other} is not used in records"),
      },
      other => panic!("{path}: {other} is no schema"),
    }
  }
  for file in pa_schemas::FILES {
    walk(&serde_json::from_str(file.text).unwrap(), file.type_name);
  }
}
