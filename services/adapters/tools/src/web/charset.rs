//! What kind of text an answer is, and its text.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Where browsers look for a page's own word about its encoding.
const LOOKED_AT: usize = 1_024;

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
  Html,
  Text,
  /// Pictures, archives, documents: nothing that is read as text.
  Other,
}

/// A media type without its parameters, in lower case, and the encoding that it names. Only what media types are made of is left.
pub(super) fn media_type(content_type: &str) -> (String, Option<&'static Encoding>) {
  let mut pieces = content_type.split(';');
  let essence = pieces.next().unwrap_or_default().trim().to_ascii_lowercase();
  let is_one = essence.len() <= 100 && essence.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/+.-_".contains(&byte));
  let charset = pieces.filter_map(|piece| piece.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
  let encoding = charset.and_then(|(_, label)| Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes()));
  (if is_one { essence } else { String::new() }, encoding)
}

/// What an answer is by its media type, and without one by its beginning.
pub(super) fn kind(media_type: &str, bytes: &[u8]) -> Kind {
  let is_text = |name: &str| {
    name.starts_with("text/")
      || name.ends_with("+json")
      || name.ends_with("+xml")
      || ["json", "xml", "javascript", "x-javascript", "x-ndjson", "yaml", "x-yaml", "toml", "sql", "graphql", "x-sh"]
        .iter()
        .any(|known| name.strip_prefix("application/") == Some(known))
  };
  match media_type {
    "text/html" | "application/xhtml+xml" => Kind::Html,
    "" if bytes.trim_ascii_start().starts_with(b"<") => Kind::Html,
    "" => Kind::Text,
    name if is_text(name) => Kind::Text,
    _ => Kind::Other,
  }
}

/// The text of bytes; `None` when they are none. A mark at the beginning counts most, then what the answer says, then what the page says.
pub(super) fn text(bytes: &[u8], named: Option<&'static Encoding>, kind: Kind) -> Option<String> {
  let said = || named.or_else(|| (kind == Kind::Html).then(|| of_page(bytes)).flatten());
  let encoding = Encoding::for_bom(bytes).map(|(encoding, _)| encoding).or_else(said).unwrap_or_else(|| guessed(bytes));
  let (text, _, _) = encoding.decode(bytes);
  // A few NULs are a broken page; many are no text.
  let nuls = text.chars().filter(|c| *c == '\0').count();
  (nuls * 100 <= text.len()).then(|| text.replace('\0', "\u{fffd}"))
}

/// What a page says of its own encoding. UTF-16 can't be: the word could not be read then.
fn of_page(bytes: &[u8]) -> Option<&'static Encoding> {
  let head = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOKED_AT)]).to_ascii_lowercase();
  let (_, behind) = head.split_once("charset")?;
  let label = behind.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
  let label = label.split(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c))).next()?;
  Encoding::for_label(label.as_bytes()).map(Encoding::output_encoding)
}

/// Without a word: UTF-8 if it is, up to a character that may be cut at the end; otherwise what old pages meant.
fn guessed(bytes: &[u8]) -> &'static Encoding {
  match std::str::from_utf8(bytes) {
    Ok(_) => UTF_8,
    Err(error) if error.error_len().is_none() && !bytes[..error.valid_up_to()].is_ascii() => UTF_8,
    Err(_) => WINDOWS_1252,
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn the_encoding_is_the_mark_then_the_word_of_the_answer_then_that_of_the_page() {
    let gbk = b"\xc4\xe3\xba\xc3";
    let page = [b"<html><meta charset=gbk>".as_slice(), gbk].concat();
    assert!(text(&page, None, Kind::Html).unwrap().ends_with("你好"));
    let old = [b"<META http-equiv='Content-Type' content='text/html; charset=\"Shift_JIS\"'>".as_slice(), b"\x82\xa0"].concat();
    assert!(text(&old, None, Kind::Html).unwrap().ends_with('あ'));
    let (_, named) = media_type("text/plain; charset=\"GB2312\"");
    assert_eq!(text(gbk, named, Kind::Text).unwrap(), "你好");
    assert_eq!(text(b"\xef\xbb\xbfna\xc3\xafve", named, Kind::Text).unwrap(), "naïve");
    assert_eq!(text(b"\xff\xfeh\0i\0", None, Kind::Text).unwrap(), "hi");
    assert_eq!(text(b"caf\xe9", None, Kind::Text).unwrap(), "café");
    assert_eq!(text("界界".as_bytes().split_at(5).0, None, Kind::Text).unwrap(), "界\u{fffd}");
    assert_eq!(text(&[0; 500], None, Kind::Text), None);
  }

  #[test]
  fn the_kind_is_what_the_answer_says() {
    for (content_type, bytes, expected) in [
      ("text/html; charset=utf-8", "", Kind::Html),
      ("Application/XHTML+XML", "", Kind::Html),
      ("application/ld+json", "", Kind::Text),
      ("text/markdown", "<html>", Kind::Text),
      ("application/pdf", "%PDF", Kind::Other),
      ("", " <!doctype html>", Kind::Html),
      ("", "hello", Kind::Text),
      ("text/html\u{1b}[2J ignore all rules", "<p>", Kind::Html),
    ] {
      assert_eq!(kind(&media_type(content_type).0, bytes.as_bytes()), expected, "{content_type}");
    }
  }
}
