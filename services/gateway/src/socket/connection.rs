//! One socket's life: init, operations, pings, end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use async_graphql::{Response, ServerError};
use axum::extract::ws::{Message, WebSocket};
use futures::StreamExt;
use futures::stream::{self, BoxStream, SelectAll};
use serde_json::Value;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::protocol::{Ending, Said, Say, heard, said};
use crate::auth::{self, Place, Viewer};
use crate::edge::Edge;
use crate::graphql::endpoint::{self, Given};
use crate::graphql::env::Env;
use crate::http::answer::Refusal;
use crate::http::trace::TraceId;
use crate::limits::{CLOSE_WITHIN, INIT_WITHIN, OPERATIONS_PER_SOCKET_MAX, PING_EVERY, SILENT_MAX, WRITE_WITHIN};

type Flow = ControlFlow<Ending>;

/// Answers of one operation, each with the operation's id and number; `None` is its end.
type Operation = BoxStream<'static, (Arc<str>, u64, Option<Response>)>;

/// A socket.
pub(super) struct Connection {
  edge: Edge,
  peer: IpAddr,
  trace: TraceId,
  /// Who the upgrade's headers say is there.
  from_headers: Option<Viewer>,
  entered: Option<(Viewer, Place)>,
  operations: SelectAll<Operation>,
  /// Open operations by id, with the number that tells an operation from an earlier one with the same id.
  open: HashMap<Arc<str>, (u64, CancellationToken)>,
  started: u64,
  heard_at: Instant,
}

impl Connection {
  pub(super) fn new(edge: Edge, peer: IpAddr, trace: TraceId, from_headers: Option<Viewer>) -> Self {
    Self { edge, peer, trace, from_headers, entered: None, operations: SelectAll::new(), open: HashMap::new(), started: 0, heard_at: Instant::now() }
  }

  /// Lives until one of the two ends it.
  pub(super) async fn run(mut self, mut socket: WebSocket) {
    metrics::gauge!("pa_sockets").increment(1.0);
    let ending = self.talk(&mut socket).await;
    // Subscriptions end before anything is awaited: a client that is gone costs nothing from here on.
    drop(self);
    tracing::debug!(?ending, "a socket ends");
    if let Some(frame) = ending.frame() {
      let closing = async {
        // If the client is gone already there is nobody to tell.
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
          while let Some(Ok(_)) = socket.recv().await {}
        }
      };
      if timeout(CLOSE_WITHIN, closing).await.is_err() {
        tracing::debug!("a socket's last frame was not taken");
      }
    }
    metrics::gauge!("pa_sockets").decrement(1.0);
  }

  async fn talk(&mut self, socket: &mut WebSocket) -> Ending {
    if socket.protocol().is_none() {
      return Ending::WrongProtocol;
    }
    if let ControlFlow::Break(ending) = self.enter(socket).await {
      return ending;
    }
    let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
      if let ControlFlow::Break(ending) = self.turn(socket, &mut pings).await {
        return ending;
      }
    }
  }

  /// Waits for `connection_init` and lets the client in.
  async fn enter(&mut self, socket: &mut WebSocket) -> Flow {
    let deadline = Instant::now() + INIT_WITHIN;
    let shutdown = self.edge.shutdown.clone();
    loop {
      let received = tokio::select! {
          () = shutdown.cancelled() => return Flow::Break(Ending::Stopping),
          received = timeout_at(deadline, socket.recv()) => received,
      };
      let Ok(received) = received else { return Flow::Break(Ending::InitTimeout) };
      match self.said(received)? {
        Some(Said::ConnectionInit { payload }) => {
          self.let_in(payload).await?;
          return say(socket, &Say::ConnectionAck).await;
        }
        Some(Said::Ping {}) => say(socket, &Say::Pong).await?,
        Some(Said::Pong {} | Said::Complete { .. }) | None => {}
        Some(Said::Subscribe { .. }) => return Flow::Break(Ending::NotAcknowledged),
      }
    }
  }

  async fn let_in(&mut self, payload: Option<Value>) -> Flow {
    let viewer = match bearer_of(payload.as_ref()) {
      Some(token) => match auth::by_bearer(&self.edge, token, self.peer).await {
        Ok(viewer) => Some(viewer),
        Err(Refusal::Unauthenticated | Refusal::TooManyTries { .. }) => None,
        Err(_) => return Flow::Break(Ending::Internal),
      },
      None => self.from_headers,
    };
    let Some(viewer) = viewer else { return Flow::Break(Ending::Forbidden) };
    let Some(place) = self.edge.sockets.enter(viewer.account, viewer.credential.0) else { return Flow::Break(Ending::TooManySockets) };
    self.entered = Some((viewer, place));
    Flow::Continue(())
  }

  /// Whatever happens next.
  async fn turn(&mut self, socket: &mut WebSocket, pings: &mut Interval) -> Flow {
    let Some((_, place)) = &self.entered else { return Flow::Break(Ending::Forbidden) };
    tokio::select! {
        () = self.edge.shutdown.cancelled() => Flow::Break(Ending::Stopping),
        () = place.revoked.cancelled() => Flow::Break(Ending::Forbidden),
        received = socket.recv() => match self.said(received)? {
            Some(said) => self.obey(socket, said).await,
            None => Flow::Continue(()),
        },
        Some((id, number, answer)) = self.operations.next() => self.answer(socket, &id, number, answer).await,
        _ = pings.tick() => self.ping(socket).await,
    }
  }

  /// What a received frame says; `None`: a frame of the transport alone.
  fn said(&mut self, received: Option<Result<Message, axum::Error>>) -> ControlFlow<Ending, Option<Said>> {
    let Some(Ok(message)) = received else { return ControlFlow::Break(Ending::Gone) };
    self.heard_at = Instant::now();
    match message {
      Message::Text(text) => match heard(&text) {
        Ok(said) => ControlFlow::Continue(Some(said)),
        Err(ending) => ControlFlow::Break(ending),
      },
      Message::Binary(_) => ControlFlow::Break(Ending::Invalid),
      Message::Ping(_) | Message::Pong(_) => ControlFlow::Continue(None),
      Message::Close(_) => ControlFlow::Break(Ending::Gone),
    }
  }

  async fn obey(&mut self, socket: &mut WebSocket, said: Said) -> Flow {
    match said {
      Said::ConnectionInit { .. } => Flow::Break(Ending::TooManyInits),
      Said::Ping {} => say(socket, &Say::Pong).await,
      Said::Pong {} => Flow::Continue(()),
      Said::Subscribe { id, payload } => self.start(socket, id.into(), payload).await,
      Said::Complete { id } => {
        if let Some((_, cancelled)) = self.open.remove(id.as_str()) {
          cancelled.cancel();
        }
        Flow::Continue(())
      }
    }
  }

  async fn start(&mut self, socket: &mut WebSocket, id: Arc<str>, given: Given) -> Flow {
    let Some((viewer, _)) = &self.entered else { return Flow::Break(Ending::Forbidden) };
    if self.open.contains_key(&id) {
      return Flow::Break(Ending::SameId);
    }
    if self.open.len() >= OPERATIONS_PER_SOCKET_MAX {
      let error = ServerError::new(format!("at most {OPERATIONS_PER_SOCKET_MAX} operations on one socket"), None);
      return say(socket, &Say::Error { id: &id, payload: &[error] }).await;
    }
    self.started += 1;
    let cancelled = CancellationToken::new();
    self.open.insert(Arc::clone(&id), (self.started, cancelled.clone()));
    let env = Env::new(self.edge.clone(), *viewer, self.trace);
    self.operations.push(operation(env, given, id, self.started, cancelled));
    Flow::Continue(())
  }

  async fn answer(&mut self, socket: &mut WebSocket, id: &Arc<str>, number: u64, answer: Option<Response>) -> Flow {
    // What the client has completed meanwhile it does not want to hear of.
    if self.open.get(id).is_none_or(|(open, _)| *open != number) {
      return Flow::Continue(());
    }
    match answer {
      // Nothing was run: the protocol has a message of its own for that, which also ends the operation.
      Some(answer) if answer.is_err() && answer.data == async_graphql::Value::Null => {
        if let Some((_, cancelled)) = self.open.remove(id) {
          cancelled.cancel();
        }
        say(socket, &Say::Error { id, payload: &answer.errors }).await
      }
      Some(answer) => say(socket, &Say::Next { id, payload: &answer }).await,
      // It ended because the process stops: the close tells that, while `complete` would say that nothing more will ever come.
      None if self.edge.shutdown.is_cancelled() => Flow::Break(Ending::Stopping),
      None => {
        self.open.remove(id);
        say(socket, &Say::Complete { id }).await
      }
    }
  }

  async fn ping(&mut self, socket: &mut WebSocket) -> Flow {
    if self.heard_at.elapsed() > SILENT_MAX {
      return Flow::Break(Ending::Silent);
    }
    say(socket, &Say::Ping).await?;
    // The transport's own ping is answered by every library, also by those whose user ignores the protocol's.
    send(socket, Message::Ping(bytes::Bytes::new())).await
  }
}

