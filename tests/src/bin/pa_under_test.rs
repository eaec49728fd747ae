//! The program under test: the product's own start, built with fail points. `PA_FAIL=point:n` lets it die at a named place.
//!
//! It has no code of its own, so that what the tests prove is true of `pa`.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
  pa::start(pa::cli::Cli::parse())
}
