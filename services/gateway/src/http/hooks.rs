//! Webhooks of channels: `/hooks/{channel}/{connection}`. No connection exists yet, so every one is unknown.

use axum::response::{IntoResponse, Response};

use super::answer::Refusal;

/// Answers a webhook of a connection that nobody has.
pub(crate) async fn unknown() -> Response {
  Refusal::NotFound("no such connection").into_response()
}
