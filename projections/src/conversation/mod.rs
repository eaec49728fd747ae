//! What stands in a conversation?
//!
//! Messages, replies, notices and delivered files in admission order, one model for the main and the channel conversations; what stands in a task's own conversation
//! is in `task_entries`. Invariants:
//! - `place` never changes, and is the ordinal of the event that first showed the entry: a message's admission, a reply's first execution, a notice's posting.
//! - A message has one reply. While it is written its row has no text; pieces of it travel beside the read model.
//! - Tool calls of a conversation's turns are no entries (USE-27). The results of tasks are kept and not shown: a reply tells them.
//!
//! Next: `fold.rs`, then `read.rs`; `past.rs` shows how a conversation was.

mod fold;
pub mod past;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::{Change, NewEntry, Opened, Patch};
#[cfg(test)]
pub(crate) use read::places_of;
pub use read::{Attachment, Conversation, Entry, PAGE_MAX, Page, Turn, attachment, by_input, conversations, entries, entry, history, one, page};
pub(crate) use read::{EntryRow, attachments_of, conversations_changed, take_entries};
pub(crate) use write::EntryWrite;
pub use write::Rows;

use crate::code::codes;
use crate::commit::{Fact, Parts, Projection};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
  Text,
  Notice,
  /// A file that a task handed over.
  File,
  /// A task's result as it came in: prompts have it, the page shows the reply that tells it.
  Report,
}

/// Whose words an entry has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
  Owner,
  Person,
  Agent,
  Notice,
}

/// How far an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
  /// A message that waits for its reply.
  Pending,
  /// A message whose reply stands.
  Answered,
  /// A message or reply that the owner stopped.
  Stopped,
  /// A message whose reply failed, or that reply.
  Failed,
  /// A reply that is being written.
  Writing,
  /// A finished reply, or a notice.
  Posted,
}

codes! {
  EntryKind, "a kind of entry": Text = "TEXT", Notice = "NOTICE", File = "FILE", Report = "REPORT";
  Role, "a role in a conversation": Owner = "OWNER", Person = "PERSON", Agent = "AGENT", Notice = "NOTICE";
  Status, "a status of an entry":
    Pending = "PENDING", Answered = "ANSWERED", Stopped = "STOPPED", Failed = "FAILED", Writing = "WRITING", Posted = "POSTED";
}

impl Projection for Rows {
  const NAME: &'static str = "conversation";
  const FOLD_VERSION: u32 = 2;
  const TABLES: &'static str = include_str!("tables.sql");
  type Change = Change;

  fn fold(fact: &Fact<'_>) -> Vec<Change> {
    fold::fold(fact.meta, fact.event)
  }

  fn merge(&mut self, agent: AgentId, change: Change) {
    self.add(agent, change);
  }

  fn forget(&mut self, agent: AgentId) {
    self.drop_agent(agent);
  }

  fn write<'a>(&'a self, parts: &mut Parts<'a>) {
    self.statements(parts);
  }
}
