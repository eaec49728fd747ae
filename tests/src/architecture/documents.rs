//! The documents of the tree: their links lead somewhere, and what they must contain is there.

use regex::Regex;

use super::expect_none;
use super::tree::{self, root};

/// What a newcomer looks for in the README.
const README_NAMES: [&str; 10] =
  ["infra/up", "infra/down", "infra/test", "CONTRIBUTING.md", "ssh -L", "infra/up --restart", "pa account add", "pa token link", "sendMessage", "just bench"];
/// What is described step by step for whoever changes it.
const CONTRIBUTING_NAMES: [&str; 4] = ["an event", "a projection", "a tool", "a channel"];

#[test]
fn links_lead_somewhere() {
  let link = Regex::new(r"\]\(([^)\s]+)\)").expect("the pattern is valid");
  let mut problems = Vec::new();
  for file in tree::files(&["md"]) {
    let folder = root().join(&file.path).parent().expect("a file lies in a folder").to_owned();
    for found in link.captures_iter(&file.text) {
      let target = found[1].split('#').next().unwrap_or_default();
      let outside = target.contains("://") || target.starts_with("mailto:");
      if !target.is_empty() && !outside && !folder.join(target).exists() {
        problems.push(format!("{}: {target}", file.path));
      }
    }
  }
  expect_none("a link leads to nothing", &problems);
}

#[test]
fn the_readme_answers_a_newcomer() {
  let readme = tree::read("README.md");
  let problems: Vec<_> = README_NAMES.iter().filter(|name| !readme.contains(**name)).map(|name| (*name).to_owned()).collect();
  expect_none("README.md does not mention", &problems);
  let contributing = tree::read("CONTRIBUTING.md");
  let problems: Vec<_> = CONTRIBUTING_NAMES.iter().filter(|name| !contributing.contains(&format!("## Add {name}"))).map(|name| (*name).to_owned()).collect();
  expect_none("CONTRIBUTING.md does not say how to add", &problems);
}

#[test]
fn the_scripts_of_the_readme_exist() {
  let script = Regex::new(r"`?\b(infra/[a-z-]+(?:/[a-z-]+)?(?:\.[a-z]+)?)\b").expect("the pattern is valid");
  let readme = tree::read("README.md");
  let problems: Vec<_> = script.captures_iter(&readme).map(|found| found[1].to_owned()).filter(|path| !root().join(path).exists()).collect();
  expect_none("README.md names a script that is not there", &problems);
}
