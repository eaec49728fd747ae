//! The session cookie.
//!
//! `HttpOnly` (no script reads it), `SameSite=Strict` (no foreign page sends it; the page itself needs no cookie to load, so following a link keeps one signed in),
//! and with https `Secure` under the `__Host-` prefix, which browsers accept from this host and for the whole of it only.

use axum::http::{HeaderMap, HeaderValue, header};
use secrecy::{ExposeSecret, SecretString};

use crate::limits::SESSION_MILLIS;

const SECURE_NAME: &str = "__Host-pa_session";
const PLAIN_NAME: &str = "pa_session";

fn name(secure: bool) -> &'static str {
  if secure { SECURE_NAME } else { PLAIN_NAME }
}

/// The session that the request's cookies name.
pub(crate) fn session(headers: &HeaderMap, secure: bool) -> Option<&str> {
  headers
    .get_all(header::COOKIE)
    .iter()
    .filter_map(|line| line.to_str().ok())
    .flat_map(|line| line.split(';'))
    .filter_map(|pair| pair.trim().split_once('='))
    .find_map(|(found, value)| (found == name(secure) && !value.is_empty()).then_some(value))
}

/// `Set-Cookie` for a session that begins or goes on.
pub(crate) fn set(session: &SecretString, secure: bool) -> HeaderValue {
  line(session.expose_secret(), SESSION_MILLIS / 1000, secure)
}

/// `Set-Cookie` that ends the session.
pub(crate) fn clear(secure: bool) -> HeaderValue {
  line("", 0, secure)
}

fn line(value: &str, max_age_secs: i64, secure: bool) -> HeaderValue {
  let suffix = if secure { "; Secure" } else { "" };
  let text = format!("{}={value}; Path=/; Max-Age={max_age_secs}; HttpOnly; SameSite=Strict{suffix}", name(secure));
  let mut header = HeaderValue::try_from(text).expect("a token is made of URL-safe letters");
  header.set_sensitive(true);
  header
}

#[cfg(test)]
mod tests {
  use super::*;

  fn cookies(lines: &[&str]) -> HeaderMap {
    lines.iter().map(|line| (header::COOKIE, line.parse().unwrap())).collect()
  }

  #[test]
  fn the_session_is_found_among_other_cookies() {
    assert_eq!(session(&cookies(&["theme=dark; pa_session=pa_abc; x=1"]), false), Some("pa_abc"));
    assert_eq!(session(&cookies(&["a=b", "pa_session=pa_abc"]), false), Some("pa_abc"));
    assert_eq!(session(&cookies(&["pa_session="]), false), None);
    assert_eq!(session(&cookies(&[]), false), None);
  }

  #[test]
  fn with_https_only_the_prefixed_cookie_counts() {
    assert_eq!(session(&cookies(&["pa_session=planted"]), true), None);
    assert_eq!(session(&cookies(&["__Host-pa_session=pa_abc"]), true), Some("pa_abc"));
  }

  #[test]
  fn no_script_and_no_foreign_page_gets_the_cookie() {
    let plain = set(&"pa_abc".into(), false);
    assert_eq!(plain, "pa_session=pa_abc; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict");
    assert!(plain.is_sensitive());
    assert_eq!(clear(true), "__Host-pa_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure");
  }
}
