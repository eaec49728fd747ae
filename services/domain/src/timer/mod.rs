//! Timers: set, cancelled, elapsed once.
//!
//! Invariant: a timer not set, cancelled, or elapsed before is ignored when it fires. Due instants are computed when a timer is set and never again.

mod decide;
mod event;
mod evolve;
#[cfg(test)]
mod tests;

pub(crate) use decide::decide;
pub use event::*;
pub(crate) use evolve::evolve;
