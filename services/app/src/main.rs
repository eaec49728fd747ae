//! The only binary: reads the configuration, then does what the command line says.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
  pa::start(pa::cli::Cli::parse())
}
