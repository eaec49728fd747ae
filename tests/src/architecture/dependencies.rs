//! Who depends on whom: our crates point one way, and a library that is an edge of the system is known to one place.
//!
//! The rules stand in the tables below; a crate that is in no table fails, so that its place is decided when it comes.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use super::expect_none;
use super::tree::{self, root};

/// What each of our crates may use of ours.
const OURS: &[(&str, &[&str])] = &[
  ("pa-schemas", &[]),
  ("pa-domain", &[]),
  ("pa-store", &["pa-domain"]),
  ("pa-eventlog", &["pa-schemas", "pa-domain", "pa-store"]),
  ("pa-blobs", &["pa-domain", "pa-store"]),
  ("pa-model", &["pa-domain"]),
  ("pa-workspace", &["pa-domain"]),
  ("pa-tools", &["pa-domain", "pa-workspace"]),
  ("pa-channels", &["pa-domain"]),
  ("pa-email", &["pa-domain"]),
  ("pa-computer", &["pa-domain"]),
  ("pa-projections", &["pa-domain", "pa-store"]),
  ("pa-gateway", &["pa-domain", "pa-projections", "pa-eventlog", "pa-store", "pa-blobs", "pa-channels", "pa-computer"]),
  (
    "pa-pipeline",
    &["pa-domain", "pa-projections", "pa-eventlog", "pa-store", "pa-blobs", "pa-model", "pa-workspace", "pa-tools", "pa-channels", "pa-email", "pa-computer"],
  ),
];

/// Crates that stand above all others; nobody else may use them, not even in tests.
const TOP: [&str; 2] = ["pa", "pa-tests"];

/// Libraries that are an edge, and the only crates that may name them. Tests of the whole may name any.
const EDGES: &[(&str, &[&str], &str)] = &[
  ("rdkafka", &["pa-eventlog"], "only the event log knows Kafka"),
  ("apache-avro", &["pa-schemas", "pa-eventlog"], "others see decoded records"),
  ("sqlx", &["pa-store", "pa-projections", "pa-eventlog"], "SQL has three homes"),
  ("object_store", &["pa-blobs"], "only the blobs know where bytes lie"),
  ("async-graphql", &["pa-gateway"], "only the gateway knows GraphQL"),
  ("async-graphql-axum", &["pa-gateway"], "only the gateway knows GraphQL"),
  ("axum", &["pa-gateway", "pa", "pa-model"], "HTTP comes in at the gateway, is served by the app; the rehearsal model is a server"),
  ("reqwest", &["pa-model", "pa-tools", "pa-channels", "pa-computer"], "HTTP goes out through adapters"),
  ("bollard", &["pa-computer"], "only the computer knows Docker"),
  ("lettre", &["pa-email"], "only the email adapter sends mail"),
  (
    "chrono",
    &["pa-domain", "pa-gateway", "pa-pipeline", "pa-model", "pa-tools", "pa-email"],
    "rules, prompts and protocols (Retry-After) know calendars; others count milliseconds",
  ),
  ("chrono-tz", &["pa-domain", "pa-gateway", "pa-pipeline", "pa-tools"], "zones belong to rules and to what a person reads"),
];

/// All that the pure domain may use from outside: data, ids, calendars.
const DOMAIN_MAY_USE: [&str; 8] = ["serde", "serde_bytes", "serde_json", "uuid", "chrono", "chrono-tz", "unicode-normalization", "thiserror"];

/// Words that can't stand in a domain that does no I/O, has no clock and no randomness.
const IMPURE: &str = r"(?x)
    \basync\b | \.await\b | \bstd::(fs|net|env|process|thread)\b | \bSystemTime\b | \bInstant\b
    | ::now\(\) | \bnow_v7\b | \bnew_v4\b | \brand:: | \be?println!";

/// Libraries of which a second crypto or TLS provider would come along, and the one that may bring it: librdkafka can use no other than OpenSSL.
const OTHER_PROVIDERS: [(&str, &[&str]); 3] = [("openssl", &[]), ("openssl-sys", &["rdkafka-sys"]), ("native-tls", &[])];

struct Manifest {
  name: String,
  path: String,
  uses: BTreeSet<String>,
  uses_in_tests: BTreeSet<String>,
}

fn manifests() -> Vec<Manifest> {
  let found: Vec<_> = tree::files(&["toml"])
    .into_iter()
    .filter(|file| file.path.ends_with("/Cargo.toml"))
    .map(|file| {
      let table: toml::Table = toml::from_str(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path));
      let name = table["package"]["name"].as_str().expect("a package has a name").to_owned();
      let mut uses = names(&table, "dependencies");
      uses.extend(names(&table, "build-dependencies"));
      Manifest { name, path: file.path, uses, uses_in_tests: names(&table, "dev-dependencies") }
    })
    .collect();
  assert!(found.len() >= 12, "only {} crates found", found.len());
  found
}

/// The dependencies of one kind, those for one platform only included.
fn names(table: &toml::Table, kind: &str) -> BTreeSet<String> {
  let direct = table.get(kind).and_then(toml::Value::as_table);
  let by_platform = table
    .get("target")
    .and_then(toml::Value::as_table)
    .into_iter()
    .flat_map(toml::Table::values)
    .filter_map(|platform| platform.get(kind).and_then(toml::Value::as_table));
  direct.into_iter().chain(by_platform).flat_map(|found| found.keys().cloned()).collect()
}

fn is_ours(name: &str) -> bool {
  name == "pa" || name.starts_with("pa-")
}

