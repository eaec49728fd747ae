//! Builds one answer from streamed chunks.
//!
//! Invariants
//! - Without a reason to finish there is no answer, whatever has arrived.
//! - Text beyond the limit ends the answer as incomplete; calls of an incomplete answer are dropped.

use serde_json::Value;

use super::calls::Calls;
use super::chunk::{Chunk, Piece, read_usage};
use super::refusal;
use crate::thinking::{Thinking, Visible};
use crate::{Answer, Delta, Error, Finish, Pieces, Usage, lenient_json};

/// The size of a message: what is longer could not be kept as one.
pub(crate) const TEXT_BYTES_MAX: usize = 262_144;

pub(super) struct Assembly<'a> {
  pieces: &'a mut (dyn Pieces + 'a),
  /// Pieces went out that a new attempt has to take back.
  pub(super) shown: bool,
  text: String,
  thinking: Thinking,
  calls: Calls,
  finish: Option<Finish>,
  full: bool,
  reasoned: bool,
  text_pieces: usize,
  usage: Usage,
  model: Option<String>,
}

impl<'a> Assembly<'a> {
  pub(super) fn new(pieces: &'a mut (dyn Pieces + 'a)) -> Self {
    Self {
      pieces,
      shown: false,
      text: String::new(),
      thinking: Thinking::default(),
      calls: Calls::default(),
      finish: None,
      full: false,
      reasoned: false,
      text_pieces: 0,
      usage: Usage::default(),
      model: None,
    }
  }

  /// Says whether the model has said, thought or called anything yet.
  pub(super) fn has_begun(&self) -> bool {
    self.reasoned || self.text_pieces > 0 || self.calls.len() > 0
  }

  /// Says whether the model has said why it ended; only the usage may still come.
  pub(super) fn is_finished(&self) -> bool {
    self.finish.is_some()
  }

  /// Says whether the text has reached its limit, so that reading on is useless.
  pub(super) fn is_full(&self) -> bool {
    self.full
  }

  pub(super) fn take(&mut self, data: &[u8], redact: &refusal::Redact<'_>) -> Result<(), Error> {
    let chunk: Chunk = serde_json::from_slice(&lenient_json(data)).map_err(|_| Error::Malformed { what: "chunk" })?;
    if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
      return Err(refusal::in_the_stream(&error, redact));
    }
    if self.model.is_none() {
      self.model = chunk.model.filter(|model| !model.is_empty());
    }
    self.count(chunk.usage.as_ref());
    for choice in chunk.choices.into_iter().flatten().filter(|choice| choice.index.unwrap_or(0) == 0) {
      self.count(choice.usage.as_ref());
      if let Some(piece) = choice.delta {
        self.extend(piece)?;
      }
      if let Some(reason) = choice.finish_reason.as_deref() {
        self.finish = read_finish(reason)?.or(self.finish);
      }
    }
    Ok(())
  }

  fn count(&mut self, usage: Option<&Value>) {
    if let Some(usage) = usage {
      read_usage(usage, &mut self.usage);
    }
  }

  fn extend(&mut self, mut piece: Piece) -> Result<(), Error> {
    self.reasoned |= piece.reasons();
    if let Some(text) = piece.take_text() {
      self.text_pieces += 1;
      let visible = self.thinking.push(text);
      self.show(visible);
    }
    piece.tool_calls.into_iter().flatten().try_for_each(|call| self.calls.take(call))
  }

  fn show(&mut self, visible: Visible) {
    if visible.restarted {
      self.text.clear();
      if std::mem::take(&mut self.shown) {
        self.pieces.take(Delta::Restarted);
      }
    }
    let mut piece = visible.text;
    let room = TEXT_BYTES_MAX - self.text.len();
    if piece.len() > room {
      piece.truncate(piece.floor_char_boundary(room));
      self.full = true;
      self.finish = Some(Finish::Length);
    }
    if !piece.is_empty() {
      self.text.push_str(&piece);
      self.shown = true;
      self.pieces.take(Delta::Text(piece));
    }
  }

  /// Makes the answer of what has arrived, if it is whole.
  pub(super) fn finish(&mut self) -> Result<Answer, Error> {
    let finish = self.finish.ok_or(Error::Cut)?;
    if !self.full {
      let text = self.thinking.finish();
      self.show(Visible { restarted: false, text });
    }
    // The limit may have been reached only now.
    let finish = if self.full { Finish::Length } else { finish };
    let begun = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
    let calls = std::mem::take(&mut self.calls);
    let (finish, calls, calls_dropped) = match finish {
      Finish::Stop | Finish::ToolCalls if begun > 0 => (Finish::ToolCalls, calls.finish()?, 0),
      Finish::ToolCalls => {
        return Err(Error::Malformed { what: "no tool call where one was announced" });
      }
      Finish::Stop => (Finish::Stop, Vec::new(), 0),
      Finish::Length | Finish::ContentFilter => (finish, Vec::new(), begun),
    };
    let text = std::mem::take(&mut self.text);
    let silent = text.trim().is_empty() && calls.is_empty();
    Ok(Answer {
      only_reasoning: silent && (self.reasoned || self.thinking.reasoned()),
      text,
      calls,
      finish,
      calls_dropped,
      usage: self.usage,
      model: self.model.take(),
      attempts: 1,
    })
  }
}

/// Reads the reason under its many names; an empty one is none.
fn read_finish(reason: &str) -> Result<Option<Finish>, Error> {
  match reason {
    "" => Ok(None),
    "length" | "max_tokens" => Ok(Some(Finish::Length)),
    "tool_calls" | "function_call" | "tool_use" => Ok(Some(Finish::ToolCalls)),
    "content_filter" | "safety" => Ok(Some(Finish::ContentFilter)),
    "error" | "abort" | "cancelled" => Err(Error::Cut),
    // "stop", "eos", "end_turn", "stop_sequence" and what else servers call a good end.
    _ => Ok(Some(Finish::Stop)),
  }
}
