//! What a model is asked: messages, tools, effort and how long it may take.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::{Timeouts, ToolCall};

/// One request to a model.
#[derive(Debug, Clone, Default)]
pub struct Request {
  /// Another model name than the configured one, at the same address.
  pub model: Option<String>,
  pub messages: Vec<Message>,
  pub tools: Arc<[Tool]>,
  /// How much the model may think first; an effort that the model does not offer becomes the next lower one that it does.
  pub effort: Effort,
  /// The most tokens that the answer may have; `None` takes the configured limit, if any.
  pub max_output_tokens: Option<u32>,
  /// Other time-outs than the configured ones.
  pub timeouts: Option<Timeouts>,
  /// When the caller's own time is over: no attempt runs or begins past it.
  pub deadline: Option<Instant>,
}

/// One message of the conversation that the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
  System(String),
  User(Vec<Part>),
  Assistant { text: String, calls: Vec<ToolCall> },
  Tool { call_id: String, text: String },
}

impl Message {
  /// Makes a user message of plain text.
  pub fn user(text: impl Into<String>) -> Self {
    Self::User(vec![Part::Text(text.into())])
  }
}

/// A part of what the user said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
  Text(String),
  /// Goes out as a data URL; a model that does not see is told so in its place.
  Picture {
    media_type: String,
    bytes: Bytes,
  },
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tool {
  pub name: String,
  pub description: String,
  /// A JSON schema of the arguments.
  pub parameters: Arc<Value>,
}

/// How much a model thinks before it answers, from the least up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
  /// No extra thinking.
  #[default]
  Fast,
  Low,
  Medium,
  High,
}

impl Effort {
  /// Returns the level's name as configuration and settings write it.
  pub fn as_str(self) -> &'static str {
    match self {
      Self::Fast => "fast",
      Self::Low => "low",
      Self::Medium => "medium",
      Self::High => "high",
    }
  }
}
