//! Reads what a server says instead of an answer: status, Retry-After, and an error body of any shape.

use std::time::Duration;

use chrono::DateTime;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::{Error, lenient_json};

/// Enough for every message worth reading; the rest of an error body is not read.
pub(super) const BODY_BYTES_MAX: usize = 16 * 1024;
/// What of it goes into an error.
const DETAIL_CHARS_MAX: usize = 400;
/// A server that asks for more than a day has made a mistake.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// Cleans what a server says: servers like to quote the key that they refuse.
pub(super) struct Redact<'a>(pub(super) Option<&'a SecretString>);

impl Redact<'_> {
  fn detail(&self, text: &str) -> String {
    let text = match self.0.map(ExposeSecret::expose_secret) {
      Some(key) if !key.is_empty() => text.replace(key, "[key]"),
      _ => text.to_owned(),
    };
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).take(DETAIL_CHARS_MAX).collect()
  }
}

/// What an error body says, as far as it is one.
struct Said {
  text: String,
  code: String,
  status: Option<u16>,
}

pub(super) fn with_status(status: StatusCode, headers: &HeaderMap, body: &[u8], redact: &Redact<'_>) -> Error {
  let body = lenient_json(body);
  let said = match serde_json::from_slice::<Value>(&body) {
    Ok(value) => read(value.get("error").unwrap_or(&value)),
    Err(_) => Said { text: String::from_utf8_lossy(&body).into_owned(), code: String::new(), status: None },
  };
  classify(status.as_u16(), retry_after(headers), &said, redact)
}

/// An error under status 200 is an error; its own code says which.
pub(super) fn in_the_stream(error: &Value, redact: &Redact<'_>) -> Error {
  let said = read(error);
  classify(said.status.unwrap_or(StatusCode::BAD_GATEWAY.as_u16()), None, &said, redact)
}

fn read(error: &Value) -> Said {
  let field = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
  let text = match error {
    Value::String(text) => text.as_str(),
    _ => [field("message"), field("detail")].into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
  };
  let status = ["code", "status"].into_iter().find_map(|name| {
    let value = error.get(name)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
  });
  Said { text: text.to_owned(), code: format!("{} {}", field("code"), field("type")), status }
}

fn classify(status: u16, after: Option<Duration>, said: &Said, redact: &Redact<'_>) -> Error {
  let detail = redact.detail(&said.text);
  let hint = format!("{} {}", said.code, said.text).to_ascii_lowercase();
  let mentions = |words: &[&str]| words.iter().any(|word| hint.contains(word));
  let no_credit = mentions(&["insufficient_quota", "insufficient balance", "insufficient_balance", "billing_hard_limit"]);
  match status {
    402 => Error::OutOfCredit { detail },
    // The same status means "slower" and "no money left"; waiting helps against one of them.
    429 if no_credit => Error::OutOfCredit { detail },
    429 => Error::RateLimited { after, detail },
    408 | 425 | 500..=599 if !mentions(CONTEXT_HINTS) => Error::Unavailable { status, after, detail },
    400 | 413 | 422 | 500..=599 if mentions(CONTEXT_HINTS) => Error::ContextTooLong { detail },
    413 => Error::RequestTooLarge { detail },
    401 | 403 => Error::Unauthorized { status, detail },
    404 if hint.contains("model") => Error::ModelUnknown { detail },
    404 => Error::EndpointUnknown { detail },
    400 | 422 if mentions(&["model_not_found", "model not found", "model not exist", "invalid model", "unknown model"]) => Error::ModelUnknown { detail },
    _ => Error::BadRequest { status, detail },
  }
}

/// How servers say that the prompt does not fit; there is no common code.
const CONTEXT_HINTS: &[&str] = &[
  "context_length_exceeded",
  "exceed_context_size",
  "context length",
  "context window",
  "context size",
  "maximum context",
  "prompt is too long",
  "input is too long",
  "too many tokens",
];

/// Reads seconds or an HTTP date. A date counts from the server's own date, so that a wrong clock on either side does no harm.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
  let asked = text(headers.get(RETRY_AFTER))?;
  let wait = if let Ok(seconds) = asked.parse::<f64>() {
    Duration::try_from_secs_f64(seconds).ok()?
  } else {
    let until = DateTime::parse_from_rfc2822(asked).ok()?;
    let now = DateTime::parse_from_rfc2822(text(headers.get(DATE))?).ok()?;
    (until - now).to_std().unwrap_or(Duration::ZERO)
  };
  Some(wait.min(RETRY_AFTER_MAX))
}

fn text(value: Option<&HeaderValue>) -> Option<&str> {
  Some(value?.to_str().ok()?.trim())
}

#[cfg(test)]
mod tests {
  use super::*;

  fn code(status: u16, body: &str) -> &'static str {
    let status = StatusCode::from_u16(status).expect("a status");
    with_status(status, &HeaderMap::new(), body.as_bytes(), &Redact(None)).code()
  }

  #[test]
  fn each_refusal_gets_its_own_code() {
    let cases = [
      (400, r#"{"error":{"message":"bad","type":"invalid_request_error"}}"#, "bad_request"),
      (400, r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#, "context_too_long"),
      (400, r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"x"}}"#, "context_too_long"),
      (400, r#"{"error":{"code":"model_not_found","message":"x"}}"#, "model_unknown"),
      (401, "", "unauthorized"),
      (402, "", "out_of_credit"),
      (403, "<html>no</html>", "unauthorized"),
      (404, r#"{"error":"The model `x` does not exist"}"#, "model_unknown"),
      (404, "404 page not found", "endpoint_unknown"),
      (408, "", "unavailable"),
      (413, "", "request_too_large"),
      (418, "", "bad_request"),
      (429, "", "rate_limited"),
      (429, r#"{"error":{"code":"insufficient_quota"}}"#, "out_of_credit"),
      (500, r#"{"detail":"This model's maximum context length is 4096 tokens"}"#, "context_too_long"),
      (500, "", "unavailable"),
      (503, "", "unavailable"),
      (529, "", "unavailable"),
      (307, "", "bad_request"),
    ];
    for (status, body, expected) in cases {
      assert_eq!(code(status, body), expected, "{status} {body}");
    }
  }

  #[test]
  fn retry_after_is_seconds_or_a_date_by_the_servers_own_clock() {
    let wait = |asked: &'static str, date: &'static str| {
      let mut headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(asked))]);
      if !date.is_empty() {
        headers.insert(DATE, HeaderValue::from_static(date));
      }
      retry_after(&headers)
    };
    assert_eq!(wait("7", ""), Some(Duration::from_secs(7)));
    assert_eq!(wait("0.5", ""), Some(Duration::from_millis(500)));
    assert_eq!(wait("Wed, 21 Oct 2015 07:28:30 GMT", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::from_secs(30)));
    assert_eq!(wait("Wed, 21 Oct 2015 07:27:00 GMT", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
    assert_eq!(wait("Wed, 21 Oct 2015 07:28:30 GMT", ""), None);
    assert_eq!(wait("-1", ""), None);
    assert_eq!(wait("soon", ""), None);
    assert_eq!(wait("99999999999", ""), Some(RETRY_AFTER_MAX));
  }
}
