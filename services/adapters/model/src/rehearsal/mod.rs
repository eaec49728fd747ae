//! The rehearsal model: a small server on loopback that speaks the model protocol, for trying everything out before a real model is
//! configured. It says what it is in its first words and answers the same to the same.
//!
//! `skills.rs` is the table of what it can do: a new skill is one row there. `tasks.rs` is how it starts, steers and carries out background tasks. `script/` makes the same server misbehave for tests;
//! the product never starts that one.

mod ask;
mod frames;
#[cfg(any(test, feature = "testing"))]
mod line;
#[cfg(any(test, feature = "testing"))]
mod script;
mod server;
mod skills;
mod tasks;

#[cfg(any(test, feature = "testing"))]
pub use script::{Hold, Reply, Script, Seen};
pub use server::{Options, Server, serve};
