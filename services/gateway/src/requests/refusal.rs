//! Refusals as the outside sees them.

use async_graphql::{Enum, SimpleObject};
use pa_domain::limits::{ATTACHMENTS_MAX, MESSAGE_TEXT_BYTES_MAX, OPEN_MESSAGES_MAX, TASKS_OPEN_MAX};

use crate::limits::REQUEST_KEY_CHARS_MAX;

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, SimpleObject)]
pub(crate) struct UserError {
  pub code: UserErrorCode,
  /// In English, for developers; the page renders the code.
  pub message: String,
  /// The input field at fault.
  pub field: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum UserErrorCode {
  TextEmpty,
  TextTooLong,
  ValueInvalid,
  NotFound,
  NotAllowed,
  RequestKeyConflict,
  StateChanged,
  QueueFull,
}

impl UserErrorCode {
  const ALL: [(&'static str, Self); 8] = [
    ("TEXT_EMPTY", Self::TextEmpty),
    ("TEXT_TOO_LONG", Self::TextTooLong),
    ("VALUE_INVALID", Self::ValueInvalid),
    ("NOT_FOUND", Self::NotFound),
    ("NOT_ALLOWED", Self::NotAllowed),
    ("REQUEST_KEY_CONFLICT", Self::RequestKeyConflict),
    ("STATE_CHANGED", Self::StateChanged),
    ("QUEUE_FULL", Self::QueueFull),
  ];

  fn message(self) -> String {
    match self {
      Self::TextEmpty => "a message needs text or an attachment".to_owned(),
      Self::TextTooLong => format!("the text is longer than {MESSAGE_TEXT_BYTES_MAX} bytes; attach it as a file"),
      Self::ValueInvalid => "a value is not valid".to_owned(),
      Self::NotFound => "what the request names does not exist".to_owned(),
      Self::NotAllowed => "this is not allowed".to_owned(),
      Self::RequestKeyConflict => "the request key was used for a request with other content".to_owned(),
      Self::StateChanged => "it has changed meanwhile; read it again".to_owned(),
      Self::QueueFull => format!("{OPEN_MESSAGES_MAX} messages wait for their answers, or {TASKS_OPEN_MAX} tasks are open; wait for some of them"),
    }
  }

  fn field(self) -> Option<&'static str> {
    match self {
      Self::TextEmpty | Self::TextTooLong => Some("text"),
      Self::RequestKeyConflict => Some("requestKey"),
      Self::ValueInvalid | Self::NotFound | Self::NotAllowed | Self::StateChanged | Self::QueueFull => None,
    }
  }
}

impl UserError {
  /// A refusal in its usual words.
  pub(crate) fn new(code: UserErrorCode) -> Self {
    let error = Self { code, message: code.message(), field: None };
    match code.field() {
      Some(field) => error.at(field),
      None => error,
    }
  }

  /// A value that can't be used.
  pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
    Self { code: UserErrorCode::ValueInvalid, message: message.into(), field: None }.at(field)
  }

  /// Names the field at fault.
  #[must_use]
  pub(crate) fn at(mut self, field: &str) -> Self {
    self.field = Some(vec!["input".to_owned(), field.to_owned()]);
    self
  }

  /// A refusal that a rule decided; `None` for a reason that is none of the outside's.
  pub(crate) fn decided(reason: &str) -> Option<Self> {
    UserErrorCode::ALL.iter().find(|(name, _)| *name == reason).map(|(_, code)| Self::new(*code))
  }

  pub(crate) fn key() -> Self {
    Self::invalid("requestKey", format!("a request key has 1 to {REQUEST_KEY_CHARS_MAX} characters, not white space alone and no control characters"))
  }

  pub(crate) fn too_many_attachments() -> Self {
    Self::invalid("attachmentIds", format!("a message has at most {ATTACHMENTS_MAX} attachments"))
  }
}

#[cfg(test)]
mod tests {
  use pa_domain::codes::reason;

  use super::*;

  #[test]
  fn every_reason_that_a_command_of_the_owner_is_refused_for_has_a_code() {
    for reason in [
      reason::TEXT_EMPTY,
      reason::TEXT_TOO_LONG,
      reason::VALUE_INVALID,
      reason::NOT_FOUND,
      reason::NOT_ALLOWED,
      reason::STATE_CHANGED,
      reason::QUEUE_FULL,
      "REQUEST_KEY_CONFLICT",
    ] {
      assert!(UserError::decided(reason).is_some(), "{reason}");
    }
    assert_eq!(UserError::decided("STALE_EXECUTION"), None);
  }
}
