//! Typed ids and the instant: newtypes that can't be mixed up.
//!
//! In records every id is a string (a bare `Uuid` would become bytes in Avro). Ids made by a decision are `UUIDv5` of (input id, index in the decision), so a
//! replay makes the same ones and they serve as idempotency keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The one fixed namespace of all derived ids. A permanent choice: changing it would change every derived id.
pub const NAMESPACE: Uuid = Uuid::from_u128(0x6f0e_6a52_2f5b_4a53_9d0e_7c1f_51a6_b2d4);

/// The reserved agent that holds accounts and what belongs to the whole installation.
pub const INSTALLATION: AgentId = AgentId(Uuid::from_u128(0x0000_0000_0000_8000_8000_0000_0000_0001));

/// Derives the id with number `index` of the decision on input `input`: `UUIDv5` over (input id ‖ index as 4 bytes, big-endian).
pub fn derived(input: Uuid, index: u32) -> Uuid {
  let mut name = [0_u8; 20];
  name[..16].copy_from_slice(input.as_bytes());
  name[16..].copy_from_slice(&index.to_be_bytes());
  Uuid::new_v5(&NAMESPACE, &name)
}

/// Derives an id from a parent id and a label, such as the reply of a message.
pub fn named(parent: Uuid, label: &str) -> Uuid {
  let mut name = Vec::with_capacity(16 + label.len());
  name.extend_from_slice(parent.as_bytes());
  name.extend_from_slice(label.as_bytes());
  Uuid::new_v5(&NAMESPACE, &name)
}

macro_rules! ids {
  ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
    $(#[$doc])*
    #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub struct $name(pub Uuid);

    impl fmt::Display for $name {
      fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
    }
    impl fmt::Debug for $name {
      fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{}", self.0) }
    }
    impl FromStr for $name {
      type Err = uuid::Error;
      fn from_str(text: &str) -> Result<Self, uuid::Error> { Uuid::parse_str(text).map(Self) }
    }
    impl From<Uuid> for $name {
      fn from(id: Uuid) -> Self { Self(id) }
    }
    impl Serialize for $name {
      fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buffer = Uuid::encode_buffer();
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut buffer))
      }
    }
    impl<'de> Deserialize<'de> for $name {
      fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
          type Value = Uuid;
          fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("a UUID as text") }
          fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Uuid, E> { Uuid::parse_str(text).map_err(E::custom) }
        }
        deserializer.deserialize_str(Text).map(Self)
      }
    }
  )+};
}

ids! {
  /// An account's agent; account and agent share one id.
  AgentId,
  /// A conversation: the main one, one per channel contact or group, one per task.
  ConversationId,
  /// A message, reply or notice in a conversation.
  MessageId,
  /// A unit of work that executions carry out; the id of the thing it belongs to (for a reply: the message that it answers).
  JobId,
  /// One tool call: `UUIDv5` of (job, step, index), with no execution in it.
  CallId,
  /// A timer.
  TimerId,
  /// A thing of an agent: what a decision may change beside the root.
  ThingId,
  /// A node: one data folder, over all lives of its processes.
  NodeId,
  /// An input, an event or an upload named by a record.
  RecordId,
  /// A background task; the id of its job and of its thing.
  TaskId,
  /// A card: one held action that waits for the owner's decision.
  ActionId,
  /// A file that a task handed over.
  OutputId,
}

impl From<TaskId> for ThingId {
  fn from(task: TaskId) -> Self {
    Self(task.0)
  }
}

impl From<TaskId> for JobId {
  fn from(task: TaskId) -> Self {
    Self(task.0)
  }
}

impl From<JobId> for TaskId {
  fn from(job: JobId) -> Self {
    Self(job.0)
  }
}

impl From<JobId> for ThingId {
  fn from(job: JobId) -> Self {
    Self(job.0)
  }
}

impl From<MessageId> for JobId {
  fn from(message: MessageId) -> Self {
    Self(message.0)
  }
}

impl From<JobId> for MessageId {
  fn from(job: JobId) -> Self {
    Self(job.0)
  }
}

/// The id of a call: `UUIDv5` of (job, step, index), the same in every execution.
pub fn call(job: JobId, step: i32, index: i32) -> CallId {
  CallId(named(job.0, &format!("call/{step}/{index}")))
}

/// The id of the task that a turn starts under a request key: the same in every attempt, so that it can't start twice (REP-34).
pub fn task(turn: JobId, request_key: &str) -> TaskId {
  TaskId(named(turn.0, &format!("task/{request_key}")))
}

/// The id of a task's own conversation.
pub fn conversation_of(task: TaskId) -> ConversationId {
  ConversationId(named(task.0, "conversation"))
}

/// The id of what a task hands over under a request key, within one revision of its instructions (DEL-11).
pub fn output(task: TaskId, revision: i64, request_key: &str) -> OutputId {
  OutputId(named(task.0, &format!("output/{revision}/{request_key}")))
}

/// An instant: milliseconds since 1970-01-01T00:00:00Z, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
  /// The instant `millis` later, saturating.
  #[must_use]
  pub fn plus_millis(self, millis: i64) -> Self {
    Self(self.0.saturating_add(millis))
  }
}
