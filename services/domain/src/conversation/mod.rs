//! Conversations: messages come in, each is answered once, in order per conversation.
//!
//! `pending → answered | stopped | failed` for a message; a failed or stopped one may be retried. `ReplyRequested` says that it is a message's turn: at most one
//! message of a conversation has its turn, at most four channel conversations besides the main one (D33), and the main one never waits for a channel.
//!
//! Entries of every kind of conversation stand in admission order: the ordinal of the event that first showed them.

mod admit;
mod decide;
mod event;
mod evolve;
pub(crate) mod report;
mod state;
#[cfg(test)]
mod tests;
mod turns;

pub(crate) use admit::{admitted_as_failed, cleaned as kept_file, posted};
pub(crate) use decide::decide;
pub use event::*;
pub(crate) use evolve::evolve;
pub use state::{Conversation, OpenMessage, OpenReport, Reply, ReplyStatus, Report};
pub(crate) use turns::turn_after;