#[test]
fn our_crates_depend_in_one_direction() {
  let allowed: BTreeMap<_, _> = OURS.iter().copied().collect();
  let mut problems = Vec::new();
  for manifest in manifests() {
    if TOP.contains(&manifest.name.as_str()) {
      if manifest.name == "pa" && manifest.uses.contains("pa-tests") {
        problems.push("pa uses pa-tests".to_owned());
      }
      continue;
    }
    let Some(may_use) = allowed.get(manifest.name.as_str()) else {
      problems.push(format!("{}: {} stands in no table of this test", manifest.path, manifest.name));
      continue;
    };
    let used = manifest.uses.iter().filter(|name| is_ours(name));
    problems.extend(used.filter(|name| !may_use.contains(&name.as_str())).map(|name| format!("{} uses {name}", manifest.name)));
    let too_high = manifest.uses_in_tests.iter().filter(|name| TOP.contains(&name.as_str()));
    problems.extend(too_high.map(|name| format!("the tests of {} use {name}", manifest.name)));
  }
  expect_none("dependencies between our crates point one way", &problems);
}

#[test]
fn an_edge_is_known_to_its_own_crates_only() {
  let mut problems = Vec::new();
  for manifest in manifests().iter().filter(|manifest| manifest.name != "pa-tests") {
    for (library, homes, reason) in EDGES {
      if manifest.uses.contains(*library) && !homes.contains(&manifest.name.as_str()) {
        problems.push(format!("{} uses {library}: {reason}", manifest.name));
      }
    }
  }
  expect_none("edges do not leak", &problems);
}

#[test]
fn the_domain_is_pure() {
  let impure = Regex::new(IMPURE).expect("the pattern is valid");
  let mut problems = Vec::new();
  for manifest in manifests().iter().filter(|manifest| manifest.name == "pa-domain") {
    let foreign = manifest.uses.iter().filter(|name| !DOMAIN_MAY_USE.contains(&name.as_str()));
    problems.extend(foreign.map(|name| format!("pa-domain uses {name}")));
  }
  for file in tree::rust_below("services/domain/") {
    for (number, line) in file.code().lines().enumerate() {
      if impure.is_match(line) {
        problems.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
      }
    }
  }
  expect_none("the domain does no I/O and has no clock, randomness or async", &problems);
}

#[test]
fn the_event_log_speaks_sql_in_its_postgres_adapter_only() {
  let problems: Vec<_> = tree::rust_below("services/adapters/eventlog/")
    .into_iter()
    .filter(|file| !file.path.contains("/postgres"))
    .filter(|file| file.code().contains("sqlx::"))
    .map(|file| file.path)
    .collect();
  expect_none("sqlx outside the Postgres adapter", &problems);
}

#[test]
fn one_crypto_and_tls_provider_serves_all() {
  let lock: toml::Table = toml::from_str(&tree::read("Cargo.lock")).expect("the lock file is valid");
  let packages = lock["package"].as_array().expect("the lock file lists packages");
  let uses = |package: &&toml::Value, library: &str| {
    let used = package.get("dependencies").and_then(toml::Value::as_array);
    used.is_some_and(|used| used.iter().filter_map(toml::Value::as_str).any(|used| used.split(' ').next() == Some(library)))
  };
  let mut problems = Vec::new();
  for (library, may_use) in OTHER_PROVIDERS {
    let named = packages.iter().filter(|package| uses(package, library)).filter_map(|package| package["name"].as_str());
    problems.extend(named.filter(|name| !may_use.contains(name)).map(|name| format!("{name} uses {library}")));
  }
  expect_none("aws-lc-rs is the one provider", &problems);
}

#[test]
fn a_dependency_is_used() {
  let mut problems = Vec::new();
  let mut named = BTreeSet::new();
  for manifest in manifests() {
    let folder = manifest.path.trim_end_matches("Cargo.toml");
    let sources = tree::rust_below(folder);
    named.extend(manifest.uses.iter().chain(&manifest.uses_in_tests).cloned());
    for name in manifest.uses.union(&manifest.uses_in_tests) {
      let word = Regex::new(&format!(r"\b{}\b", name.replace('-', "_"))).expect("a crate's name is a word");
      if !sources.iter().any(|file| word.is_match(&file.text)) {
        problems.push(format!("{} does not use {name}", manifest.name));
      }
    }
  }
  let workspace: toml::Table = toml::from_str(&tree::read("Cargo.toml")).expect("the workspace file is valid");
  let shared = workspace["workspace"]["dependencies"].as_table().expect("the workspace lists dependencies");
  problems.extend(shared.keys().filter(|name| !named.contains(*name)).map(|name| format!("nobody uses {name}")));
  expect_none("a dependency that nobody uses costs time", &problems);
}

#[test]
fn every_crate_is_a_member_with_the_shared_lints() {
  let workspace: toml::Table = toml::from_str(&tree::read("Cargo.toml")).expect("the workspace file is valid");
  let members: Vec<_> =
    workspace["workspace"]["members"].as_array().expect("the workspace lists members").iter().filter_map(|member| member.as_str()).collect();
  let mut problems = Vec::new();
  for manifest in manifests() {
    let folder = manifest.path.trim_end_matches("/Cargo.toml");
    if !members.contains(&folder) {
      problems.push(format!("{folder} is no member of the workspace"));
    }
    let table: toml::Table = toml::from_str(&tree::read(&manifest.path)).expect("read before");
    let shared = table.get("lints").and_then(|lints| lints.get("workspace")?.as_bool());
    if shared != Some(true) {
      problems.push(format!("{folder} does not take the lints of the workspace"));
    }
  }
  assert!(root().join("Cargo.lock").exists(), "the lock file is part of the tree");
  expect_none("crates of the workspace", &problems);
}
