//! The agent itself: made once, erased once.

mod decide;
mod event;
mod evolve;
#[cfg(test)]
mod tests;

pub(crate) use decide::decide;
pub use event::*;
pub(crate) use evolve::evolve;
