//! Makes JSON from outside parseable by strict parsers: one pass over the raw bytes before the parse.
//!
//! NUL (raw or as `\u0000`), lone surrogates (as `\ud800` and the like) and bytes that are no UTF-8 become U+FFFD. JSON that has none
//! of these comes back as it is, borrowed. Nothing else is repaired: broken JSON stays broken.

use std::borrow::Cow;

const ESCAPED_REPLACEMENT: &[u8] = b"\\ufffd";
const RAW_REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
/// The length of `\uXXXX`.
const UNIT_BYTES: usize = 6;

/// Replaces what strict parsers or the storage refuse.
pub fn lenient_json(bytes: &[u8]) -> Cow<'_, [u8]> {
  match String::from_utf8_lossy(bytes) {
    Cow::Borrowed(text) => mend(text.as_bytes()),
    Cow::Owned(text) => Cow::Owned(mend(text.as_bytes()).into_owned()),
  }
}

enum Found {
  Keep(usize),
  Replace { bytes: usize, by: &'static [u8] },
}

fn mend(bytes: &[u8]) -> Cow<'_, [u8]> {
  let mut out: Vec<u8> = Vec::new();
  let mut copied = 0;
  let mut at = 0;
  while let Some(next) = bytes[at..].iter().position(|&byte| byte == b'\\' || byte == 0) {
    at += next;
    match inspect(&bytes[at..]) {
      Found::Keep(length) => at = (at + length).min(bytes.len()),
      Found::Replace { bytes: length, by } => {
        out.extend_from_slice(&bytes[copied..at]);
        out.extend_from_slice(by);
        at += length;
        copied = at;
      }
    }
  }
  if copied == 0 {
    return Cow::Borrowed(bytes);
  }
  out.extend_from_slice(&bytes[copied..]);
  Cow::Owned(out)
}

/// Looks at a NUL or at a backslash, which in JSON always begins an escape.
fn inspect(rest: &[u8]) -> Found {
  if rest[0] == 0 {
    return Found::Replace { bytes: 1, by: RAW_REPLACEMENT };
  }
  let replace = Found::Replace { bytes: UNIT_BYTES, by: ESCAPED_REPLACEMENT };
  match unit(rest) {
    None => match rest.get(1) {
      Some(0) | None => Found::Keep(1),
      Some(_) => Found::Keep(2),
    },
    Some(0 | 0xDC00..=0xDFFF) => replace,
    Some(0xD800..=0xDBFF) => match unit(&rest[UNIT_BYTES..]) {
      Some(0xDC00..=0xDFFF) => Found::Keep(2 * UNIT_BYTES),
      _ => replace,
    },
    Some(_) => Found::Keep(UNIT_BYTES),
  }
}

fn unit(rest: &[u8]) -> Option<u16> {
  let digits = rest.get(..UNIT_BYTES)?.strip_prefix(b"\\u")?;
  digits.iter().try_fold(0u16, |code, &digit| {
    let value = char::from(digit).to_digit(16)?;
    Some(code << 4 | u16::try_from(value).ok()?)
  })
}

#[cfg(test)]
mod tests {
  use super::*;
  use proptest::prelude::*;

  fn parsed(json: &[u8]) -> String {
    serde_json::from_slice(&lenient_json(json)).expect("parses")
  }

  /// Proves D28.
  #[test]
  fn nul_and_lone_surrogates_become_the_replacement_character() {
    assert_eq!(parsed(br#""A\u0000B""#), "A\u{fffd}B");
    assert_eq!(parsed(br#""A\ud800B""#), "A\u{fffd}B");
    assert_eq!(parsed(br#""A\uDFFFB""#), "A\u{fffd}B");
    assert_eq!(parsed(br#""\ud83d\ud83d\ude00""#), "\u{fffd}\u{1f600}");
    assert_eq!(parsed(b"\"A\0B\""), "A\u{fffd}B");
    assert_eq!(parsed(b"\"A\xffB\""), "A\u{fffd}B");
  }

  #[test]
  fn a_backslash_before_an_escape_is_text() {
    assert_eq!(parsed(br#""C:\\u0000\\ud800""#), r"C:\u0000\ud800");
    assert!(matches!(lenient_json(br#""\\u0000""#), Cow::Borrowed(_)));
  }

  #[test]
  fn sound_json_is_borrowed() {
    let json = r#"{"a":"\u00e9\ud83d\ude00 \n \\ 你好"}"#.as_bytes();
    assert!(matches!(lenient_json(json), Cow::Borrowed(same) if same == json));
  }

  #[test]
  fn broken_json_stays_broken_and_does_no_harm() {
    for broken in [&b"\"\\"[..], b"\"\\u", b"\"\\ud8", b"\"\\ud800\\", b"\\\0", b"\xed\xa0"] {
      let mended = lenient_json(broken);
      assert!(serde_json::from_slice::<serde_json::Value>(&mended).is_err());
      assert!(!mended.contains(&0));
    }
  }

  proptest! {
      #[test]
      fn any_mixture_of_fragments_parses_afterwards(fragments in prop::collection::vec(prop::sample::select(vec![
          &b"a"[..], b"\xe4\xbd\xa0", b"\\n", b"\\\\", b"\\\"", b"\\u0000", b"\\ud800", b"\\udbff", b"\\udc00", b"\\uDFFF",
          b"\\u0041", b"\0", b"\xff", b"\xed\xa0\x80", b"u0000", b"ud800",
      ]), 0..24)) {
          let json = [&b"\""[..], &fragments.concat(), b"\""].concat();
          let mended = lenient_json(&json).into_owned();
          let text: String = serde_json::from_slice(&mended).expect("parses");
          prop_assert!(!text.contains('\0'));
          prop_assert_eq!(&*lenient_json(&mended), &mended[..]);
      }
  }
}
