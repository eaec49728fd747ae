//! `tests/requirements.md` against the tests: one row an id, and the third column names exactly the tests whose doc comments
//! claim the id.
//!
//! A test claims ids by a line `Proves REP-30, REP-31.` in its doc comment, a test of the page by its title or the same line
//! in the comment above. When the column and the claims differ, the right table is written into the target folder, to be
//! looked at and copied over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use regex::Regex;

use super::expect_none;
use super::tree::{self, File, root};

const TABLE: &str = "tests/requirements.md";
const IDS: &str = include_str!("requirement_ids.txt");
const RIGHT_TABLE: &str = "target/requirements.md";
const NOT_YET: &str = "not yet";
const NOT_OURS: &str = "not ours: ";
/// These tests show claims as examples.
const THIS_FILE: &str = "tests/src/architecture/requirements.rs";

/// Ids, each with the tests that claim it, as the third column names them.
type Claims = BTreeMap<String, BTreeSet<String>>;

fn ids() -> Vec<&'static str> {
  IDS.lines().filter(|line| !line.is_empty()).collect()
}

/// The id, the second and the third cell of a row; nothing for another line.
fn row(line: &str) -> Option<(&str, &str, &str)> {
  let cells: Vec<_> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
  let [id, what, tests] = cells[..] else {
    return None;
  };
  Regex::new("^[A-Z]+(?:\\.[A-Z])?-[0-9]+$").expect("the pattern is valid").is_match(id).then_some((id, what, tests))
}

/// The ids that a comment claims after the word "Proves".
fn claimed(comment: &str) -> Vec<String> {
  let id = Regex::new(r"\b[A-Z]+(?:\.[A-Z])?-[0-9]+\b").expect("the pattern is valid");
  let sentences = comment.split("Proves ").skip(1).map(|after| after.split(". ").next().unwrap_or(after));
  sentences.flat_map(|sentence| id.find_iter(sentence)).map(|found| found.as_str().to_owned()).collect()
}

// --- Tests in Rust ---

/// The claims of one file, and the functions that claim something without being a test.
fn claims_in_rust(file: &File, claims: &mut Claims, problems: &mut Vec<String>) {
  let function = Regex::new(r"^\s*(?:pub(?:\([a-z]+\))? )?(?:async )?fn ([a-z0-9_]+)").expect("the pattern is valid");
  let test = Regex::new(r"#\[(?:[a-z_]+::)*test(?:_case)?\b").expect("the pattern is valid");
  let mut comment = String::new();
  let mut attributes = String::new();
  for line in file.text.lines() {
    let trimmed = line.trim();
    if let Some(text) = trimmed.strip_prefix("///") {
      comment.push_str(text.trim());
      comment.push(' ');
    } else if trimmed.starts_with("#[") {
      attributes.push_str(trimmed);
    } else if let Some(found) = function.captures(line) {
      let ids = claimed(&comment);
      // The conformance suite is run by a list of its functions, for each log.
      let runs = test.is_match(&attributes) || file.path.contains("conformance");
      if !ids.is_empty() && !runs {
        problems.push(format!("{}: {} claims ids but is no test", file.path, &found[1]));
      }
      for id in ids {
        claims.entry(id).or_default().insert(format!("`{}`", &found[1]));
      }
      comment.clear();
      attributes.clear();
    } else if trimmed.is_empty() || trimmed.ends_with('{') || trimmed.ends_with(';') {
      comment.clear();
      attributes.clear();
    }
  }
}

// --- Tests of the page ---

