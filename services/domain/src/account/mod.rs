//! Accounts: who has an agent here. They live in the reserved agent `installation`.
//!
//! Invariant: an account's id is the id of the decision that added it, and its agent has the same id.

mod event;
pub use event::*;
