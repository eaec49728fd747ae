//! The stages: each reads the log or the read model, does one thing, and appends what came of it. They do not use each other.
//!
//! Every stage's own doc says what it reads, what it appends and which effects it has; `services/README.md` has the table.

pub mod agent;
pub mod chains;
pub mod decider;
pub mod projector;
pub mod scheduler;
