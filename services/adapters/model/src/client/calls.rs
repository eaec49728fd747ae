//! Puts tool calls together from their pieces.
//!
//! Invariant: a call leaves here whole (a name, and arguments that are a JSON object) or not at all.

use std::collections::HashSet;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::chunk::CallPiece;
use crate::{Error, ToolCall, lenient_json};

/// More calls in one answer than any real turn has.
const CALLS_MAX: usize = 64;
/// As much as a message may have; larger content goes through files.
const ARGUMENTS_BYTES_MAX: usize = 256 * 1024;
/// Ids and names longer than this come from a broken server.
const NAME_BYTES_MAX: usize = 256;

#[derive(Default)]
struct Partial {
  index: Option<i64>,
  id: String,
  name: String,
  arguments: String,
}

#[derive(Default)]
pub(super) struct Calls(Vec<Partial>);

impl Calls {
  pub(super) fn len(&self) -> usize {
    self.0.len()
  }

  pub(super) fn take(&mut self, piece: CallPiece) -> Result<(), Error> {
    let at = match self.position(&piece) {
      Some(at) => at,
      None if self.0.len() == CALLS_MAX => {
        return Err(Error::Oversized { what: "tool calls" });
      }
      None => {
        self.0.push(Partial { index: piece.index, ..Partial::default() });
        self.0.len() - 1
      }
    };
    let call = &mut self.0[at];
    if let Some(id) = piece.id.filter(|_| call.id.is_empty()) {
      call.id = id;
    }
    let Some(function) = piece.function else {
      return Ok(());
    };
    // Some servers repeat the name with every piece, some send it in pieces.
    if let Some(name) = function.name.filter(|name| *name != call.name) {
      call.name.push_str(&name);
    }
    match function.arguments {
      None | Some(Value::Null) => {}
      Some(Value::String(part)) => call.arguments.push_str(&part),
      Some(object @ Value::Object(_)) if call.arguments.is_empty() => {
        call.arguments = object.to_string();
      }
      Some(_) => {
        return Err(Error::Malformed { what: "tool arguments" });
      }
    }
    if call.arguments.len() > ARGUMENTS_BYTES_MAX {
      return Err(Error::Oversized { what: "tool arguments" });
    }
    if call.name.len().max(call.id.len()) > NAME_BYTES_MAX {
      return Err(Error::Oversized { what: "tool name" });
    }
    Ok(())
  }

  /// Finds the call that a piece continues. Servers number their calls, or only give ids, or give every call the number 0.
  fn position(&self, piece: &CallPiece) -> Option<usize> {
    let id = piece.id.as_deref().filter(|id| !id.is_empty());
    let named = piece.function.as_ref().and_then(|function| function.name.as_deref()).is_some_and(|name| !name.is_empty());
    let found = match (piece.index, id) {
      (Some(index), _) => self.0.iter().rposition(|call| call.index == Some(index))?,
      (None, Some(id)) => self.0.iter().rposition(|call| call.id == id)?,
      (None, None) if named => return None,
      (None, None) => self.0.len().checked_sub(1)?,
    };
    let known = &self.0[found];
    let another = named && id.is_some_and(|id| !known.id.is_empty() && known.id != id);
    (!another).then_some(found)
  }

  pub(super) fn finish(mut self) -> Result<Vec<ToolCall>, Error> {
    self.0.sort_by_key(|call| call.index);
    let mut ids = HashSet::new();
    self
      .0
      .into_iter()
      .enumerate()
      .map(|(at, call)| {
        if call.name.is_empty() {
          return Err(Error::Malformed { what: "tool call without a name" });
        }
        let id = if call.id.is_empty() || ids.contains(&call.id) { format!("call_{at}") } else { call.id };
        ids.insert(id.clone());
        Ok(ToolCall { id, name: call.name, arguments: whole_arguments(&call.arguments)? })
      })
      .collect()
  }
}

/// The arguments are JSON inside JSON: they get their own lenient pass and must be an object.
fn whole_arguments(raw: &str) -> Result<String, Error> {
  let malformed = Error::Malformed { what: "tool arguments" };
  let raw = raw.trim();
  if raw.is_empty() || raw == "null" {
    return Ok("{}".to_owned());
  }
  let Ok(text) = String::from_utf8(lenient_json(raw.as_bytes()).into_owned()) else {
    return Err(malformed);
  };
  if !text.starts_with('{') || serde_json::from_str::<IgnoredAny>(&text).is_err() {
    return Err(malformed);
  }
  Ok(text)
}
