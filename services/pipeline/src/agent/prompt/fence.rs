//! Marks around material: what stands between them can't end them.
//!
//! The marks carry a hash of the material itself, so whoever wrote the material would have had to know the hash of a text that contains that hash.

use aws_lc_rs::digest::{SHA256, digest};

/// Characters of the hash in a mark: 64 bits, which nobody finds by trying.
const MARK_CHARS: usize = 16;

/// The material between its marks; `what` names it and is one line of the product's own words.
pub(super) fn fenced(what: &str, material: &str) -> String {
  let mark = &sha256(material)[..MARK_CHARS];
  let end = if material.ends_with('\n') { "" } else { "\n" };
  format!("<<material {mark}: {what}>>\n{material}{end}<<end of material {mark}>>")
}

/// A name from outside as it may stand in the product's own words: on one line, quoted, without the signs that marks are made of.
pub(super) fn quoted(name: &str, chars_max: usize) -> String {
  let safe = |character: char| if character.is_control() || "<>[]\"\u{2028}\u{2029}".contains(character) { '_' } else { character };
  let mut kept: String = name.chars().take(chars_max).map(safe).collect();
  if name.chars().count() > chars_max {
    kept.push('…');
  }
  format!("\"{kept}\"")
}

/// SHA-256 of a text, lower-case hex.
pub(super) fn sha256(text: &str) -> String {
  sha256_of(text.as_bytes())
}

/// SHA-256 of bytes, lower-case hex.
pub(in crate::agent) fn sha256_of(bytes: &[u8]) -> String {
  hex::encode(digest(&SHA256, bytes))
}
