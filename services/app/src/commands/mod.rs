//! The tools of the command line: each opens what it needs, does one thing, and ends.

pub(crate) mod account;
pub(crate) mod log;
pub(crate) mod rebuild;
pub(crate) mod token;
pub(crate) mod verify;

use std::io::Write;

use anyhow::{Context, Result};

/// Prints one line of an answer.
pub(crate) fn print(line: &str) -> Result<()> {
  let mut out = std::io::stdout().lock();
  writeln!(out, "{line}").and_then(|()| out.flush()).context("write the answer")
}
