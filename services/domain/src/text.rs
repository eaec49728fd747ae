//! Text at the edge of the log: what can't be stored is replaced, what is too long is cut between characters (D28).

use std::borrow::Cow;

/// The text with every NUL replaced by U+FFFD. (A Rust string can't hold a lone surrogate.)
pub(crate) fn clean(text: &str) -> String {
  replaced(text).into_owned()
}

/// The text cleaned and cut to at most `bytes_max` bytes, and whether something was cut off.
pub(crate) fn bounded(text: &str, bytes_max: usize) -> (String, bool) {
  let text = replaced(text);
  let kept = text.floor_char_boundary(bytes_max);
  (text[..kept].to_owned(), kept < text.len())
}

/// The text cleaned and cut to at most `chars_max` characters.
pub(crate) fn first_chars(text: &str, chars_max: usize) -> String {
  replaced(text).chars().take(chars_max).collect()
}

/// The text trimmed, if it can be a name: not empty, at most `chars_max` characters, none of them a control character.
pub(crate) fn name(text: &str, chars_max: usize) -> Option<String> {
  let text = text.trim();
  (!text.is_empty() && text.chars().count() <= chars_max && !text.chars().any(char::is_control)).then(|| text.to_owned())
}

fn replaced(text: &str) -> Cow<'_, str> {
  if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}
