//! Accounts: who has an agent here. They live in the reserved agent `installation`.
//!
//! Invariant: an account's id is the id of the decision that added it, and its agent has the same id.

mod decide;
mod event;
mod evolve;
#[cfg(test)]
mod tests;

pub(crate) use decide::decide;
pub use event::*;
pub(crate) use evolve::evolve;
