//! What is kept of one agent's replies while they are written. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::limits::MESSAGE_TEXT_BYTES_MAX;
use pa_domain::{ConversationId, MessageId};
use tokio::time::Instant;

use super::{NamedStep, Piece};

/// Replies of one agent that are written at a time: the main conversation, four channel ones and as many tasks as may run, with room.
const MESSAGES_MAX: usize = 32;
/// Ended replies that are remembered, so that a late piece does not bring one back.
const ENDED_MAX: usize = 64;
/// Conversations whose step is kept.
const STEPS_MAX: usize = 64;
/// A reply attempt takes four minutes at the most; a text untouched for longer has ended unseen.
const UNTOUCHED_MAX: Duration = Duration::from_secs(600);

/// Where a piece was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
  Here,
  Elsewhere,
}

/// The text so far of one reply.
struct Text {
  message: MessageId,
  attempt: i32,
  text: String,
  utf16: i64,
  source: Source,
  touched: Instant,
}

/// The step of one conversation; `number` tells a newer one.
struct Step {
  named: NamedStep,
  number: u64,
  source: Source,
}

/// How much of a text somebody has heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
  attempt: i32,
  bytes: usize,
  utf16: i64,
}

/// What somebody has heard of one agent.
#[derive(Debug, Default)]
pub(super) struct Cursors {
  texts: Vec<(MessageId, Cursor)>,
  step: u64,
}

impl Cursors {
  /// Lets the next look find all of a text again.
  pub(super) fn forget(&mut self, message: MessageId) {
    self.texts.retain(|(known, _)| *known != message);
  }
}

/// Everything of one agent.
#[derive(Default)]
pub(super) struct Kept {
  texts: Vec<Text>,
  steps: Vec<Step>,
  ended: VecDeque<(MessageId, i32)>,
  number: u64,
}

impl Kept {
  pub(super) fn is_empty(&self) -> bool {
    self.texts.is_empty() && self.steps.iter().all(|step| step.named.step.is_none())
  }

  pub(super) fn text(&self, message: MessageId) -> Option<&str> {
    self.texts.iter().find(|text| text.message == message).map(|text| text.text.as_str())
  }

  pub(super) fn has_step(&self, conversation: ConversationId) -> bool {
    self.steps.iter().any(|step| step.named.conversation == conversation && step.named.step.is_some())
  }

  /// Takes in a piece; whether there is something new to hear.
  pub(super) fn accept(&mut self, piece: &Piece, source: Source, now: Instant) -> bool {
    if self.ended.iter().any(|(message, attempt)| *message == piece.message && piece.attempt <= *attempt) {
      return false;
    }
    let Some(text) = self.texts.iter_mut().find(|text| text.message == piece.message) else {
      return piece.offset_utf16 == 0 && self.begin(piece, source, now);
    };
    if piece.attempt < text.attempt || (piece.attempt > text.attempt && piece.offset_utf16 != 0) {
      return false;
    }
    text.source = source;
    text.touched = now;
    if piece.attempt > text.attempt {
      text.attempt = piece.attempt;
      text.text.clear();
      text.utf16 = 0;
      text.append(&piece.text);
      return true;
    }
    // A gap can't be filled: the rest is heard when the whole text comes again. What overlaps is there already.
    if piece.offset_utf16 > text.utf16 {
      return false;
    }
    text.append(after_units(&piece.text, text.utf16 - piece.offset_utf16))
  }

  fn begin(&mut self, piece: &Piece, source: Source, now: Instant) -> bool {
    if self.texts.len() >= MESSAGES_MAX {
      self.texts.remove(0);
    }
    let mut text = Text { message: piece.message, attempt: piece.attempt, text: String::new(), utf16: 0, source, touched: now };
    text.append(&piece.text);
    self.texts.push(text);
    true
  }