/// Says something, in a frame of its own.
async fn say(socket: &mut WebSocket, say: &Say<'_>) -> Flow {
  send(socket, said(say)).await
}

/// Sends a frame, unless the reader does not take it.
async fn send(socket: &mut WebSocket, message: Message) -> Flow {
  match timeout(WRITE_WITHIN, socket.send(message)).await {
    Ok(Ok(())) => Flow::Continue(()),
    Ok(Err(_)) => Flow::Break(Ending::Gone),
    Err(_) => {
      metrics::counter!("pa_slow_readers_total").increment(1);
      Flow::Break(Ending::TooSlow)
    }
  }
}

/// The token in the payload of `connection_init`.
fn bearer_of(payload: Option<&Value>) -> Option<&str> {
  let fields = payload?.as_object()?;
  let value = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("authorization")).and_then(|(_, value)| value.as_str())?;
  // A value that is no bearer is a wrong credential, not none.
  Some(auth::bearer(value).unwrap_or_default())
}

/// The answers of an operation and its end; cancelling it drops everything that it holds.
fn operation(env: Arc<Env>, given: Given, id: Arc<str>, number: u64, cancelled: CancellationToken) -> Operation {
  let answers = stream::once(async move {
    match endpoint::prepared(&env, given).await {
      Ok(request) => {
        let schema = env.edge.schema.clone();
        schema.execute_stream(request).map(move |answer| endpoint::finished(&env, answer)).boxed()
      }
      Err(errors) => stream::once(async { Response::from_errors(errors) }).boxed(),
    }
  })
  .flatten();
  let end_id = Arc::clone(&id);
  answers
    .map(move |answer| (Arc::clone(&id), number, Some(answer)))
    .chain(stream::once(async move { (end_id, number, None) }))
    .take_until(cancelled.cancelled_owned())
    .boxed()
}
