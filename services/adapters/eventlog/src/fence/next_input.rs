//! Which input is decided next, folded from what the fence accepted, and the comparison of the decided inputs with the input log.
//!
//! The comparison finds out when the input log was cut (a power loss, a restored backup) and grew again: what stands there now was never decided.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::record::Position;

/// So many inputs in a row that agree end the search: what was in flight when a log was cut is far less.
pub const AGREEING_INPUTS: u32 = 1_000;

/// The position from which inputs are still to be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextInput(pub Position);

impl NextInput {
  /// A log without decisions.
  pub const START: Self = Self(0);

  /// After an announcement; one that does not count moves nothing.
  #[must_use]
  pub fn announced(self, counts: bool, inputs_from: Position) -> Self {
    if counts { Self(inputs_from) } else { self }
  }

  /// After a whole decision; one on a held input moves nothing.
  #[must_use]
  pub fn decided(self, input: Position, held: bool) -> Self {
    if held { self } else { Self(input + 1) }
  }
}

/// Whether the search has to look further down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
  /// Compare the positions below this one next.
  Below(Position),
  Done,
}

/// The search for the lowest input, below the next one, whose record is missing or another one than was decided there.
#[derive(Clone, Debug)]
pub struct Agreement {
  inputs_from: Position,
  below: Position,
  agreed: u32,
  log_start: Position,
}

impl Agreement {
  /// A search downwards from `next`. Below `log_start`, the position of the input log's first record, inputs have expired and are not compared; for an empty
  /// input log it is 0.
  pub fn new(next: NextInput, log_start: Position) -> Self {
    Self { inputs_from: next.0, below: next.0, agreed: 0, log_start }
  }

  /// Compares the positions from `low` up to the last bound: `decided` holds the cause of the latest unmarked decision of each position, `present` the id of
  /// each record in the input log. A position that has neither is a gap and is passed over.
  pub fn compare(&mut self, low: Position, decided: &BTreeMap<Position, Uuid>, present: &BTreeMap<Position, Uuid>) -> Progress {
    let low = low.max(self.log_start);
    let mut decided = decided.range(low..self.below.max(low)).rev().peekable();
    let mut present = present.range(low..self.below.max(low)).rev().peekable();
    while self.agreed < AGREEING_INPUTS {
      let position = match (decided.peek(), present.peek()) {
        (None, None) => break,
        (Some((at, _)), None) | (None, Some((at, _))) => **at,
        (Some((left, _)), Some((right, _))) => **(left.max(right)),
      };
      let was = decided.next_if(|(at, _)| **at == position).map(|(_, id)| *id);
      let is = present.next_if(|(at, _)| **at == position).map(|(_, id)| *id);
      if was == is {
        self.agreed += 1;
      } else {
        self.agreed = 0;
        self.inputs_from = position;
      }
    }
    self.below = low;
    if self.agreed >= AGREEING_INPUTS || low <= self.log_start { Progress::Done } else { Progress::Below(low) }
  }

  /// Where to decide from, as far as compared.
  pub fn inputs_from(&self) -> Position {
    self.inputs_from
  }
}
