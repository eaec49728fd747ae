//! What every record says about itself beside its content: the `core` of the `pa-meta` header as the rules see it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{AgentId, Timestamp};

/// Where content comes from (D30). Only the owner's text can instruct; text of tools and third parties never can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Origin {
  /// The owner of the account, signed in or linked on a platform.
  Owner,
  /// The agent itself: what its model wrote.
  Agent,
  /// A tool's result.
  Tool,
  /// Someone else: a stranger on a platform, the content of a file, a page, an email.
  ThirdParty,
  /// The product.
  Platform,
}

impl Origin {
  /// Whether it may ask for what concerns accounts, agents as a whole, and the log: the owner, and the product on the machine's own command line.
  pub fn administers(self) -> bool {
    match self {
      Self::Owner | Self::Platform => true,
      Self::Agent | Self::Tool | Self::ThirdParty => false,
    }
  }
}

/// Which of the log's record kinds a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Kind {
  /// A command or report, in `pa.inputs`.
  Input,
  /// A fact of one agent, in `pa.events`.
  Event,
  /// A record about the partition itself: no agent, ordinal or seal.
  Partition,
}

/// The part of a record's metadata that rules and folds read. All but the last three fields are bound to the sealed body, so they can't be changed afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
  /// The record's own id (`ce_id`): `UUIDv7` of the appender for inputs, `UUIDv5` of (input id, index) for events.
  pub id: Uuid,
  pub kind: Kind,
  pub agent: AgentId,
  /// 1, 2, 3 … for an agent's events; 0 for inputs.
  pub ordinal: i64,
  /// For an event: max(the agent's last `at`, the decider's clock). For an input: the appender's clock, which is data only.
  pub at: Timestamp,
  /// For an event: the id of the input that it decides. For an input: the record that led to it, or nil.
  pub cause: Uuid,
  /// The id of the first input of a chain of causes.
  pub correlation: Uuid,
  /// Who acted: `owner`, `agent`, `platform`, `node:<id>`, `person:<connection>:<id>`. At most 256 bytes.
  pub actor: String,
  pub origin: Origin,
  /// Who made the idempotency key: a connection, an account, a worker, `decider`. Empty with an empty key.
  pub producer: String,
  /// HMAC-SHA256 of the idempotency key under the agent's key-hash key: 32 bytes; for a client's key 32 more bytes over the business fields, so that the same
  /// key with other content is noticed. Empty for a record without a key.
  pub key: Vec<u8>,
  /// Copied from the record's place, not bound: for an event, the position in `pa.inputs` of the input that it decides; 0 for an input.
  pub input: i64,
  /// Copied from the record's place, not bound: the decision is of an input that had been held behind a quarantine.
  pub held: bool,
  /// Copied from the record's place, not bound: the event's number in its decision, from 1; 0 for an input.
  pub part: i32,
}
