//! Records of an agent's life.

use serde::{Deserialize, Serialize};

use crate::record::records;

/// Asks for the agent of a new account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentCreateAsked {
  /// The account's name, as its owner is addressed.
  pub owner_name: String,
}

/// Asks that everything of this agent becomes unreadable for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentEraseAsked {
  /// The account's name again, so that it can't be erased by a slip.
  pub confirmation: String,
}

/// The agent exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentCreated {
  pub owner_name: String,
}

/// The agent's keys are to be deleted; every reader skips it from here on (D31).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentErased {}

records! {
  /// Commands about the agent.
  "agent" Input { AgentCreateAsked = 1, AgentEraseAsked = 1 }
}

records! {
  /// Facts about the agent.
  "agent" Event { AgentCreated = 1, AgentErased = 1 }
}
