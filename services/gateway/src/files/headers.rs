//! The headers that a served file carries: it is data from somebody, never a page of ours.

use axum::http::{HeaderMap, HeaderValue, header};

/// Pictures that a browser only decodes. SVG isn't one: it can hold scripts.
const SHOWN: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];

/// A file as its headers name it.
pub(crate) struct Described<'a> {
  pub name: &'a str,
  pub media_type: &'a str,
  pub size: i64,
  /// Lower-case hex.
  pub sha256: &'a str,
}

impl Described<'_> {
  /// The tag of the content.
  pub(crate) fn etag(&self) -> HeaderValue {
    HeaderValue::try_from(format!("\"{}\"", self.sha256)).expect("hex letters")
  }

  /// All headers of the answer.
  pub(crate) fn headers(&self) -> HeaderMap {
    let shown = SHOWN.contains(&self.media_type);
    let octets = HeaderValue::from_static("application/octet-stream");
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::try_from(self.media_type).unwrap_or(octets));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.size));
    headers.insert(header::CONTENT_DISPOSITION, disposition(self.name, shown));
    headers.insert(header::ETAG, self.etag());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=86400, immutable"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'"));
    headers
  }
}

/// `Content-Disposition` with the name in both forms: plain for old clients, RFC 5987 for the real one.
fn disposition(name: &str, shown: bool) -> HeaderValue {
  let kind = if shown { "inline" } else { "attachment" };
  let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
  let text = format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{}", encoded(name));
  HeaderValue::try_from(text).expect("only visible ASCII letters are left")
}

fn is_plain(letter: char) -> bool {
  (letter.is_ascii_graphic() || letter == ' ') && !matches!(letter, '"' | '\\' | '%' | ';')
}

fn encoded(name: &str) -> String {
  let mut text = String::with_capacity(name.len() * 3);
  for byte in name.bytes() {
    if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
      text.push(char::from(byte));
    } else {
      text.push('%');
      text.push_str(&hex::encode_upper([byte]));
    }
  }
  text
}

#[cfg(test)]
mod tests {
  use super::*;

  fn headers(name: &str, media_type: &str) -> HeaderMap {
    Described { name, media_type, size: 3, sha256: "ab12" }.headers()
  }

  #[test]
  fn only_pictures_are_shown_in_place() {
    for (media_type, kind) in [("image/png", "inline"), ("image/svg+xml", "attachment"), ("text/html", "attachment"), ("application/pdf", "attachment")] {
      let headers = headers("a", media_type);
      assert!(headers[header::CONTENT_DISPOSITION].to_str().unwrap().starts_with(kind), "{media_type}");
      assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
      assert!(headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("sandbox"));
      assert!(headers[header::CACHE_CONTROL].to_str().unwrap().starts_with("private"));
    }
    assert_eq!(headers("a", "image/png")[header::ETAG], "\"ab12\"");
  }

  #[test]
  fn a_name_in_any_script_arrives_whole() {
    assert_eq!(
      headers("报告 \"1\"; x=.pdf", "application/pdf")[header::CONTENT_DISPOSITION],
      "attachment; filename=\"__ _1__ x=.pdf\"; filename*=UTF-8''%E6%8A%A5%E5%91%8A%20%221%22%3B%20x%3D.pdf"
    );
  }
}
