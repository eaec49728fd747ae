//! The rules that the tree keeps, checked by reading it: who depends on whom, how files look, and that the tables in
//! README files say what the code says.
//!
//! A rule that the compiler or clippy can check is not repeated here. Start with `tree`, which reads the files.

mod dependencies;
mod documents;
mod published;
mod requirements;
mod shape;
mod stages;
mod tree;

/// Fails with every place that breaks a rule, not only with the first.
fn expect_none(rule: &str, problems: &[String]) {
  assert!(problems.is_empty(), "{rule}\n  {}\n", problems.join("\n  "));
}
