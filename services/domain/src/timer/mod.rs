//! Timers: set, cancelled, elapsed once.
//!
//! Invariant: a timer not set, cancelled, or elapsed before is ignored when it fires. Due instants are computed when a timer is set and never again.

mod event;
pub use event::*;
