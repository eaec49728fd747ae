//! The parts of a streamed chunk that we read. Servers differ in the rest, so nothing else is looked at, and what only some send right
//! is taken as any JSON value.

use serde::Deserialize;
use serde_json::Value;

use crate::Usage;

#[derive(Deserialize)]
pub(super) struct Chunk {
  #[serde(default)]
  pub(super) choices: Option<Vec<Choice>>,
  #[serde(default)]
  pub(super) usage: Option<Value>,
  #[serde(default)]
  pub(super) model: Option<String>,
  /// Servers report errors in the middle of a stream this way, under status 200.
  #[serde(default)]
  pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
  #[serde(default)]
  pub(super) index: Option<i64>,
  /// A server that does not stream sends the whole message.
  #[serde(default, alias = "message")]
  pub(super) delta: Option<Piece>,
  #[serde(default)]
  pub(super) finish_reason: Option<String>,
  /// Some servers put the usage here.
  #[serde(default)]
  pub(super) usage: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Piece {
  #[serde(default)]
  pub(super) content: Option<Value>,
  #[serde(default)]
  pub(super) refusal: Option<String>,
  #[serde(default)]
  pub(super) reasoning_content: Option<Value>,
  #[serde(default)]
  pub(super) reasoning: Option<Value>,
  #[serde(default)]
  pub(super) tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
pub(super) struct CallPiece {
  #[serde(default)]
  pub(super) index: Option<i64>,
  #[serde(default)]
  pub(super) id: Option<String>,
  #[serde(default)]
  pub(super) function: Option<FunctionPiece>,
}

#[derive(Deserialize)]
pub(super) struct FunctionPiece {
  #[serde(default)]
  pub(super) name: Option<String>,
  /// A string in pieces; from some servers an object at once.
  #[serde(default)]
  pub(super) arguments: Option<Value>,
}

impl Piece {
  pub(super) fn reasons(&self) -> bool {
    let content_reasons = matches!(&self.content, Some(Value::Array(parts)) if parts.iter().any(|part| part["type"] == "thinking"));
    content_reasons || [self.reasoning_content.as_ref(), self.reasoning.as_ref()].into_iter().any(says_something)
  }

  /// Takes the visible text: a string, or the text parts of a list of parts.
  pub(super) fn take_text(&mut self) -> Option<String> {
    let text = match self.content.take() {
      Some(Value::String(text)) => text,
      Some(Value::Array(parts)) => parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str()).collect(),
      _ => String::new(),
    };
    let text = if text.is_empty() { self.refusal.take()? } else { text };
    (!text.is_empty()).then_some(text)
  }
}

fn says_something(value: Option<&Value>) -> bool {
  match value {
    None | Some(Value::Null) => false,
    Some(Value::String(text)) => !text.is_empty(),
    Some(_) => true,
  }
}

/// Reads what is known of a usage, under the names of the common servers; later reports complete earlier ones.
pub(super) fn read_usage(value: &Value, usage: &mut Usage) {
  let first = |paths: &[&str]| paths.iter().find_map(|path| tokens(value.pointer(path)?));
  let set = |field: &mut Option<i64>, found: Option<i64>| *field = found.or(*field);
  set(&mut usage.input, first(&["/prompt_tokens", "/input_tokens"]));
  set(&mut usage.output, first(&["/completion_tokens", "/output_tokens"]));
  set(&mut usage.cached, first(&["/prompt_tokens_details/cached_tokens", "/input_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"]));
  set(&mut usage.reasoning, first(&["/completion_tokens_details/reasoning_tokens", "/output_tokens_details/reasoning_tokens"]));
}

fn tokens(value: &Value) -> Option<i64> {
  value.as_i64().filter(|&tokens| tokens >= 0)
}
