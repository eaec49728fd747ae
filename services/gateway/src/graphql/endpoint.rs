//! `POST /graphql`: one request, read within limits, mended, checked, run. There is no `GET`: a link must not be able to ask anything.

use std::sync::Arc;

use async_graphql::{Name, Request, Response as Answer, ServerError, Value, Variables};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use pa_domain::lenient_json::lenient_json;
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

use super::document;
use super::env::{Env, is_unavailable};
use crate::auth::{Viewer, sign_in};
use crate::edge::Edge;
use crate::http::answer::Refusal;
use crate::http::body;
use crate::http::trace::TraceId;
use crate::limits::{EXECUTION_WITHIN, REQUEST_BYTES_MAX, STORAGE_AGAIN_AFTER, STORAGE_WITHIN};

/// A request as clients send it, over HTTP and over a socket.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Given {
  query: String,
  #[serde(default)]
  operation_name: Option<String>,
  #[serde(default)]
  variables: Option<Variables>,
}

/// Answers a GraphQL request.
pub(crate) async fn post(State(edge): State<Edge>, viewer: Viewer, trace: TraceId, headers: HeaderMap, body: Body) -> Result<Response, Refusal> {
  if !is_json(&headers) {
    return Err(Refusal::UnsupportedMediaType("send application/json"));
  }
  let bytes = body::whole(&headers, body, REQUEST_BYTES_MAX, edge.discarding()).await?;
  let given = parsed(&bytes)?;
  let Ok(answer) = timeout(EXECUTION_WITHIN, run(&edge, viewer, trace, &given)).await else {
    tracing::error!(trace.id = %trace, "a request took too long");
    return Err(Refusal::Internal(trace));
  };
  let mut response = Json(answer).into_response();
  if let Some(cookie) = sign_in::keep(&edge, &viewer, &headers).await {
    response.headers_mut().insert(header::SET_COOKIE, cookie);
  }
  Ok(response)
}

/// A form of another site can send some media types without asking the browser's permission; JSON isn't one of them.
fn is_json(headers: &HeaderMap) -> bool {
  let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).and_then(|value| value.parse::<mime::Mime>().ok());
  given.is_some_and(|given| given.essence_str() == "application/json")
}

fn parsed(bytes: &[u8]) -> Result<Given, Refusal> {
  let mended = lenient_json(bytes);
  if mended.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
    return Err(Refusal::Bad("one request at a time: batches are not offered"));
  }
  serde_json::from_slice(&mended).map_err(|_| Refusal::Bad("the body is not a GraphQL request in JSON"))
}

/// Runs a request, again while the storage is away: then nothing of it was accepted, or its request key makes it the same one.
async fn run(edge: &Edge, viewer: Viewer, trace: TraceId, given: &Given) -> Answer {
  let deadline = Instant::now() + STORAGE_WITHIN;
  loop {
    let env = Env::new(edge.clone(), viewer, trace);
    let answer = run_once(&env, given.clone()).await;
    if !answer.errors.iter().any(is_unavailable) || Instant::now() + STORAGE_AGAIN_AFTER >= deadline {
      return answer;
    }
    sleep(STORAGE_AGAIN_AFTER).await;
  }
}

async fn run_once(env: &Arc<Env>, given: Given) -> Answer {
  let request = match prepared(env, given).await {
    Ok(request) => request,
    Err(errors) => return Answer::from_errors(errors),
  };
  finished(env, env.edge.schema.execute(request).await)
}

/// The checked request in its environment.
pub(crate) async fn prepared(env: &Arc<Env>, given: Given) -> Result<Request, Vec<ServerError>> {
  let checked = document::checked(&given.query).map_err(|error| vec![refused(&error)])?;
  if checked.wants_position {
    // Read first: whoever subscribes after this position must not miss what was read before it.
    env.position().await.map_err(|error| vec![error.into_server_error(async_graphql::Pos::default())])?;
  }
  let mut request = Request::new(given.query).variables(given.variables.unwrap_or_default()).data(Arc::clone(env));
  request.operation_name = given.operation_name;
  request.set_parsed_query(checked.document);
  Ok(request)
}

/// What is added to every answer.
pub(crate) fn finished(env: &Env, mut answer: Answer) -> Answer {
  if env.is_stale() {
    answer.extensions.insert("stale".to_owned(), Value::Boolean(true));
  }
  answer
}

fn refused(error: &document::Error) -> ServerError {
  let mut refused = ServerError::new(error.to_string(), None);
  let mut extensions = async_graphql::ErrorExtensionValues::default();
  extensions.set("code", Value::Enum(Name::new("DOCUMENT_REFUSED")));
  refused.extensions = Some(extensions);
  refused
}

#[cfg(test)]
mod tests {
  use super::*;

  /// Proves D28.
  #[test]
  fn lone_surrogates_and_nul_in_a_request_are_replaced() {
    let given = parsed(br#"{"query":"{a}","variables":{"text":"A\u0000B\ud800C"}}"#).unwrap();
    let text = given.variables.unwrap().get("text").cloned().unwrap();
    assert_eq!(text, Value::from("A\u{fffd}B\u{fffd}C"));
  }

  #[test]
  fn a_batch_is_refused() {
    assert!(matches!(parsed(br#" [{"query":"{a}"}]"#), Err(Refusal::Bad(message)) if message.contains("batches")));
    assert!(matches!(parsed(b"{"), Err(Refusal::Bad(_))));
    assert!(matches!(parsed(br#"{"query":1}"#), Err(Refusal::Bad(_))));
  }

  #[test]
  fn only_json_is_taken() {
    let of = |value: &'static str| is_json(&[(header::CONTENT_TYPE, axum::http::HeaderValue::from_static(value))].into_iter().collect());
    assert!(of("application/json"));
    assert!(of("application/json; charset=utf-8"));
    for other in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp"] {
      assert!(!of(other), "{other}");
    }
    assert!(!is_json(&HeaderMap::new()));
  }
}
