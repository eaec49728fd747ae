//! Background tasks: work that outlives the turn that started it.
//!
//! `queued → running → waiting → queued → … → completed | failed | stopped`, and paused in between; any ended task goes on in itself by an instruction or a resume,
//! as its next run. A task is a thing and the job of its executions, under one id. The root counts turns: at most `concurrency` tasks have theirs, in the order in
//! which they were queued; who waits, is paused or has ended holds none.
//!
//! Invariants
//! - What a conversation's turn asks of a task ([`TaskOrdered`]) is a call of that turn; `route` makes it an input of the task, and the task's decision is the call's
//!   outcome. No worker stands between, so nothing of it is lost or done twice.
//! - The revision is the ordinal of the last instruction (D2). What was begun before it is not published: unstarted calls are skipped, cards withdrawn, a ready result
//!   refused.
//! - An external call starts only by an approval of exactly that action, or within a scope that the owner allowed for this task; one use each (D11, D12, D34).
//! - A task with an external call that is open does not run (RUN-18).
//!
//! Next: `state.rs`, then `steer.rs`; cards are in `actions.rs`, executions in `run.rs`.

mod actions;
mod decide;
mod event;
mod evolve;
mod input;
mod orders;
mod outputs;
mod run;
mod start;
mod state;
mod steer;
#[cfg(test)]
mod tests;

pub use actions::TOOLS_OF_A_PERSON;
pub(crate) use actions::ask;
pub(crate) use decide::decide;
pub use event::*;
pub(crate) use evolve::{evolve, stepped};
pub use input::*;
pub(crate) use orders::{Orders, outcome_of, to_task};
pub(crate) use run::{Left, after_call, finish, lost, start as start_execution, unknown_notice};
pub(crate) use state::turns_at;
pub use state::{OpenTask, Place, Status, Task, Underway};
