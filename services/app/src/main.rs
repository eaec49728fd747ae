//! The only binary: reads the configuration, then does what the command line says.

use std::process::ExitCode;

use clap::Parser;

/// A turn makes thousands of values that live for less than a millisecond, on whichever thread has time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
  pa::start(pa::cli::Cli::parse())
}
