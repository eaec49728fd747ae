//! Records of the log itself: announcements, settled inputs, quarantine.
//!
//! A quarantined input and every later input of that agent are held, with their bytes, until the owner releases them; then they are decided in order.

mod decide;
mod event;
mod evolve;
mod quarantine;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use decide::decide;
pub use event::*;
pub(crate) use evolve::{drain, evolve};
pub use quarantine::{exempt, held, is_holding, next_to_drain, quarantined, set_aside};
pub use state::{HeldAt, Quarantine};
