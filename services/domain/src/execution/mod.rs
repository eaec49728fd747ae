//! Executions: the one mechanism that carries out work, for replies and tasks, and for deliveries and checks later (design.md 5).
//!
//! `requested → running → finished | failed | stopped | (lost | yielded | suspended → requested)`. A worker asks; the log grants by `ExecutionStarted`, caused by that very
//! ask. `execution` counts up per job and is the only worker epoch. After an execution has ended in any way all of it is refused, except the outcome of a call
//! that it had started. Only losses count toward the limit; a retry of the owner resets them.

mod attempt;
mod decide;
mod event;
mod evolve;
mod finish;
mod state;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use attempt::{Ending, limit_reached, named as named_code};
pub(crate) use decide::decide;
pub use event::*;
pub(crate) use evolve::evolve;
pub(crate) use finish::{StepOf, recorded_finish};
pub use state::{Running, Step, Work};
