//! The headers that every answer carries, and the page's content security policy.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::auth::Places;

/// For everything that isn't a page: nothing may be loaded, and nobody frames it.
const DATA_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");

const EVERYWHERE: [(HeaderName, HeaderValue); 6] = [
  (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
  // Not `no-referrer`: that makes browsers send `Origin: null` with our own forms.
  (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
  (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
  (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
  (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
  (HeaderName::from_static("permissions-policy"), HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()")),
];

/// Adds what every answer carries; what a handler set itself stays.
pub(crate) async fn protected(request: Request, next: Next) -> Response {
  let mut response = next.run(request).await;
  let headers = response.headers_mut();
  for (name, value) in EVERYWHERE {
    headers.entry(name).or_insert(value);
  }
  headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(DATA_POLICY);
  headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
  response
}

/// The policy of the page: its own scripts and styles, pictures of its own and previews of what is about to be sent, and its own server.
pub(crate) fn page_policy(places: &Places) -> HeaderValue {
  // Not every browser counts a web socket of the same host as 'self'.
  let socket = places.public_url().replacen("http", "ws", 1);
  let text = format!(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self' {socket}; manifest-src 'self'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
  );
  HeaderValue::try_from(text).expect("a checked URL is made of header letters")
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn the_page_runs_no_script_but_its_own() {
    let places = Places::new(Some("https://a.example"), ([127, 0, 0, 1], 1).into()).unwrap();
    let policy = page_policy(&places);
    let policy = policy.to_str().unwrap();
    assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"));
    assert!(policy.contains("connect-src 'self' wss://a.example;") && policy.contains("frame-ancestors 'none'"));
  }
}
