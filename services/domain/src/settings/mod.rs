//! Settings: one versioned entity per agent.
//!
//! Invariant: a change names the version that it was made on; a stale one is refused with `STATE_CHANGED`.

mod decide;
mod event;
mod evolve;
#[cfg(test)]
mod tests;

pub(crate) use decide::{at_start, decide};
pub use event::*;
pub(crate) use evolve::evolve;
