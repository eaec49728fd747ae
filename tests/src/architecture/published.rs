//! What is published never changes: `schemas/published.lock` names every schema and golden record that logs may hold, with the fingerprint of its meaning.
//!
//! The fingerprint of a schema is SHA-256 over its JSON without documentation and examples, with sorted keys: names, types, symbols, order and defaults count (a
//! changed default keeps Avro's own fingerprint, and changes what an old record says). A golden record's is that of its bytes. New files may come at any time; they are
//! frozen once their line stands in the lock. The test writes the lines of all files that have none to `target/published.lock`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;

use super::expect_none;
use super::tree::{self, root};

const LOCK: &str = "schemas/published.lock";
/// Parts of a schema that say nothing about what is stored.
const WORDS: [&str; 2] = ["doc", "examples"];

/// Files below `schemas/` by their path there.
type Files = BTreeMap<String, Vec<u8>>;

/// Every schema and every golden record.
fn files() -> Files {
  let mut found = Files::new();
  let mut folders = vec![root().join("schemas")];
  while let Some(folder) = folders.pop() {
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
      let path = entry.expect("a folder can be read to its end").path();
      let is = |extension: &str| path.extension().is_some_and(|found| found == extension);
      if path.is_dir() {
        folders.push(path);
      } else if is("avsc") || is("bin") {
        let name = path.strip_prefix(root().join("schemas")).expect("the walk stays below").to_string_lossy().into_owned();
        found.insert(name, fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
      }
    }
  }
  assert!(found.len() > 100, "only {} files: they are looked for in the wrong place", found.len());
  found
}

fn is_schema(name: &str) -> bool {
  Path::new(name).extension().is_some_and(|extension| extension == "avsc")
}

/// The meaning of a schema: keys sorted, words left out.
fn meaning(value: &Value, text: &mut String) {
  match value {
    Value::Object(fields) => {
      text.push('{');
      let sorted: BTreeMap<&String, &Value> = fields.iter().filter(|(key, _)| !WORDS.contains(&key.as_str())).collect();
      for (key, value) in sorted {
        text.push_str(&Value::String(key.clone()).to_string());
        text.push(':');
        meaning(value, text);
        text.push(',');
      }
      text.push('}');
    }
    Value::Array(values) => {
      text.push('[');
      for value in values {
        meaning(value, text);
        text.push(',');
      }
      text.push(']');
    }
    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&value.to_string()),
  }
}

fn fingerprint(name: &str, bytes: &[u8]) -> Result<String, String> {
  if !is_schema(name) {
    return Ok(hex::encode(digest(&SHA256, bytes)));
  }
  let schema: Value = serde_json::from_slice(bytes).map_err(|error| format!("{name} is no JSON: {error}"))?;
  let mut text = String::new();
  meaning(&schema, &mut text);
  Ok(hex::encode(digest(&SHA256, text.as_bytes())))
}

