//! The read model: one folder for each question that the page asks.
//!
//! A folder holds `tables.sql`, `fold` (pure: an event to changes of rows), `write` (changes merged by primary key, one statement a table and kind of change),
//! `read` (plain structs for the gateway and the workers) and its tests. Invariants:
//! - Projections only fold. Nothing here asks another system, looks at a clock or decides anything, so any read schema can be dropped and rebuilt, equal row for
//!   row.
//! - All projections of a partition commit a batch together with the partition's position, and only where that position is the expected one ([`commit`]).
//! - Every row that the page shows carries `changed`, the ordinal of its last change; a row that is taken away stays as a tombstone. An erased agent leaves no row.
//! - Every read names its agent first (or is the system's own), and has a limit.
//!
//! Start with [`commit`], then [`conversation`]; [`schema`] says where the tables live, [`live`] tells when there is something new, [`updates`] reads it.

pub mod accounts;
pub mod audit;
pub mod code;
pub mod commit;
pub mod conversation;
pub mod error;
pub mod indicator;
pub mod live;
pub mod outputs;
pub mod pending_actions;
pub mod queue;
pub mod schema;
pub mod settings;
pub mod system;
pub mod task_entries;
pub mod tasks;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod timers;
pub mod updates;
pub mod usage;

#[cfg(test)]
mod tests;

pub use commit::{Batch, Fact, Loaded, Mark, Outcome, Projection, ReadStore};
pub use error::Error;
