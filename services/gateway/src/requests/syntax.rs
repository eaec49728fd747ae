//! What is checked before anything is appended: form only. Whether it is allowed now is for the rules to decide.

use pa_domain::limits::{ATTACHMENTS_MAX, MESSAGE_TEXT_BYTES_MAX};
use pa_domain::settings::{Effort, SettingsGiven};
use pa_domain::{ConversationId, MessageId, TaskId};

use super::refusal::{UserError, UserErrorCode};
use crate::edge::OfferedModel;
use crate::limits::REQUEST_KEY_CHARS_MAX;

/// A key under which a request may be repeated.
pub(crate) fn request_key(key: String) -> Result<String, UserError> {
  let chars = key.chars().count();
  if chars > REQUEST_KEY_CHARS_MAX || key.trim().is_empty() || key.contains(char::is_control) { Err(UserError::key()) } else { Ok(key) }
}

/// Whether a reader would see nothing of a character: white space, controls, and what Unicode calls ignorable by default (zero-width characters, direction marks,
/// fillers, variation selectors, tags).
fn unseen(character: char) -> bool {
  character.is_whitespace()
    || character.is_control()
    || matches!(
      character,
      '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Text as it may be stored: without NUL, which databases refuse (D28). A document's own literals can hold one although the JSON around it has none.
pub(crate) fn storable(text: String) -> String {
  if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// The text of a message.
pub(crate) fn message_text(text: String, attachments: usize) -> Result<String, UserError> {
  let text = storable(text);
  if text.len() > MESSAGE_TEXT_BYTES_MAX {
    return Err(UserError::new(UserErrorCode::TextTooLong));
  }
  if attachments > ATTACHMENTS_MAX {
    return Err(UserError::too_many_attachments());
  }
  if text.chars().all(unseen) && attachments == 0 {
    return Err(UserError::new(UserErrorCode::TextEmpty));
  }
  Ok(text)
}

/// A conversation's id. What has not the form of one names nothing.
pub(crate) fn conversation(id: &str) -> Result<ConversationId, UserError> {
  id.parse().map_err(|_| UserError::new(UserErrorCode::NotFound).at("conversationId"))
}

/// A message's id.
pub(crate) fn message(id: &str) -> Result<MessageId, UserError> {
  id.parse().map_err(|_| UserError::new(UserErrorCode::NotFound).at("messageId"))
}

/// A task's id.
pub(crate) fn task(id: &str) -> Result<TaskId, UserError> {
  id.parse().map_err(|_| UserError::new(UserErrorCode::NotFound).at("taskId"))
}

/// What only the edge knows of settings: the models that are offered. `current` is the model as set now.
pub(crate) fn settings(given: &SettingsGiven, models: &[OfferedModel], current: &str) -> Result<(), UserError> {
  let named = given.model.as_deref().unwrap_or(current);
  let model = if named.is_empty() { models.first() } else { models.iter().find(|model| model.name == named) };
  if given.model.is_some() && model.is_none() && !named.is_empty() {
    return Err(UserError::invalid("model", "no such model is offered"));
  }
  if let Some(effort) = given.effort
    && effort != Effort::Fast
    && model.is_some_and(|model| !model.efforts.contains(&effort))
  {
    return Err(UserError::invalid("effort", "the model does not know this effort"));
  }
  if given.avatar.as_deref().is_some_and(|avatar| !avatar.is_empty() && !avatar.starts_with("builtin:")) {
    return Err(UserError::invalid("avatar", "a picture is named as builtin:<name>"));
  }
  Ok(())
}

#[cfg(test)]
mod tests {
  use super::*;

  fn code<T: std::fmt::Debug>(result: Result<T, UserError>) -> UserErrorCode {
    result.unwrap_err().code
  }

  /// Proves D36.
  #[test]
  fn a_text_over_the_limit_is_refused_with_the_hint_to_attach_it() {
    assert_eq!(message_text("x".repeat(MESSAGE_TEXT_BYTES_MAX), 0).unwrap().len(), MESSAGE_TEXT_BYTES_MAX);
    let error = message_text("x".repeat(MESSAGE_TEXT_BYTES_MAX + 1), 0).unwrap_err();
    assert_eq!((error.code, error.field), (UserErrorCode::TextTooLong, Some(vec!["input".to_owned(), "text".to_owned()])));
    assert!(error.message.contains("attach it as a file"));
    // Bytes count, not characters.
    assert_eq!(code(message_text("é".repeat(MESSAGE_TEXT_BYTES_MAX / 2 + 1), 0)), UserErrorCode::TextTooLong);
  }

  #[test]
  fn a_message_needs_text_or_a_file() {
    assert_eq!(code(message_text(" \n\t".to_owned(), 0)), UserErrorCode::TextEmpty);
    assert!(message_text(String::new(), 1).is_ok());
    let unseen = "\u{200b}\u{200d}\u{2060}\u{feff}\u{202e} \u{ad}\u{3164}\u{fe0f}\u{e0041}\u{1b}";
    assert_eq!(code(message_text(unseen.to_owned(), 0)), UserErrorCode::TextEmpty);
    assert_eq!(message_text(unseen.to_owned(), 1).unwrap(), unseen);
    // With anything to see, nothing is taken away: joiners and selectors make pictures of letters.
    for seen in ["👩\u{200d}🚀", "❤\u{fe0f}", "\u{200f}שלום", "."] {
      assert_eq!(message_text(seen.to_owned(), 0).unwrap(), seen);
    }
    assert_eq!(code(message_text("x".to_owned(), ATTACHMENTS_MAX + 1)), UserErrorCode::ValueInvalid);
  }

  /// Proves D28.
  #[test]
  fn nul_in_a_literal_is_replaced() {
    assert_eq!(message_text("A\0B".to_owned(), 0).unwrap(), "A\u{fffd}B");
  }

  #[test]
  fn a_request_key_has_a_length_and_can_be_seen() {
    assert!(request_key("k".to_owned()).is_ok());
    assert!(request_key("键".repeat(REQUEST_KEY_CHARS_MAX)).is_ok());
    assert_eq!(code(request_key(String::new())), UserErrorCode::ValueInvalid);
    for unseen in ["   ", "\t", "\u{3000}", "k\n", "a\u{7}b", "\0"] {
      let error = request_key(unseen.to_owned()).unwrap_err();
      assert_eq!((error.code, error.field), (UserErrorCode::ValueInvalid, Some(vec!["input".to_owned(), "requestKey".to_owned()])), "{unseen:?}");
      assert!(error.message.contains("white space alone") && error.message.contains("control characters"), "{}", error.message);
    }
    assert!(request_key("a key of words".to_owned()).is_ok());
    assert_eq!(code(request_key("k".repeat(REQUEST_KEY_CHARS_MAX + 1))), UserErrorCode::ValueInvalid);
  }

  #[test]
  fn what_has_not_the_form_of_an_id_is_not_found() {
    assert_eq!(code(message("../x")), UserErrorCode::NotFound);
    assert_eq!(code(conversation("1")), UserErrorCode::NotFound);
    assert_eq!(code(task("")), UserErrorCode::NotFound);
  }

  /// Proves SID-20.
  #[test]
  fn a_model_and_an_effort_must_be_offered() {
    let models = [
      OfferedModel { name: "small".into(), efforts: vec![Effort::Fast], sees_pictures: false, rehearsal: false },
      OfferedModel { name: "large".into(), efforts: vec![Effort::Fast, Effort::High], sees_pictures: true, rehearsal: false },
    ];
    let given = |model: Option<&str>, effort| SettingsGiven { version: 1, model: model.map(str::to_owned), effort, ..SettingsGiven::default() };
    assert!(settings(&given(Some("large"), Some(Effort::High)), &models, "").is_ok());
    assert!(settings(&given(Some(""), None), &models, "large").is_ok());
    assert!(settings(&given(None, Some(Effort::High)), &models, "large").is_ok());
    assert_eq!(code(settings(&given(Some("unknown"), None), &models, "")), UserErrorCode::ValueInvalid);
    assert_eq!(code(settings(&given(None, Some(Effort::High)), &models, "")), UserErrorCode::ValueInvalid);
    // A model that was set and is no longer offered does not stand in the way of other changes.
    assert!(settings(&given(None, Some(Effort::High)), &models, "gone").is_ok());
  }
}
