//! What stands in a conversation?
//!
//! Entries of every kind (messages, replies, notices, tool cards) in admission order, one model for the main, channel and task conversations. Invariants:
//! - `place` never changes, and is the ordinal of the event that first showed the entry: a message's admission, a reply's first execution, a notice's posting.
//! - A message has one reply. While it is written its row has no text; pieces of it travel beside the read model.
//! - Tool cards of a conversation's turns are kept but not shown (USE-27).
//!
//! Next: `fold.rs`, then `read.rs`.

mod fold;
mod read;
#[cfg(test)]
mod tests;
mod write;

use pa_domain::AgentId;

pub use fold::{Change, NewEntry, Opened, Patch};
pub use read::{Attachment, Conversation, Entry, PAGE_MAX, Page, Turn, attachment, by_input, conversations, entries, entry, history, one, page};
pub(crate) use read::{EntryRow, conversations_changed, take_entries};
pub(crate) use write::EntryWrite;
pub use write::Rows;

use crate::code::codes;
use crate::commit::{Fact, Parts, Projection};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
  Text,
  Instruction,
  Tool,
  Notice,
  File,
  LateResult,
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
  /// A message whose reply failed, that reply, or a call that failed.
  Failed,
  /// A reply that is being written.
  Writing,
  /// A finished reply, or a notice.
  Posted,
  /// A call that has begun.
  Started,
  /// A call that never began.
  Skipped,
  /// A call with a result.
  Returned,
  /// A call whose outcome nobody knows.
  Unknown,
  /// A call whose unknown outcome was settled.
  Reconciled,
}

codes! {
  EntryKind, "a kind of entry": Text = "TEXT", Instruction = "INSTRUCTION", Tool = "TOOL", Notice = "NOTICE", File = "FILE", LateResult = "LATE_RESULT";
  Role, "a role in a conversation": Owner = "OWNER", Person = "PERSON", Agent = "AGENT", Notice = "NOTICE";
  Status, "a status of an entry":
    Pending = "PENDING", Answered = "ANSWERED", Stopped = "STOPPED", Failed = "FAILED", Writing = "WRITING", Posted = "POSTED", Started = "STARTED",
    Skipped = "SKIPPED", Returned = "RETURNED", Unknown = "UNKNOWN", Reconciled = "RECONCILED";
}

impl Projection for Rows {
  const NAME: &'static str = "conversation";
  const FOLD_VERSION: u32 = 1;
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
