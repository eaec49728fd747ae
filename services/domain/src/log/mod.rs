//! Records of the log itself: announcements, settled inputs, quarantine.
//!
//! A quarantined input and every later input of that agent are held, with their bytes, until the owner releases them; then they are decided in order.

mod event;
pub use event::*;
