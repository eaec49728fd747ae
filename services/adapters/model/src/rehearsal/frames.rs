//! Writes events of the model protocol.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::estimate_tokens;

pub(super) const DONE: &str = "data: [DONE]\n\n";

/// How much of a text a piece holds, in columns (a CJK character is two): a few words, as models send them.
const PIECE_COLUMNS: usize = 12;

/// Writes one chunk whose only choice has this delta and, maybe, a reason to finish.
pub(super) fn chunk(model: &str, delta: &str, finish: Option<&str>) -> String {
  let finish = finish.map_or_else(|| "null".to_owned(), |reason| Value::from(reason).to_string());
  event(model, &format!(r#"[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]"#), "")
}

/// Writes one chunk with choices as they are and more fields behind them.
pub(super) fn event(model: &str, choices: &str, more: &str) -> String {
  let model = Value::from(model);
  format!(r#"data: {{"id":"rehearsal","object":"chat.completion.chunk","created":0,"model":{model},"choices":{choices}{more}}}"#) + "\n\n"
}

pub(super) fn text(model: &str, piece: &str) -> String {
  let mut delta = String::with_capacity(piece.len() + 16);
  // Writing to a string can't fail.
  write!(delta, r#"{{"content":{}}}"#, Value::from(piece)).expect("writes to memory");
  chunk(model, &delta, None)
}

/// Writes a whole tool call as one piece.
pub(super) fn call(model: &str, index: usize, tool: &str, arguments: &Value) -> String {
  let function = json!({ "name": tool, "arguments": arguments.to_string() });
  let delta = json!({ "tool_calls": [{ "index": index, "id": format!("call_{index}"), "type": "function", "function": function }] });
  chunk(model, &delta.to_string(), None)
}

pub(super) fn usage(model: &str, usage: &Value) -> String {
  event(model, "[]", &format!(r#","usage":{usage}"#))
}

/// Counts a request and its answer the way we guess everywhere.
pub(super) fn counted(request: &Value, answer: &str) -> Value {
  let input = estimate_tokens(&request["messages"].to_string());
  let output = estimate_tokens(answer);
  json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}

/// Splits a text into the pieces that a model would send.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
  let mut rest = text;
  std::iter::from_fn(move || {
    if rest.is_empty() {
      return None;
    }
    let mut columns = 0;
    let end = rest.char_indices().find_map(|(at, character)| {
      columns += if character.is_ascii() { 1 } else { 2 };
      let boundary = character.is_whitespace() || !character.is_ascii();
      (columns >= PIECE_COLUMNS && boundary).then_some(at + character.len_utf8())
    });
    let (piece, left) = rest.split_at(end.unwrap_or(rest.len()));
    rest = left;
    Some(piece)
  })
}

/// Splits a text after each word.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
  text.split_inclusive(char::is_whitespace)
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn pieces_are_small_and_lose_nothing() {
    for text in ["", "short", "a sentence of several words, to be written piece by piece", "一段没有空格的中文也会分成几块发送出去"] {
      let split: Vec<&str> = pieces(text).collect();
      assert_eq!(split.concat(), text);
      assert_eq!(words(text).collect::<String>(), text);
      assert!(text.len() < 20 || split.len() >= 3, "{split:?}");
    }
  }
}
