//! What every process serves whatever its roles: is it alive, is it ready, its numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::json;

use super::answer::Refusal;
use super::headers;

/// Why a process is not ready yet. Whoever has to catch up enters a reason before it starts and takes it out when it has.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<String, String>>>);

impl Readiness {
  /// `part` is not ready, because of `reason` (plain words, no secrets).
  pub fn not_ready(&self, part: &str, reason: impl Into<String>) {
    self.0.lock().insert(part.to_owned(), reason.into());
  }

  /// `part` is ready.
  pub fn ready(&self, part: &str) {
    self.0.lock().remove(part);
  }

  /// Everything that is missing; empty when the process is ready.
  pub fn reasons(&self) -> BTreeMap<String, String> {
    self.0.lock().clone()
  }
}

/// Gives the numbers in the format of Prometheus.
pub type Metrics = Arc<dyn Fn() -> String + Send + Sync>;

#[derive(Clone)]
struct Operations {
  readiness: Readiness,
  metrics: Metrics,
}

/// The routes `/healthz`, `/readyz`, `/metrics`. `pa up` has them on its one address; a process without page serves them alone.
pub fn operations(readiness: Readiness, metrics: Metrics) -> Router {
  Router::new()
    .route("/healthz", get(async || Json(json!({ "alive": true }))))
    .route("/readyz", get(ready))
    .route("/metrics", get(numbers))
    .with_state(Operations { readiness, metrics })
}

/// The routes of a process that will have a page and is not so far yet: the operations, and for any other path that it must be asked again. A 404 would be taken for the
/// last word.
pub fn starting(readiness: Readiness, metrics: Metrics) -> Router {
  operations(readiness, metrics).fallback(async || Refusal::Starting).layer(from_fn(headers::protected))
}

async fn ready(State(operations): State<Operations>) -> Response {
  let reasons = operations.readiness.reasons();
  let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
  (status, Json(json!({ "ready": reasons.is_empty(), "reasons": reasons }))).into_response()
}

async fn numbers(State(operations): State<Operations>) -> Response {
  ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (operations.metrics)()).into_response()
}

#[cfg(test)]
mod tests {
  use axum::body::{Body, to_bytes};
  use axum::http::Request;
  use tower::ServiceExt;

  use super::*;

  async fn get(router: &Router, path: &str) -> (StatusCode, String) {
    let response = router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    (status, String::from_utf8(to_bytes(response.into_body(), 10_000).await.unwrap().to_vec()).unwrap())
  }

  #[tokio::test]
  async fn a_process_is_ready_when_nothing_is_missing() {
    let readiness = Readiness::default();
    let router = operations(readiness.clone(), Arc::new(|| "pa_up 1\n".to_owned()));
    readiness.not_ready("read model", "partition 3 is 12 events behind");
    assert_eq!(
      get(&router, "/readyz").await,
      (StatusCode::SERVICE_UNAVAILABLE, r#"{"ready":false,"reasons":{"read model":"partition 3 is 12 events behind"}}"#.to_owned())
    );
    assert_eq!(get(&router, "/healthz").await.0, StatusCode::OK);
    readiness.ready("read model");
    assert_eq!(get(&router, "/readyz").await, (StatusCode::OK, r#"{"ready":true,"reasons":{}}"#.to_owned()));
    assert_eq!(get(&router, "/metrics").await, (StatusCode::OK, "pa_up 1\n".to_owned()));
  }
}
