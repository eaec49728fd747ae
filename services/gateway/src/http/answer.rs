//! Answers that carry no data: one JSON shape for all of them, that of a GraphQL error.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::trace::TraceId;

/// A refusal or failure of a whole request.
#[derive(Debug)]
pub(crate) enum Refusal {
  /// Nobody is signed in.
  Unauthenticated,
  /// A cookie came from a page or under a host name that isn't ours.
  ForeignOrigin,
  /// Too many wrong credentials from this address.
  TooManyTries {
    wait_secs: u64,
  },
  NotFound(&'static str),
  TooLarge {
    bytes_max: usize,
  },
  /// The request can't be understood.
  Bad(&'static str),
  UnsupportedMediaType(&'static str),
  /// The disk is full.
  StorageFull,
  /// So much is under way that this must wait.
  Busy,
  /// Something that it needs is away.
  Unavailable,
  /// The process is not so far yet.
  Starting,
  Internal(TraceId),
}

impl Refusal {
  fn parts(&self) -> (StatusCode, &'static str, String) {
    match self {
      Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", "not signed in".into()),
      Self::ForeignOrigin => (StatusCode::FORBIDDEN, "FOREIGN_ORIGIN", "the request does not come from this site's own page; check the public URL".into()),
      Self::TooManyTries { .. } => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_TRIES", "too many wrong credentials; wait a little".into()),
      Self::NotFound(message) => (StatusCode::NOT_FOUND, "NOT_FOUND", (*message).into()),
      Self::TooLarge { bytes_max } => (StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", format!("the body is larger than {bytes_max} bytes")),
      Self::Bad(message) => (StatusCode::BAD_REQUEST, "BAD_REQUEST", (*message).into()),
      Self::UnsupportedMediaType(message) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", (*message).into()),
      Self::StorageFull => (StatusCode::INSUFFICIENT_STORAGE, "STORAGE_FULL", "there is no room for the file".into()),
      Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "BUSY", "too much is under way; try again".into()),
      Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", "the storage is away; nothing was accepted; try again".into()),
      Self::Starting => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", "the process is starting; nothing was accepted; try again".into()),
      Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "internal error".into()),
    }
  }
}

impl IntoResponse for Refusal {
  fn into_response(self) -> Response {
    let (status, code, message) = self.parts();
    let mut extensions = json!({ "code": code });
    if let Self::Internal(trace) = &self {
      extensions["traceId"] = json!(trace.to_string());
    }
    let mut response = (status, Json(json!({ "data": null, "errors": [{ "message": message, "extensions": extensions }] }))).into_response();
    match self {
      Self::Unauthenticated => {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
      }
      Self::TooManyTries { wait_secs } => {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait_secs));
      }
      Self::Busy | Self::Unavailable | Self::Starting => {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
      }
      _ => {}
    }
    response
  }
}
