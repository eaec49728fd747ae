//! Records of accounts.

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;
use crate::record::records;

/// What an account may do in the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Role {
  Owner,
  Administrator,
  Member,
}

/// Asks for another account with its agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountAddAsked {
  pub name: String,
  pub role: Role,
}

/// An account exists; its agent is asked for by a routed input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountAdded {
  pub account: AgentId,
  pub name: String,
  pub role: Role,
}

records! {
  /// Commands about accounts.
  "account" Input { AccountAddAsked = 1 }
}

records! {
  /// Facts about accounts.
  "account" Event { AccountAdded = 1 }
}
