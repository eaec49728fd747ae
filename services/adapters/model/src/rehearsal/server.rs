//! The server of the rehearsal model.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::ask::Ask;
use super::skills::Said;
use super::{frames, skills, tasks};
use crate::Config;

/// What a request with large pictures has.
pub(super) const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a stop waits for answers that are being written.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// The rehearsal remembers as much as a small real model.
const CONTEXT_TOKENS: u32 = 32_768;

/// Pauses before each number that is counted: about seven a second with the pause that the product sets, as a person counts in a hurry.
const COUNTING_PAUSES: u32 = 5;

/// How the rehearsal model behaves.
#[derive(Debug, Clone)]
pub struct Options {
  /// Between two pieces, so that a person sees the answer being written; zero sends it at once.
  pub pause: Duration,
  /// The model's name.
  pub model: String,
}

impl Default for Options {
  fn default() -> Self {
    Self { pause: Duration::from_millis(40), model: "rehearsal".to_owned() }
  }
}

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub struct Server {
  pub(super) address: SocketAddr,
  pub(super) model: String,
  pub(super) stop: oneshot::Sender<()>,
  pub(super) tasks: JoinSet<io::Result<()>>,
}

/// Serves the rehearsal model on a bound listener.
pub fn serve(listener: TcpListener, options: Options) -> io::Result<Server> {
  let address = listener.local_addr()?;
  let model = options.model.clone();
  let router = Router::new().route("/v1/chat/completions", post(answer)).layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX)).with_state(Arc::new(options));
  let (stop, stopped) = oneshot::channel();
  let mut tasks = JoinSet::new();
  let serving = axum::serve(listener, router).with_graceful_shutdown(async {
    // A dropped sender is a stop as well.
    stopped.await.unwrap_or_default();
  });
  tasks.spawn(serving.into_future());
  Ok(Server { address, model, stop, tasks })
}

impl Server {
  pub fn address(&self) -> SocketAddr {
    self.address
  }

  /// Returns what a model configuration names as its base address.
  pub fn base_url(&self) -> String {
    format!("http://{}/v1", self.address)
  }

  /// Returns the configuration that leads to this server.
  pub fn config(&self) -> Config {
    Config { context_tokens: CONTEXT_TOKENS, sees_pictures: true, ..Config::new(self.base_url(), self.model.clone()) }
  }

  /// Takes no further requests, lets running answers end for a moment, then ends.
  pub async fn stop(self) {
    let Self { stop, mut tasks, .. } = self;
    drop(stop);
    if tokio::time::timeout(STOP_GRACE, tasks.join_next()).await.is_err() {
      tasks.abort_all();
    }
  }
}

async fn answer(State(options): State<Arc<Options>>, body: Bytes) -> Response {
  match serde_json::from_slice(&body) {
    Ok(request) => plain(&options, &request),
    Err(_) => refuse(),
  }
}

/// Answers by the table of skills.
pub(super) fn plain(options: &Options, request: &Value) -> Response {
  let ask = Ask::read(request);
  let (Said { text: said, counting }, calls) = match tasks::turn(request, &ask) {
    // Words alone are an answer, and every answer says what this is.
    Some(turn) if turn.calls.is_empty() => (Said { text: skills::introduced(&ask, &turn.text), counting: false }, turn.calls),
    Some(turn) => (Said { text: turn.text, counting: false }, turn.calls),
    None => (skills::answer(&ask), Vec::new()),
  };
  let model = request["model"].as_str().unwrap_or(&options.model).to_owned();
  let called: String = calls.iter().enumerate().map(|(index, call)| frames::call(&model, index, call.tool, &call.arguments)).collect();
  let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
  let end = called + &frames::chunk(&model, "{}", Some(finish)) + &frames::usage(&model, &frames::counted(request, &said)) + frames::DONE;
  let pause = options.pause;
  if pause.is_zero() {
    let all = frames::pieces(&said).map(|piece| frames::text(&model, piece)).chain([end]).collect::<String>();
    return event_stream(Body::from(all));
  }
  let pieces: Vec<&str> = if counting { frames::words(&said).collect() } else { frames::pieces(&said).collect() };
  let pace = |piece: &str| if counting && piece.trim_end().bytes().all(|byte| byte.is_ascii_digit()) { pause * COUNTING_PAUSES } else { pause };
  let mut events: Vec<(Duration, String)> = pieces.into_iter().map(|piece| (pace(piece), frames::text(&model, piece))).collect();
  events.push((pause, end));
  let paced = stream::iter(events.into_iter().enumerate()).then(move |(at, (pause, event))| async move {
    if at > 0 {
      tokio::time::sleep(pause).await;
    }
    Ok::<_, io::Error>(Bytes::from(event))
  });
  event_stream(Body::from_stream(paced))
}

pub(super) fn event_stream(body: Body) -> Response {
  let mut response = Response::new(body);
  response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
  response
}

pub(super) fn refuse() -> Response {
  (StatusCode::BAD_REQUEST, Json(json!({"error": {"message": "the body is no JSON"}}))).into_response()
}
