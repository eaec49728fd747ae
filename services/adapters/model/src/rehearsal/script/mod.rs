//! The scripted rehearsal model, for tests: the same protocol from a server that misbehaves as told and remembers what it was asked.
//!
//! For each request, in this order: the next queued reply; the first rule that matches; the plain rehearsal answer.

mod play;
mod reply;

pub use reply::{Hold, Reply};

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::ask::text_of;
use super::line::{BreakableListener, Line};
use super::server::{self, Options, REQUEST_BYTES_MAX, Server};

/// What is remembered of old requests; a longer run keeps the newest.
const SEEN_MAX: usize = 10_000;

type Rule = Box<dyn FnMut(&Seen) -> Option<Reply> + Send>;

/// Tells a scripted server what to answer, and what it was asked. Clones are the same script.
#[derive(Clone)]
pub struct Script(Arc<Inner>);

struct Inner {
  queue: Mutex<VecDeque<Reply>>,
  rules: Mutex<Vec<Rule>>,
  seen: Mutex<VecDeque<Seen>>,
  count: watch::Sender<usize>,
  open: watch::Sender<usize>,
}

/// A request as the server got it.
#[derive(Debug, Clone)]
pub struct Seen {
  /// Counts all requests of this server, from 1.
  pub number: usize,
  /// The connection that it came on, counted from 1.
  pub connection: usize,
  pub body: Value,
  /// The Authorization header.
  pub authorization: Option<String>,
}

impl Default for Script {
  fn default() -> Self {
    Self(Arc::new(Inner {
      queue: Mutex::default(),
      rules: Mutex::default(),
      seen: Mutex::default(),
      count: watch::Sender::new(0),
      open: watch::Sender::new(0),
    }))
  }
}

impl Script {
  pub fn new() -> Self {
    Self::default()
  }

  /// Answers the next request that no earlier queued reply takes.
  pub fn queue(&self, reply: Reply) {
    self.0.queue.lock().push_back(reply);
  }

  /// Answers every request for which the rule gives a reply. Rules are tried in the order in which they were made.
  pub fn on(&self, rule: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) {
    self.0.rules.lock().push(Box::new(rule));
  }

  /// Answers every request whose last user message has these words.
  pub fn on_words(&self, words: impl Into<String>, reply: Reply) {
    let words = words.into();
    self.on(move |seen| seen.user_text().contains(&words).then(|| reply.clone()));
  }

  /// Answers the first request whose last user message has these words; later ones pass by.
  pub fn once_on_words(&self, words: impl Into<String>, reply: Reply) {
    let words = words.into();
    let mut reply = Some(reply);
    self.on(move |seen| if seen.user_text().contains(&words) { reply.take() } else { None });
  }

  /// Returns the requests so far, oldest first.
  pub fn requests(&self) -> Vec<Seen> {
    self.0.seen.lock().iter().cloned().collect()
  }

  /// Counts the requests so far whose last user message has these words.
  pub fn count_of(&self, words: &str) -> usize {
    self.0.seen.lock().iter().filter(|seen| seen.user_text().contains(words)).count()
  }

  /// Waits until so many requests have arrived in all.
  pub async fn reached(&self, requests: usize) {
    self.0.count.subscribe().wait_for(|&count| count >= requests).await.expect("the sender lives as long as this");
  }

  /// Waits until no answer is being written: each is at its end, or its reader has gone.
  pub async fn idle(&self) {
    self.0.open.subscribe().wait_for(|&open| open == 0).await.expect("the sender lives as long as this");
  }

  fn note(&self, body: Value, headers: &HeaderMap, line: &Line) -> Seen {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut seen = self.0.seen.lock();
    let mut number = 0;
    self.0.count.send_modify(|count| {
      *count += 1;
      number = *count;
    });
    let request = Seen { number, connection: line.number, body, authorization };
    if seen.len() == SEEN_MAX {
      seen.pop_front();
    }
    seen.push_back(request.clone());
    request
  }

  fn reply_to(&self, seen: &Seen) -> Option<Reply> {
    let queued = self.0.queue.lock().pop_front();
    queued.or_else(|| self.0.rules.lock().iter_mut().find_map(|rule| rule(seen)))
  }
}

impl Seen {
  /// Returns the text of the last user message.
  pub fn user_text(&self) -> String {
    self.text_of_last("user")
  }

  /// Returns the text of all system messages.
  pub fn system_text(&self) -> String {
    self.messages().iter().filter(|message| message["role"] == "system").map(|message| text_of(&message["content"])).collect::<Vec<_>>().join("\n")
  }

  /// Returns the messages as they were sent.
  pub fn messages(&self) -> &[Value] {
    self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
  }

  fn text_of_last(&self, role: &str) -> String {
    self.messages().iter().rfind(|message| message["role"] == role).map(|message| text_of(&message["content"])).unwrap_or_default()
  }
}

impl Server {
  /// Serves the rehearsal model under a script.
  pub fn with_script(listener: TcpListener, options: Options, script: Script) -> io::Result<Self> {
    let listener = BreakableListener::new(listener);
    let address = axum::serve::Listener::local_addr(&listener)?;
    let model = options.model.clone();
    let router =
      Router::new().route("/v1/chat/completions", post(answer)).layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX)).with_state((Arc::new(options), script));
    let (stop, stopped) = oneshot::channel();
    let mut tasks = JoinSet::new();
    let service = router.into_make_service_with_connect_info::<Line>();
    let serving = axum::serve(listener, service).with_graceful_shutdown(async {
      stopped.await.unwrap_or_default();
    });
    tasks.spawn(serving.into_future());
    Ok(Self { address, model, stop, tasks })
  }
}

type Scripted = (Arc<Options>, Script);

async fn answer(State((options, script)): State<Scripted>, ConnectInfo(line): ConnectInfo<Line>, headers: HeaderMap, body: Bytes) -> Response {
  let Ok(request) = serde_json::from_slice::<Value>(&body) else {
    return server::refuse();
  };
  let seen = script.note(request, &headers, &line);
  match script.reply_to(&seen) {
    Some(reply) => play::play(reply, &seen, &line, play::Open::begin(&script.0.open)).await,
    None => server::plain(&options, &seen.body),
  }
}
