//! Short forms for decisions that lead to no other fact.

use uuid::Uuid;

use crate::event::{Event, Input};
use crate::ids::RecordId;
use crate::log::{InputSettled, Settlement};

/// A command that a rule refuses.
pub fn refused(reason: &str) -> Event {
  settled(Settlement::Refused, reason, None)
}

/// An input after which nothing is different.
pub fn no_change(reason: &str) -> Event {
  settled(Settlement::NoChange, reason, None)
}

/// An input whose key was decided before, by the input with id `of`.
pub fn repeated(of: Uuid) -> Event {
  settled(Settlement::Repeated, "", Some(RecordId(of)))
}

/// What settles `input` when it can't lead to anything: a command is refused, a report can't be.
pub(crate) fn without_effect(input: &Input, reason: &str) -> Event {
  if input.is_command() { refused(reason) } else { no_change(reason) }
}

fn settled(outcome: Settlement, reason: &str, of: Option<RecordId>) -> Event {
  InputSettled { outcome, reason: reason.to_owned(), of }.into()
}
