//! How files look: their length, their first line, their name, and what may not be left in them.

use regex::Regex;

use super::expect_none;
use super::tree;

/// Past this a file must be split.
const LINES_MAX: usize = 600;
/// Past this a file is named in the output, so that it is split before it must be.
const LINES_WISHED: usize = 400;
/// Files that a program writes.
const GENERATED: [&str; 1] = ["services/web/src/api/generated.ts"];
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 10] = ["utils", "util", "helpers", "helper", "common", "misc", "manager", "core", "base", "impl"];
/// What is left by someone who meant to come back, or hides a failure. These tests name it and are left out.
const UNFINISHED: &str = r"\btodo!|\bunimplemented!|#\[ignore|#\[should_panic|#\[allow\(|#!\[allow\(|\bFIXME\b|\bXXX\b|assert!\(true";
const THESE_TESTS: &str = "tests/src/architecture/";

#[test]
fn a_file_is_short_enough_to_be_read() {
  let mut problems = Vec::new();
  for file in tree::files(&["rs", "ts", "tsx", "mjs", "sh", "sql"]) {
    let lines = file.text.lines().count();
    if GENERATED.contains(&file.path.as_str()) {
      continue;
    }
    if lines > LINES_MAX {
      problems.push(format!("{} has {lines} lines", file.path));
    } else if lines > LINES_WISHED {
      println!("long: {} has {lines} lines", file.path);
    }
  }
  expect_none("a file has at most 600 lines", &problems);
}

#[test]
fn every_module_says_what_it_is() {
  let problems: Vec<_> = tree::files(&["rs"]).into_iter().filter(|file| !file.text.trim_start().starts_with("//!")).map(|file| file.path).collect();
  expect_none("every Rust file starts with a //! line", &problems);
}

#[test]
fn names_say_what_is_inside() {
  let problems: Vec<_> = tree::files(&["rs", "ts", "tsx"])
    .into_iter()
    .filter(|file| {
      let folders = file.path.split('/').rev().skip(1);
      EMPTY_NAMES.contains(&file.stem()) || folders.into_iter().any(|name| EMPTY_NAMES.contains(&name))
    })
    .map(|file| file.path)
    .collect();
  expect_none("a module is named after what it is", &problems);
}

#[test]
fn nothing_is_left_unfinished() {
  let unfinished = Regex::new(UNFINISHED).expect("the pattern is valid");
  let mut problems = Vec::new();
  for file in tree::files(&["rs"]).into_iter().filter(|file| !file.path.starts_with(THESE_TESTS)) {
    for (number, line) in file.text.lines().enumerate() {
      if unfinished.is_match(line) {
        problems.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
      }
    }
  }
  expect_none("no unfinished code, no switched-off test, no allowed lint", &problems);
}

#[test]
fn the_wiring_of_events_is_exhaustive() {
  let wild = Regex::new(r"^\s*_\s*(if .*)?=>").expect("the pattern is valid");
  let mut problems = Vec::new();
  for file in tree::rust_below("services/domain/") {
    if !["route", "evolve"].contains(&file.stem()) {
      continue;
    }
    for (number, line) in file.code().lines().enumerate() {
      if wild.is_match(line) {
        problems.push(format!("{}:{}", file.path, number + 1));
      }
    }
  }
  expect_none("no `_ =>` where events are routed or folded into state", &problems);
}
