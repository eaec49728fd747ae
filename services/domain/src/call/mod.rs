//! Tool calls: one life for each, whatever the tool (design.md 5).
//!
//! `asked → (held → approved →) started → returned | failed | unknown → reconciled`, or `skipped`. `CallStarted` is the permit: one use, for the process whose ask it answers, until
//! 30 s after that ask was sent. What happens to a started call of an execution that is over depends on its class (D13).

mod ask;
mod decide;
mod event;
mod evolve;
mod outcome;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use ask::{Answer, Standing, answer, limit, may_begin, skipped, started};
pub(crate) use decide::decide;
pub use event::*;
pub(crate) use evolve::evolve;
pub use state::{Call, CallStatus, Card};
