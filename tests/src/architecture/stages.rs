//! The stages: each says in its module doc what it reads, appends and effects, `services/README.md` says the same, and no stage
//! uses another.

use std::collections::BTreeMap;

use super::expect_none;
use super::tree::{self, File};

const PIPELINE: &str = "services/pipeline/src/";
const GATEWAY: &str = "services/gateway/src/lib.rs";
const TABLE: &str = "services/README.md";
/// Every stage there is going to be. A stage that is not there yet is in no table either.
const STAGES: [&str; 7] = ["decider", "projector", "agent", "delivery", "memory", "scheduler", "computer"];
const KEYS: [&str; 3] = ["Reads", "Appends", "Effects"];

/// What a stage reads, appends and effects.
type Contract = [String; 3];

/// The stages in the tree, by name, with the file that describes each.
fn stages() -> BTreeMap<String, File> {
  let mut found = BTreeMap::new();
  for file in tree::rust_below("services/") {
    if file.path == GATEWAY {
      found.insert("gateway".to_owned(), file);
      continue;
    }
    let name = file.path.strip_prefix(PIPELINE).and_then(|rest| rest.strip_suffix("/mod.rs").or_else(|| rest.strip_suffix(".rs")));
    if let Some(name) = name.filter(|name| STAGES.contains(name)) {
      found.insert(name.to_owned(), file);
    }
  }
  found
}

/// Takes the three lines out of a module's doc; a value may go on over the next lines.
fn contract_of(file: &File) -> Result<Contract, String> {
  let mut values: [Option<String>; 3] = [None, None, None];
  let mut current = None;
  for line in file.text.lines().map_while(|line| line.trim_start().strip_prefix("//!")) {
    let line = line.trim();
    let key = KEYS.iter().position(|key| line.starts_with(&format!("{key}:")));
    if let Some(key) = key {
      values[key] = Some(line[KEYS[key].len() + 1..].trim().to_owned());
      current = Some(key);
    } else if line.is_empty() {
      current = None;
    } else if let Some(value) = current.and_then(|key| values[key].as_mut()) {
      value.push(' ');
      value.push_str(line);
    }
  }
  let [Some(reads), Some(appends), Some(effects)] = values else {
    return Err(format!("{} lacks one of the lines Reads:, Appends:, Effects:", file.path));
  };
  Ok([reads, appends, effects].map(|value| value.trim_end_matches('.').to_owned()))
}

/// The rows of the table in services/README.md.
fn table() -> BTreeMap<String, Contract> {
  tree::read(TABLE)
    .lines()
    .filter_map(|line| {
      let cells: Vec<_> = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
      let [name, reads, appends, effects] = cells[..] else {
        return None;
      };
      let name = name.strip_prefix('`')?.strip_suffix('`')?;
      Some((name.to_owned(), [reads, appends, effects].map(|cell| cell.trim_end_matches('.').to_owned())))
    })
    .collect()
}

#[test]
fn the_table_of_stages_says_what_the_stages_say() {
  let table = table();
  let stages = stages();
  assert!(stages.contains_key("gateway"), "{GATEWAY} is not there");
  let mut problems = Vec::new();
  for (name, file) in &stages {
    match contract_of(file) {
      Err(problem) => problems.push(problem),
      Ok(contract) if table.get(name) == Some(&contract) => {}
      Ok(contract) => problems.push(format!("| `{name}` | {} |", contract.join(" | "))),
    }
  }
  let unknown = table.keys().filter(|name| !stages.contains_key(*name));
  problems.extend(unknown.map(|name| format!("there is a row `{name}`, but there is no such stage")));
  expect_none("services/README.md lacks these rows of the stages", &problems);
}

#[test]
fn no_stage_uses_another() {
  let mut problems = Vec::new();
  for file in tree::rust_below(PIPELINE) {
    let rest = &file.path[PIPELINE.len()..];
    let own = rest.split(['/', '.']).next().unwrap_or_default();
    if !STAGES.contains(&own) {
      continue;
    }
    let code = file.code();
    let others = STAGES.iter().filter(|other| **other != own && code.contains(&format!("crate::{other}")));
    problems.extend(others.map(|other| format!("{} uses {other}", file.path)));
  }
  expect_none("stages do not use each other", &problems);
}

#[test]
fn a_contract_may_go_on_over_lines() {
  let text = "//! Title.\n//!\n//! Reads: a,\n//! b.\n//! Appends: c\n//! Effects: none.\n//!\n//! More.\n\nuse x;\n";
  let file = File { path: "x.rs".to_owned(), text: text.to_owned() };
  let expected = ["a, b", "c", "none"].map(str::to_owned);
  assert_eq!(contract_of(&file), Ok(expected));
}
