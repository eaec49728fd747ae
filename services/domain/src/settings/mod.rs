//! Settings: one versioned entity per agent.
//!
//! Invariant: a change names the version that it was made on; a stale one is refused with `STATE_CHANGED`.

mod event;
pub use event::*;
