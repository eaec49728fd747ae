//! The prompt of a reply: rules, name and time; what was said before; the message with its files; what has been done since. That of a task: its instructions and
//! steps. Pure, and recorded part by part.
//!
//! Invariants
//! - Everything has a place in a budget of tokens; what doesn't fit is left out whole (older turns) or said to be cut (files, results).
//! - Content that nobody vouches for stands between marks that it can't contain, and is called what it is. A file is never silently left out.
//! - The same material gives the same prompt: nothing here reads a clock or makes an id.
//!
//! Next: `rules.rs`, then `assemble.rs` for replies and `task.rs` for tasks.

mod assemble;
mod clock;
mod fence;
mod files;
mod history;
mod part;
mod rules;
mod steps;
mod task;
mod task_rules;
#[cfg(test)]
mod task_tests;
#[cfg(test)]
mod tests;

pub(super) use assemble::{Material, Prompt, assemble, task_line};
pub(super) use fence::sha256_of;
pub(super) use files::{File, Handling, handling};
pub(super) use history::{TURNS_MAX, history_tokens_max, turn_tokens};
pub(super) use part::Parts;
pub(super) use task::{TaskMaterial, assemble_task};
pub(super) use task_rules::NOT_DONE;
