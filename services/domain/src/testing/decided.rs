//! What a test expects of a decision.

use uuid::Uuid;

use crate::call;
use crate::conversation;
use crate::event::{Event, message_of};
use crate::ids::JobId;
use crate::log::{self, InputSettled, Settlement};

/// A decision as it was made. Expectations give it back, so that another one can follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
  /// The id of the input.
  pub input: Uuid,
  pub events: Vec<Event>,
}

impl Decided {
  /// Expects exactly these events.
  #[track_caller]
  #[expect(clippy::return_self_not_must_use, reason = "the last expectation of a test has nobody to give it to")]
  pub fn then(self, expected: &[Event]) -> Self {
    assert_eq!(self.events, expected);
    self
  }

  /// Expects events of exactly these types, by the last part of their names.
  #[track_caller]
  #[expect(clippy::return_self_not_must_use, reason = "the last expectation of a test has nobody to give it to")]
  pub fn then_types(self, expected: &[&str]) -> Self {
    let types: Vec<&str> = self.events.iter().map(short_type).collect();
    assert_eq!(types, expected, "{:#?}", self.events);
    self
  }

  /// Expects a refusal for this reason and nothing else.
  #[track_caller]
  #[expect(clippy::return_self_not_must_use, reason = "the last expectation of a test has nobody to give it to")]
  pub fn then_refused(self, reason: &str) -> Self {
    self.then_settled(Settlement::Refused, reason)
  }

  /// Expects that nothing changed, for this reason.
  #[track_caller]
  #[expect(clippy::return_self_not_must_use, reason = "the last expectation of a test has nobody to give it to")]
  pub fn then_unchanged(self, reason: &str) -> Self {
    self.then_settled(Settlement::NoChange, reason)
  }

  /// Expects a call that failed as it began, for this reason.
  #[track_caller]
  #[expect(clippy::return_self_not_must_use, reason = "the last expectation of a test has nobody to give it to")]
  pub fn then_failed(self, reason: &str) -> Self {
    let decided = self.then_types(&["CallStarted", "CallFailed"]);
    let Some(Event::Call(call::Event::CallFailed(failed))) = decided.events.last() else { panic!("the call failed: {decided:?}") };
    assert_eq!(failed.code, reason);
    decided
  }

  /// The message, and so the job, that a `MessageGiven` or `MessageReceived` became.
  #[track_caller]
  pub fn message(&self) -> JobId {
    let admitted = |event: &Event| matches!(event, Event::Conversation(conversation::Event::MessageAdmitted(_)));
    assert!(self.events.iter().any(admitted), "no message was admitted: {:#?}", self.events);
    message_of(self.input).into()
  }

  /// Whether an event of this type, by the last part of its name, is in the decision.
  pub fn has(&self, name: &str) -> bool {
    self.events.iter().any(|event| short_type(event) == name)
  }

  /// The reason, if the decision settles its input with one.
  pub fn settled(&self) -> Option<(Settlement, &str)> {
    self.events.iter().find_map(|event| match event {
      Event::Log(log::Event::InputSettled(InputSettled { outcome, reason, .. })) => Some((*outcome, reason.as_str())),
      Event::Log(_)
      | Event::Account(_)
      | Event::Agent(_)
      | Event::Settings(_)
      | Event::Timer(_)
      | Event::Conversation(_)
      | Event::Execution(_)
      | Event::Call(_)
      | Event::Task(_) => None,
    })
  }

  #[track_caller]
  fn then_settled(self, outcome: Settlement, reason: &str) -> Self {
    assert_eq!(self.events, [InputSettled { outcome, reason: reason.to_owned(), of: None }.into()]);
    self
  }
}

fn short_type(event: &Event) -> &'static str {
  event.type_name().rsplit('.').next().unwrap_or_default()
}
