//! Tests of the whole product: what no single crate can show alone. There is one test binary, because linking takes time.
//!
//! - `architecture`: the tree keeps the rules of its design (reads files only).
//! - `simulation`: the log's protocol and the work on it, in worlds that a seed repeats.

#[cfg(test)]
mod architecture;
#[cfg(test)]
mod simulation;
