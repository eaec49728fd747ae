//! The suite that every tool passes.

use std::time::Duration;

use pa_domain::limits::CALL_LIMIT_MILLIS_MAX;
use serde_json::{Map, Value, json};

use crate::{Context, Error, Tool};

/// Longer ones would crowd out the conversation.
const DESCRIPTION_CHARS_MAX: usize = 1_000;
/// What common model services take.
const NAME_CHARS_MAX: usize = 64;

/// Checks what a tool says of itself, and that it refuses arguments that it does not know.
///
/// # Panics
/// The tool breaks the contract.
pub async fn check(tool: &dyn Tool, context: &Context) {
  let name = tool.name();
  assert!(name.starts_with("pa_") || name == "load_plugin", "{name}: names begin with pa_");
  assert!(name.len() <= NAME_CHARS_MAX && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'), "{name}: not a name");
  let description = tool.description();
  assert!(!description.is_empty() && description.chars().count() <= DESCRIPTION_CHARS_MAX, "{name}: a description that a model can use");
  let parameters = tool.parameters();
  assert_eq!(parameters["type"], "object", "{name}: arguments are an object");
  assert_eq!(parameters["additionalProperties"], false, "{name}: unknown arguments are refused");
  let properties = parameters["properties"].as_object().unwrap_or_else(|| panic!("{name}: properties"));
  for (property, schema) in properties {
    assert!(schema["description"].is_string(), "{name}: {property} has no description");
    assert_ne!(schema["type"], "number", "{name}: {property} is no integer, and so has no canonical form");
  }
  let limit = tool.time_limit();
  assert!(limit > Duration::ZERO && limit.as_millis() <= CALL_LIMIT_MILLIS_MAX.unsigned_abs().into(), "{name}: a time limit within bounds");
  assert!(!tool.places().is_empty(), "{name}: offered somewhere");
  let unknown: Map<String, Value> = std::iter::once(("no_such_argument".to_owned(), json!(1))).collect();
  assert!(matches!(tool.call(context, &unknown).await, Err(Error::Arguments { .. })), "{name}: takes arguments that it does not know");
}
