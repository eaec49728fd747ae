//! `just bench`: measures the product against controls and prints one JSON line a figure. See `../bench/mod.rs`.

use std::process::ExitCode;

/// As in the product, so that what is measured inside this process costs what it costs there; the controls have the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "../bench/mod.rs"]
mod bench;

fn main() -> ExitCode {
  bench::main()
}
