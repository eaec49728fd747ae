//! The rules of Personal Agent, pure: no clock, no randomness, no I/O, no async.
//!
//! An *input* is a command (may be refused) or a report from outside (can't be refused, only be a repeat). An *event* is what was concluded, a fact in the past
//! tense. `decide` turns an input into one decision of 1 to 64 events; `evolve` folds events into state, and is the only replay: `decide` is never run on
//! history. A folder is a context; `route` is the only wiring between things. Start with [`meta`], then [`conversation`], [`execution`] and [`task`].

#![deny(clippy::wildcard_enum_match_arm)]

pub mod account;
pub mod agent;
pub mod call;
pub mod canonical;
pub mod codes;
pub mod conversation;
pub mod event;
pub mod execution;
pub mod ids;
pub mod lenient_json;
pub mod limits;
pub mod log;
pub mod meta;
mod record;
pub mod settings;
pub mod settle;
pub mod state;
pub mod task;
pub mod testing;
mod text;
pub mod timer;

mod decide;
mod evolve;
mod provenance;
mod route;
#[cfg(test)]
mod tests;

pub use decide::decide;
pub use event::{BodyDecoder, BodyEncoder, Event, Input};
pub use evolve::evolve;
pub use ids::{ActionId, AgentId, CallId, ConversationId, JobId, MessageId, NodeId, OutputId, TaskId, ThingId, TimerId, Timestamp};
pub use meta::{Meta, Origin};
pub use provenance::origin_of;
pub use route::{Routed, route};
pub use state::{Root, State, Thing};
