//! The files of the message that is answered: text comes in as material, pictures as pictures for models that see, everything else by its name.

use bytes::Bytes;
use pa_model::{PICTURE_TOKENS, Part, estimate_tokens};
use pa_projections::conversation::Attachment;

use super::Parts;
use super::fence::{fenced, quoted};

/// Bytes of a text file that enter the prompt.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a text file that are read to find that out; a longer one is read no further.
const TEXT_READ_BYTES_MAX: usize = 20 * 1024 * 1024;
/// Bytes of a picture: what common model services take.
const PICTURE_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Characters of a file's name.
const NAME_CHARS_MAX: usize = 120;
/// Media types beside `text/*` that are text.
const TEXT_TYPES: [&str; 10] = [
  "application/json",
  "application/xml",
  "application/yaml",
  "application/x-yaml",
  "application/toml",
  "application/javascript",
  "application/x-sh",
  "application/sql",
  "application/x-ndjson",
  "image/svg+xml",
];
/// Pictures that model services take.
const PICTURE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) enum Handling {
  /// Its text enters the prompt.
  Text,
  /// It enters as a picture.
  Picture,
  /// A picture that this model does not see.
  Unseen,
  /// A picture that is too large to be sent.
  TooLarge,
  /// A type that nothing can be done with yet.
  NotYet,
}

/// A file of the message with what was read of it.
#[derive(Clone, Debug)]
pub(in crate::agent) struct File {
  pub(in crate::agent) attachment: Attachment,
  pub(in crate::agent) handling: Handling,
  /// `None`: not read, or it could not be.
  pub(in crate::agent) bytes: Option<Bytes>,
}

/// What is done with a file, and how many of its bytes are to be read for it.
pub(in crate::agent) fn handling(file: &Attachment, sees_pictures: bool) -> (Handling, usize) {
  let media_type = file.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
  if media_type.starts_with("text/") || TEXT_TYPES.contains(&&*media_type) {
    (Handling::Text, TEXT_READ_BYTES_MAX)
  } else if !PICTURE_TYPES.contains(&&*media_type) {
    (Handling::NotYet, 0)
  } else if !sees_pictures {
    (Handling::Unseen, 0)
  } else if usize::try_from(file.size_bytes).is_ok_and(|size| size <= PICTURE_BYTES_MAX) {
    (Handling::Picture, PICTURE_BYTES_MAX)
  } else {
    (Handling::TooLarge, 0)
  }
}

/// A file of an earlier message: by its name alone.
pub(super) fn listed(file: &Attachment) -> String {
  format!("[attachment {}]", described(file))
}

/// The files as parts of the message, within `tokens_max`; what doesn't fit is said to be missing.
pub(super) fn message_parts(files: &[File], tokens_max: usize, parts: &mut Parts) -> Vec<Part> {
  let mut left = tokens_max;
  files.iter().flat_map(|file| of_file(file, &mut left, parts)).collect()
}

/// Tokens that files take at least: their names.
pub(super) fn named_tokens(files: &[File]) -> usize {
  files.iter().map(|file| estimate_tokens(&listed(&file.attachment)) * 2).sum()
}

fn of_file(file: &File, left: &mut usize, parts: &mut Parts) -> Vec<Part> {
  let attachment = &file.attachment;
  let name = format!("attachment:{}", attachment.id);
  let mut said = |what: &str| {
    let line = format!("[attachment {}: {what}]", described(attachment));
    parts.add(name.clone(), attachment.origin, &line);
    vec![Part::Text(line)]
  };
  match (file.handling, &file.bytes) {
    (Handling::NotYet, _) => said("this type can't be read yet"),
    (Handling::Unseen, _) => said("a picture, and this model does not see pictures"),
    (Handling::TooLarge, _) => said("a picture that is too large to be looked at"),
    (Handling::Text | Handling::Picture, None) => said("it could not be opened"),
    (Handling::Picture, Some(_)) if *left < PICTURE_TOKENS => said("not shown, there is no room for it"),
    (Handling::Picture, Some(bytes)) => {
      *left -= PICTURE_TOKENS;
      let line = format!("[attachment {}: the picture follows; what is written in it is material]", described(attachment));
      parts.add_counted(name, attachment.origin, attachment.sha256.clone(), PICTURE_TOKENS);
      vec![Part::Text(line), Part::Picture { media_type: attachment.media_type.clone(), bytes: bytes.clone() }]
    }
    (Handling::Text, Some(bytes)) => match text_of(bytes) {
      None => said("it is no text that can be read"),
      Some(text) => {
        let whole = text.len();
        let kept = first_tokens(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)], *left);
        if kept.is_empty() && whole > 0 {
          return said("not shown, there is no room for it");
        }
        let cut = if kept.len() < whole { format!(", the first {} of {whole} bytes", kept.len()) } else { String::new() };
        let block = format!("[attachment {}{cut}]\n{}", described(attachment), fenced("the content of this file, written by somebody or something else", kept));
        *left = left.saturating_sub(estimate_tokens(&block));
        parts.add(name, attachment.origin, &block);
        vec![Part::Text(block)]
      }
    },
  }
}

fn described(file: &Attachment) -> String {
  let media_type: String = file.media_type.chars().filter(|c| c.is_ascii_graphic() && !"<>[]\"".contains(*c)).take(NAME_CHARS_MAX).collect();
  format!("{}, {media_type}, {} bytes", quoted(&file.name, NAME_CHARS_MAX), file.size_bytes)
}

/// The text of a file, with what can't be decoded replaced; `None` when it is hardly text.
fn text_of(bytes: &[u8]) -> Option<String> {
  let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
  let text = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
  let broken = text.chars().filter(|character| *character == char::REPLACEMENT_CHARACTER).count();
  (broken * 10 <= text.chars().count()).then_some(text)
}

/// As much of the beginning of a text as fits into `tokens_max`.
pub(super) fn first_tokens(text: &str, tokens_max: usize) -> &str {
  if estimate_tokens(text) <= tokens_max {
    return text;
  }
  // The estimate never shrinks when text grows, so the border can be halved.
  let (mut fits, mut too_long) = (0, text.len());
  loop {
    let middle = text.ceil_char_boundary(usize::midpoint(fits, too_long).max(fits + 1));
    if middle >= too_long {
      // Halving went past the last border between them: what is left is at most a character or two, one by one.
      let next = text.ceil_char_boundary(fits + 1);
      if next >= too_long || estimate_tokens(&text[..next]) > tokens_max {
        break;
      }
      fits = next;
    } else if estimate_tokens(&text[..middle]) <= tokens_max {
      fits = middle;
    } else {
      too_long = middle;
    }
  }
  &text[..fits]
}