/// The lines of a lock file that name something.
fn lines(lock: &str) -> impl Iterator<Item = &str> {
  lock.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// What is wrong with the files, by a lock file.
fn problems(lock: &str, files: &Files) -> Vec<String> {
  let (mut problems, mut seen) = (Vec::new(), BTreeSet::new());
  for line in lines(lock) {
    let Some((name, published)) = line.split_once(' ') else {
      problems.push(format!("{LOCK}: `{line}` is no path with a fingerprint"));
      continue;
    };
    if !seen.insert(name) {
      problems.push(format!("{LOCK} names {name} twice"));
    }
    let Some(bytes) = files.get(name) else {
      problems.push(format!("schemas/{name} is published and not there any more: logs that hold it could not be read"));
      continue;
    };
    match fingerprint(name, bytes) {
      Ok(now) if now == published.trim() => {}
      Ok(_) => problems.push(format!("schemas/{name} is published and was changed: what is new is a new version or a new record (CONTRIBUTING.md)")),
      Err(problem) => problems.push(problem),
    }
  }
  problems
}

/// The lines of all files that a lock does not name.
fn unpublished(lock: &str, files: &Files) -> String {
  let known: BTreeSet<&str> = lines(lock).filter_map(|line| line.split_once(' ')).map(|(name, _)| name).collect();
  let new = files.iter().filter(|(name, _)| !known.contains(name.as_str()));
  new.filter_map(|(name, bytes)| Some(format!("{name} {}\n", fingerprint(name, bytes).ok()?))).collect()
}

#[test]
fn what_is_published_never_changes() {
  let (lock, files) = (tree::read(LOCK), files());
  let target = root().join("target");
  fs::create_dir_all(&target).expect("the build's folder can be made");
  fs::write(target.join("published.lock"), unpublished(&lock, &files)).expect("the build's folder can be written");
  assert!(lines(&lock).count() > 50, "the lock file names next to nothing");
  expect_none("a published record is frozen", &problems(&lock, &files));
}

/// A published schema stands with its golden record, so that both what is meant and what was stored are frozen.
#[test]
fn a_published_schema_has_a_published_golden_record() {
  let (lock, files) = (tree::read(LOCK), files());
  let published: BTreeSet<&str> = lines(&lock).filter_map(|line| line.split_once(' ')).map(|(name, _)| name).collect();
  let mut problems = Vec::new();
  for name in published.iter().filter(|name| is_schema(name)) {
    let schema: Value = serde_json::from_slice(&files[*name]).expect("checked by the other test");
    let version = name.trim_end_matches(".avsc").rsplit_once(".v").expect("a schema has a version").1;
    let golden = format!("golden/{}.{}.v{version}.bin", schema["namespace"].as_str().unwrap_or_default(), schema["name"].as_str().unwrap_or_default());
    if files.contains_key(&golden) && !published.contains(golden.as_str()) {
      problems.push(format!("{name} is published without {golden}"));
    }
  }
  expect_none("a schema is published with its golden record", &problems);
}

/// The checker, on copies of a real schema that were changed in every way.
#[test]
fn every_change_of_a_published_schema_is_noticed() {
  let name = "conversation/message_admitted.v1.avsc";
  let golden = "golden/pa.conversation.MessageAdmitted.v1.bin";
  let all = files();
  let files: Files = [name, golden].into_iter().map(|name| (name.to_owned(), all[name].clone())).collect();
  let lock = unpublished("", &files);
  assert_eq!(problems(&lock, &files), Vec::<String>::new());
  let schema: Value = serde_json::from_slice(&files[name]).expect("a schema is JSON");
  let changed = |change: &dyn Fn(&mut Value)| {
    let mut schema = schema.clone();
    change(&mut schema);
    let mut files = files.clone();
    files.insert(name.to_owned(), serde_json::to_vec_pretty(&schema).expect("JSON"));
    problems(&lock, &files).len()
  };
  let field = |schema: &mut Value, key: &str, value: Value| schema["fields"][0][key] = value;
  assert_eq!(changed(&|_| {}), 0, "white space and the order of keys say nothing");
  assert_eq!(changed(&|schema| schema["doc"] = "Better words.".into()), 0, "documentation may get better");
  assert_eq!(changed(&|schema| field(schema, "doc", "Better words.".into())), 0);
  assert_eq!(changed(&|schema| schema["examples"].as_array_mut().expect("examples").clear()), 0);
  assert_eq!(changed(&|schema| field(schema, "name", "another".into())), 1, "a field's name");
  assert_eq!(changed(&|schema| field(schema, "type", "bytes".into())), 1, "a field's type");
  assert_eq!(changed(&|schema| field(schema, "default", "".into())), 1, "a default");
  assert_eq!(changed(&|schema| schema["fields"].as_array_mut().expect("fields").swap(0, 1)), 1, "the order of fields");
  assert_eq!(changed(&|schema| drop(schema["fields"].as_array_mut().expect("fields").pop())), 1, "a field that is gone");
  assert_eq!(changed(&|schema| schema["name"] = "Another".into()), 1, "the record's name");
  let without = |name: &str| problems(&lock, &files.iter().filter(|(other, _)| *other != name).map(|(name, bytes)| (name.clone(), bytes.clone())).collect());
  assert_eq!(without(name).len(), 1, "a file that is gone");
  let mut flipped = files.clone();
  *flipped.get_mut(golden).and_then(|bytes| bytes.last_mut()).expect("a golden record has bytes") ^= 1;
  assert_eq!(problems(&lock, &flipped).len(), 1, "one bit of a golden record");
  let mut more = files.clone();
  more.insert("conversation/brand_new.v1.avsc".to_owned(), b"{}".to_vec());
  assert!(problems(&lock, &more).is_empty(), "a new schema may come");
  assert_eq!(problems(&format!("{lock}{lock}"), &files).len(), 2, "a name that stands twice");
  assert_eq!(problems("conversation/message_admitted.v1.avsc", &files).len(), 1, "a line without a fingerprint");
}
