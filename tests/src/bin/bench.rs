//! `just bench`: measures the product against controls and prints one JSON line a figure. See `../bench/mod.rs`.

use std::process::ExitCode;

#[path = "../bench/mod.rs"]
mod bench;

fn main() -> ExitCode {
  bench::main()
}
