//! `decide`: one input, one decision.

use uuid::Uuid;

use crate::event::{Event, Input};
use crate::ids::Timestamp;
use crate::log::{InputSettled, Settlement};
use crate::meta::Meta;
use crate::state::{Root, Thing};

/// Decides on an input: 1 to 64 events, in order. `meta` is the input's, `at` the decision's instant. Pure; a refusal is `InputSettled` with a reason code.
pub fn decide(_root: &Root, _thing: &Thing, _meta: &Meta, _input: &Input, _at: Timestamp) -> Vec<Event> {
  vec![crate::log::Event::InputSettled(InputSettled { outcome: Settlement::NoChange, reason: String::new(), of: None::<Uuid>.map(crate::ids::RecordId) }).into()]
}