  /// Names a conversation's step; whether that is new.
  pub(super) fn name_step(&mut self, conversation: ConversationId, step: Option<&str>, source: Source) -> bool {
    self.number += 1;
    let known = self.steps.iter_mut().find(|known| known.named.conversation == conversation);
    match known {
      Some(known) if known.named.step.as_deref() == step => return false,
      Some(known) => {
        known.named.step = step.map(Arc::from);
        known.number = self.number;
        known.source = source;
      }
      None if step.is_none() => return false,
      None => {
        if self.steps.len() >= STEPS_MAX {
          self.steps.remove(0);
        }
        self.steps.push(Step { named: NamedStep { conversation, step: step.map(Arc::from) }, number: self.number, source });
      }
    }
    true
  }

  /// Ends a reply.
  pub(super) fn finish(&mut self, message: MessageId) {
    let Some(at) = self.texts.iter().position(|text| text.message == message) else { return };
    let text = self.texts.remove(at);
    if self.ended.len() >= ENDED_MAX {
      self.ended.pop_front();
    }
    self.ended.push_back((message, text.attempt));
  }

  pub(super) fn sweep(&mut self, now: Instant) {
    self.texts.retain(|text| now.duration_since(text.touched) < UNTOUCHED_MAX);
  }

  /// What somebody has not heard, of one source or of any; moves the cursors.
  pub(super) fn unheard(&self, cursors: &mut Cursors, source: Option<Source>) -> (Vec<Piece>, Vec<NamedStep>) {
    cursors.texts.retain(|(message, _)| self.texts.iter().any(|text| text.message == *message));
    let wanted = |of: Source| source.is_none_or(|source| source == of);
    let pieces = self.texts.iter().filter(|text| wanted(text.source)).filter_map(|text| text.unheard(&mut cursors.texts)).collect();
    let after = std::mem::replace(&mut cursors.step, self.number);
    let steps = self.steps.iter().filter(|step| step.number > after && wanted(step.source) && (after > 0 || step.named.step.is_some()));
    let steps = steps.map(|step| step.named.clone()).collect();
    (pieces, steps)
  }
}

impl Text {
  /// Appends what still fits; whether anything did.
  fn append(&mut self, text: &str) -> bool {
    let room = MESSAGE_TEXT_BYTES_MAX - self.text.len();
    let fits = &text[..text.floor_char_boundary(room)];
    self.text.push_str(fits);
    self.utf16 += units(fits);
    !fits.is_empty()
  }

  fn unheard(&self, cursors: &mut Vec<(MessageId, Cursor)>) -> Option<Piece> {
    let known = cursors.iter().position(|(message, _)| *message == self.message);
    let heard = known.map(|at| cursors[at].1).filter(|cursor| cursor.attempt == self.attempt);
    let nothing_new = match heard {
      Some(cursor) => cursor.bytes == self.text.len(),
      // An empty text is news only to who has heard the one before.
      None => known.is_none() && self.text.is_empty(),
    };
    if nothing_new {
      return None;
    }
    let from = heard.unwrap_or(Cursor { attempt: self.attempt, bytes: 0, utf16: 0 });
    let cursor = Cursor { attempt: self.attempt, bytes: self.text.len(), utf16: self.utf16 };
    match known {
      Some(at) => cursors[at].1 = cursor,
      None => cursors.push((self.message, cursor)),
    }
    Some(Piece { message: self.message, attempt: self.attempt, offset_utf16: from.utf16, text: self.text[from.bytes..].into() })
  }
}

/// UTF-16 units of a text.
pub(super) fn units(text: &str) -> i64 {
  text.chars().map(|character| character.len_utf16() as i64).sum()
}

/// The text without its first UTF-16 units; empty when it is not longer.
fn after_units(text: &str, mut skipped: i64) -> &str {
  let mut rest = text.chars();
  while skipped > 0 {
    match rest.next() {
      Some(character) => skipped -= character.len_utf16() as i64,
      None => return "",
    }
  }
  rest.as_str()
}
