//! Requests that change something: checked, appended, and answered with the decision as read back from the log.
//!
//! Invariants
//! - The expectation stands before the append, so no decision is missed.
//! - An append runs in a task of its own: a client that goes away can't cancel it midway.
//! - An append whose fate is unknown is repeated with the same record; the decider settles the second as a repeat. It is never reported as not accepted.
//! - Nothing waits here while it holds a connection or a lock.
//!
//! Read next: `submit.rs`.

pub(crate) mod attach;
pub(crate) mod refusal;
pub(crate) mod repeat;
pub(crate) mod submit;
pub(crate) mod syntax;
