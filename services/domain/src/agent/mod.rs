//! The agent itself: made once, erased once.

mod event;
pub use event::*;
