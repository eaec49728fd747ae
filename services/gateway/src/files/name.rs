//! Names and media types of files as they are kept: what the sender said, without what could harm.

use crate::limits::{FILE_NAME_CHARS_MAX, MEDIA_TYPE_BYTES_MAX};

/// What a file without a usable name is called.
const NAMELESS: &str = "file";

/// The last part of a path, without control characters and what reorders text on a screen, at most so long.
pub(crate) fn kept(given: &str) -> String {
  let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
  let clean: String = last.chars().filter(|letter| !letter.is_control() && !reorders(*letter)).collect();
  let clean = clean.trim();
  match clean {
    "" | "." | ".." => NAMELESS.to_owned(),
    name if name.chars().count() <= FILE_NAME_CHARS_MAX => name.to_owned(),
    name => shortened(name),
  }
}

/// A long name keeps its ending, which says what it is.
fn shortened(name: &str) -> String {
  const ENDING_CHARS_MAX: usize = 16;
  let ending = name.rsplit_once('.').map(|(_, ending)| ending).filter(|ending| ending.chars().count() <= ENDING_CHARS_MAX);
  let suffix = ending.map(|ending| format!(".{ending}")).unwrap_or_default();
  let stem: String = name.chars().take(FILE_NAME_CHARS_MAX - suffix.chars().count()).collect();
  format!("{stem}{suffix}")
}

/// Marks that turn the direction of text, with which `gpj.exe` looks like `exe.jpg`.
fn reorders(letter: char) -> bool {
  matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A media type that is one; without one it is bytes.
pub(crate) fn media_type(given: Option<&str>) -> Option<String> {
  let Some(given) = given else { return Some(mime::APPLICATION_OCTET_STREAM.to_string()) };
  let parsed: mime::Mime = given.parse().ok().filter(|_| given.len() <= MEDIA_TYPE_BYTES_MAX)?;
  if parsed.type_() == "" || parsed.subtype() == "" {
    return None;
  }
  Some(parsed.to_string())
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn a_name_is_kept_without_what_could_harm() {
    for (given, name) in [
      ("report.pdf", "report.pdf"),
      ("报告 (1).pdf", "报告 (1).pdf"),
      ("../../etc/passwd", "passwd"),
      ("C:\\Users\\me\\a.txt", "a.txt"),
      ("a\r\nSet-Cookie: x\0.txt", "aSet-Cookie: x.txt"),
      ("photo\u{202e}gpj.exe", "photogpj.exe"),
      ("", "file"),
      ("..", "file"),
      ("dir/", "file"),
      ("   ", "file"),
    ] {
      assert_eq!(kept(given), name, "{given:?}");
    }
  }

  #[test]
  fn a_long_name_keeps_its_ending() {
    let name = kept(&format!("{}.tar", "é".repeat(1_000)));
    assert_eq!(name.chars().count(), FILE_NAME_CHARS_MAX);
    assert!(name.ends_with("é.tar"));
  }

  #[test]
  fn a_media_type_must_be_one() {
    assert_eq!(media_type(Some("image/png")).as_deref(), Some("image/png"));
    assert_eq!(media_type(Some("text/plain; charset=utf-8")).as_deref(), Some("text/plain; charset=utf-8"));
    assert_eq!(media_type(None).as_deref(), Some("application/octet-stream"));
    for wrong in ["", "png", "image/", "image/png\r\nX: y", &format!("a/{}", "b".repeat(MEDIA_TYPE_BYTES_MAX))] {
      assert_eq!(media_type(Some(wrong)), None, "{wrong:?}");
    }
  }
}
