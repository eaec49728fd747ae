//! Connections: reuse, redirects, giving up, servers that are not there.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::routing::post;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Rig, ask, listener, said};
use crate::rehearsal::{Hold, Reply};
use crate::{ChatCompletions, Config, Error, Model as _, RetryLimits};

fn client(address: SocketAddr) -> ChatCompletions {
  let config = Config::new(format!("http://{address}/v1"), "x");
  let retry = RetryLimits { attempts_max: 1, ..RetryLimits::default() };
  ChatCompletions::new(Config { retry, ..config }).expect("a client")
}

/// Takes one request and writes these bytes, then closes.
fn raw_server(listener: TcpListener, response: &'static str) -> JoinSet<()> {
  let mut tasks = JoinSet::new();
  tasks.spawn(async move {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut request = [0; 4096];
    assert!(stream.read(&mut request).await.expect("a request") > 0);
    stream.write_all(response.as_bytes()).await.expect("writes");
  });
  tasks
}

#[tokio::test]
async fn requests_after_each_other_use_one_connection() {
  const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
  type Peers = Arc<Mutex<HashSet<SocketAddr>>>;
  async fn answer(State(peers): State<Peers>, ConnectInfo(peer): ConnectInfo<SocketAddr>) -> ([(header::HeaderName, &'static str); 1], &'static str) {
    peers.lock().insert(peer);
    ([(header::CONTENT_TYPE, "text/event-stream")], STREAM)
  }
  let peers = Peers::default();
  let router = Router::new().route("/v1/chat/completions", post(answer)).with_state(Arc::clone(&peers));
  let listener = listener().await;
  let model = client(listener.local_addr().expect("an address"));
  let mut tasks = JoinSet::new();
  tasks.spawn(axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).into_future());
  for _ in 0..5 {
    assert_eq!(ask(&model, said("hi")).await.answer().text, "hi");
  }
  assert_eq!(peers.lock().len(), 1);
}

#[tokio::test]
async fn streamed_answers_give_their_connection_back() {
  let rig = Rig::new().await;
  for _ in 0..5 {
    rig.answer_of(Reply::text("hi")).await.answer();
  }
  let connections: HashSet<usize> = rig.script.requests().iter().map(|seen| seen.connection).collect();
  assert_eq!(connections.len(), 1);
}

#[tokio::test]
async fn a_prompt_is_never_sent_on_to_another_host() {
  let other = Rig::new().await;
  let target = other.model.config().base_url.clone();
  let router = Router::new()
    .route("/v1/chat/completions", post(move || async move { (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, format!("{target}/chat/completions"))]) }));
  let listener = listener().await;
  let model = client(listener.local_addr().expect("an address"));
  let mut tasks = JoinSet::new();
  tasks.spawn(axum::serve(listener, router).into_future());
  let error = ask(&model, said("hi")).await.error();
  assert!(matches!(error, Error::BadRequest { status: 307, .. }), "{error:?}");
  assert_eq!(other.script.requests().len(), 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
  let listener = listener().await;
  let address = listener.local_addr().expect("an address");
  drop(listener);
  let error = ask(&client(address), said("hi")).await.error();
  assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_stream_that_ends_with_its_connection_counts_only_with_a_reason_to_finish() {
  let half = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
  let whole = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"whole\"},\"finish_reason\":\"stop\"}]}";
  for (response, expected) in [(half, None), (whole, Some("whole"))] {
    let listener = listener().await;
    let model = client(listener.local_addr().expect("an address"));
    let mut server = raw_server(listener, response);
    let outcome = ask(&model, said("hi")).await;
    assert_eq!(outcome.result.ok().map(|answer| answer.text).as_deref(), expected);
    server.join_next().await.expect("a task").expect("served");
  }
}

#[tokio::test]
async fn a_request_that_is_given_up_closes_its_connection() {
  let rig = Rig::new().await;
  let hold = Hold::new();
  rig.script.queue(Reply::text("half").hold(&hold));
  let request = said("hi");
  let mut sink = |_| ();
  tokio::select! {
      outcome = rig.model.stream(&request, &mut sink) => panic!("{outcome:?}"),
      () = hold.reached() => {}
  }
  rig.script.idle().await;
}