fn claims_in_page(file: &File, claims: &mut Claims) {
  let test = Regex::new(r#"^\s*(?:it|test)\(\s*(?:'([^']+)'|"([^"]+)"|`([^`]+)`)"#).expect("the pattern is valid");
  let id = Regex::new(r"\b[A-Z]+(?:\.[A-Z])?-[0-9]+\b").expect("the pattern is valid");
  let known: BTreeSet<_> = ids().into_iter().collect();
  let mut comment = String::new();
  for line in file.text.lines() {
    let trimmed = line.trim();
    if let Some(found) = test.captures(line) {
      let title = (1..=3).find_map(|group| found.get(group)).expect("one of the quotes").as_str();
      let in_title = id.find_iter(title).map(|found| found.as_str().to_owned()).filter(|id| known.contains(id.as_str()));
      for id in claimed(&comment).into_iter().chain(in_title) {
        claims.entry(id).or_default().insert(format!("`web: {}`", title.replace('|', "\\|")));
      }
      comment.clear();
    } else if trimmed.starts_with("//") || trimmed.starts_with('*') || trimmed.starts_with("/*") {
      comment.push_str(trimmed.trim_start_matches(['/', '*', ' ']).trim_end_matches(['/', '*', ' ']));
      comment.push(' ');
    } else {
      comment.clear();
    }
  }
}

fn all_claims() -> (Claims, Vec<String>) {
  let mut claims = Claims::new();
  let mut problems = Vec::new();
  for file in tree::files(&["rs"]).iter().filter(|file| file.path != THIS_FILE) {
    claims_in_rust(file, &mut claims, &mut problems);
  }
  for file in tree::files(&["ts", "tsx"]).iter().filter(|file| file.path.contains(".test.")) {
    claims_in_page(file, &mut claims);
  }
  (claims, problems)
}

/// What the third column has to say.
fn right_cell(tests: Option<&BTreeSet<String>>, now: &str) -> String {
  match tests {
    Some(tests) => tests.iter().cloned().collect::<Vec<_>>().join(", "),
    None if now.starts_with(NOT_OURS) => now.to_owned(),
    None => NOT_YET.to_owned(),
  }
}

#[test]
fn every_requirement_has_exactly_one_row() {
  let table = tree::read(TABLE);
  let rows: Vec<_> = table.lines().filter_map(row).map(|(id, _, _)| id).collect();
  let expected = ids();
  assert_eq!(expected.len(), 573, "the list of ids is not whole");
  let mut problems = Vec::new();
  for id in &expected {
    match rows.iter().filter(|row| row == &id).count() {
      1 => {}
      count => problems.push(format!("{id} has {count} rows")),
    }
  }
  problems.extend(rows.iter().filter(|id| !expected.contains(id)).map(|id| format!("{id} is no requirement")));
  expect_none("tests/requirements.md has one row for each requirement", &problems);
}

#[test]
fn a_row_says_what_we_do() {
  let table = tree::read(TABLE);
  let problems: Vec<_> = table
    .lines()
    .filter(|line| line.starts_with("| ") && !line.starts_with("| ID |"))
    .filter(|line| {
      row(line).is_none_or(|(_, what, tests)| {
        let reason = tests.strip_prefix(NOT_OURS);
        what.trim().is_empty() || tests.trim().is_empty() || reason.is_some_and(|reason| reason.trim().is_empty())
      })
    })
    .map(str::to_owned)
    .collect();
  expect_none("a row has an id, what we do, and its tests, `not yet` or `not ours: why`", &problems);
}

#[test]
fn claims_are_about_requirements_that_exist() {
  let known: BTreeSet<_> = ids().into_iter().collect();
  let prefixes: BTreeSet<_> = known.iter().filter_map(|id| id.rsplit_once('-')).map(|(prefix, _)| prefix).collect();
  let (claims, mut problems) = all_claims();
  // Cases and decisions (BB-01, PR-01, D33) have ids of their own.
  let unknown = claims.iter().filter(|(id, _)| !known.contains(id.as_str()) && id.rsplit_once('-').is_some_and(|(prefix, _)| prefixes.contains(prefix)));
  problems.extend(unknown.map(|(id, tests)| format!("{id}, claimed by {tests:?}, is no requirement")));
  expect_none("a test claims what it can't prove", &problems);
}

#[test]
fn the_table_names_the_tests_that_claim_an_id() {
  let table = tree::read(TABLE);
  let (claims, _) = all_claims();
  let mut right = String::new();
  let mut problems = Vec::new();
  for line in table.lines() {
    if let Some((id, what, tests)) = row(line) {
      let cell = right_cell(claims.get(id), tests);
      if cell != tests {
        problems.push(format!("{id}: {tests} should be {cell}"));
      }
      right.extend(["| ", id, " | ", what, " | ", &cell, " |\n"]);
    } else {
      right.extend([line, "\n"]);
    }
  }
  if !problems.is_empty() {
    let path = root().join(RIGHT_TABLE);
    fs::create_dir_all(path.parent().expect("the target folder")).expect("the target folder can be made");
    fs::write(&path, right).expect("the right table can be written");
    problems.push(format!("the right table lies in {RIGHT_TABLE}: cp {RIGHT_TABLE} {TABLE}"));
  }
  expect_none("tests/requirements.md and the tests differ", &problems);
}

#[test]
fn a_claim_is_read_from_the_comment_of_a_test() {
  let text = "/// Says it.\n///\n/// Proves REP-30, MEM.F-1 and BB-01.\n#[tokio::test]\nasync fn a_thing_holds() {\n}\n\n\
                fn helper() {}\n\n/// Proves REP-31.\nfn no_test() {}\n";
  let file = File { path: "x.rs".to_owned(), text: text.to_owned() };
  let (mut claims, mut problems) = (Claims::new(), Vec::new());
  claims_in_rust(&file, &mut claims, &mut problems);
  let found: Vec<_> = claims.keys().map(String::as_str).collect();
  assert_eq!(found, ["BB-01", "MEM.F-1", "REP-30", "REP-31"]);
  assert!(claims["REP-30"].contains("`a_thing_holds`"));
  assert_eq!(problems, ["x.rs: no_test claims ids but is no test"]);
}

#[test]
fn a_claim_of_the_page_is_read_from_title_or_comment() {
  let text = "// Proves USE-29.\ntest('a button copies', () => {});\nit(\"dark keeps places (CHN-5)\", () => {});\n";
  let file = File { path: "x.test.ts".to_owned(), text: text.to_owned() };
  let mut claims = Claims::new();
  claims_in_page(&file, &mut claims);
  assert!(claims["USE-29"].contains("`web: a button copies`"));
  assert!(claims["CHN-5"].contains("`web: dark keeps places (CHN-5)`"));
  assert_eq!(claims.len(), 2);
}
