//! One span a request, without bodies, query strings, paths with codes, or credentials.

use std::fmt;

use axum::extract::{MatchedPath, Request};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

/// The id that joins a request's log lines, and what a person can quote of an internal error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId(u128);

impl fmt::Display for TraceId {
  fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{:032x}", self.0)
  }
}

impl TraceId {
  /// The caller's trace, if it sent one (W3C trace context), or a new one.
  pub(crate) fn of(headers: &HeaderMap) -> Self {
    let given = headers.get("traceparent").and_then(|value| value.to_str().ok()).and_then(trace_of);
    Self(given.unwrap_or_else(rand::random))
  }
}

fn trace_of(traceparent: &str) -> Option<u128> {
  let mut fields = traceparent.split('-');
  let (_version, trace) = (fields.next()?, fields.next()?);
  if trace.len() != 32 {
    return None;
  }
  u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)
}

/// Opens the request's span and names its trace to whatever handles it.
pub(crate) async fn traced(mut request: Request, next: Next) -> Response {
  let trace = TraceId::of(request.headers());
  request.extensions_mut().insert(trace);
  let route = request.extensions().get::<MatchedPath>().map_or("page", MatchedPath::as_str).to_owned();
  let span = tracing::info_span!("request", method = %request.method(), route, trace.id = %trace, status = tracing::field::Empty);
  let recorded = span.clone();
  let response = next.run(request).instrument(span).await;
  recorded.record("status", response.status().as_u16());
  metrics::counter!("pa_http_requests_total", "route" => route, "status" => response.status().as_u16().to_string()).increment(1);
  response
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn a_given_trace_is_continued_and_a_broken_one_is_not() {
    let given: HeaderMap = [("traceparent".parse().unwrap(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap())].into_iter().collect();
    assert_eq!(TraceId::of(&given).to_string(), "0af7651916cd43dd8448eb211c80319c");
    for broken in ["", "00", "00-xyz-1-1", "00-00000000000000000000000000000000-1-1"] {
      assert_eq!(trace_of(broken), None);
    }
  }
}
