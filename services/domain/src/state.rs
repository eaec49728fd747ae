//! What the rules remember: an agent's root, and one thing at a time.
//!
//! The root holds what a rule counts or compares across things; it holds no text and at most 256 KiB. Both are folded from events by [`crate::evolve`] alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::call::{Class, Outcome};
use crate::conversation::{Author, ConversationKind};
use crate::execution::ToolCall;
use crate::ids::{CallId, ConversationId, JobId, MessageId, TimerId, Timestamp};
use crate::settings::SettingsChanged;
use crate::timer::TimerSet;

/// The version of everything in this module: raise it with any change of shape or meaning, and a decider builds its state anew from the log.
pub const FOLD_VERSION: i32 = 1;

/// An agent as the rules see it when they decide on one of its inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
  pub root: Root,
  pub thing: Thing,
}

/// What is counted or compared across an agent's things.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Root {
  pub life: Life,
  pub settings: Option<SettingsChanged>,
  pub main: Option<ConversationId>,
  pub conversations: BTreeMap<ConversationId, Conversation>,
  pub timers: BTreeMap<TimerId, TimerSet>,
  pub quarantine: Quarantine,
  /// Accounts by their id; only in the root of `installation`.
  pub accounts: u32,
}

/// Whether the agent exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
  #[default]
  Absent,
  Alive,
  Erased,
}

/// A conversation's turn order: the open messages, first one first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
  pub kind: ConversationKind,
  pub open: Vec<OpenMessage>,
}

/// A message that waits for its answer or has its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenMessage {
  pub job: JobId,
  pub reply: MessageId,
  /// `ReplyRequested` was decided for it.
  pub has_turn: bool,
}

/// The inputs of an agent that are set aside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quarantine {
  /// Positions of held inputs in order, the quarantined one first.
  pub held: Vec<i64>,
  /// After a release: held inputs are being decided.
  pub draining: bool,
}

/// One thing's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Thing {
  /// Nothing is known of it.
  #[default]
  Absent,
  Reply(Box<Reply>),
}

/// A reply job: a message and all that was done to answer it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
  pub conversation: ConversationId,
  pub author: Author,
  pub reply: MessageId,
  pub status: ReplyStatus,
  pub work: Work,
}

/// How far a reply job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplyStatus {
  Pending,
  Answered,
  Stopped,
  Failed,
}

/// The execution side of any job: what replies, tasks, deliveries and checks share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
  /// Executions so far.
  pub executions: i32,
  /// The one that runs, if one does.
  pub running: Option<Running>,
  /// Losses that count.
  pub losses: i32,
  /// Ordinal of the last instruction (the message itself, a retry).
  pub instructed: i64,
  /// Recorded steps: step number to its calls.
  pub steps: BTreeMap<i32, Vec<ToolCall>>,
  pub calls: BTreeMap<CallId, Call>,
}

/// A running execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
  pub execution: i32,
  /// The ask that it answers.
  pub ask: Uuid,
  pub limit_ms: Timestamp,
  pub timer: TimerId,
}

/// A tool call's life so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
  pub step: i32,
  pub index: i32,
  pub execution: i32,
  pub class: Class,
  pub status: CallStatus,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallStatus {
  Started,
  Skipped,
  Settled(Outcome),
  ReconciledByReport,
  ReconciledByOwner,
}
