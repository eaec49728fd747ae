//! A client of graphql-transport-ws for tests.

use axum::http::HeaderValue;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::world::{PATIENCE, World};

pub(super) const UPDATES: &str = "subscription($after: Position) { updates(after: $after) { cursor change { __typename \
  ... on MessageUpserted { message { id text status role changed } } ... on ConversationUpserted { conversation { id kind } } \
  ... on SettingsUpserted { settings { version timeZone } } ... on IndicatorChanged { indicator { running } } \
  ... on TaskUpserted { task { id title state } } ... on TaskEntryUpserted { entry { kind status } } ... on ActionUpserted { action { id state } } \
  ... on OutputUpserted { output { id caption } } \
  ... on ReplyPiece { messageId attempt offset text } ... on StepNamed { conversationId step } ... on Resync { reason } } } }";

pub(super) struct Socket(pub WebSocketStream<MaybeTlsStream<TcpStream>>);

/// What a client got.
#[derive(Debug, PartialEq)]
pub(super) enum Got {
  Said(Value),
  Closed(u16),
}

impl World {
  /// Opens a socket with these headers.
  pub(super) async fn socket(&self, headers: &[(&'static str, &str)]) -> Result<Socket, Error> {
    let mut request = format!("ws://{}/graphql/ws", self.address).into_client_request()?;
    for (name, value) in headers {
      request.headers_mut().insert(*name, HeaderValue::from_str(value).unwrap());
    }
    Ok(Socket(connect_async(request).await?.0))
  }

  /// Opens a socket of the protocol, not initialised yet.
  pub(super) async fn plain_socket(&self) -> Socket {
    self.socket(&[("sec-websocket-protocol", "graphql-transport-ws")]).await.unwrap()
  }

  /// Opens a socket as the owner.
  pub(super) async fn owner_socket(&self) -> Socket {
    let mut socket = self.plain_socket().await;
    socket.say(json!({ "type": "connection_init", "payload": { "authorization": format!("Bearer {}", self.token) } })).await;
    assert_eq!(socket.next().await, Got::Said(json!({ "type": "connection_ack" })));
    socket
  }

  /// Subscribes to the owner's updates after a position.
  pub(super) async fn updates(&self, after: Value) -> Socket {
    let mut socket = self.owner_socket().await;
    socket.subscribe("u", UPDATES, json!({ "after": after })).await;
    socket
  }
}

impl Socket {
  pub(super) async fn say(&mut self, message: Value) {
    self.0.send(Message::text(message.to_string())).await.unwrap();
  }

  pub(super) async fn subscribe(&mut self, id: &str, query: &str, variables: Value) {
    self.say(json!({ "type": "subscribe", "id": id, "payload": { "query": query, "variables": variables } })).await;
  }

  /// What comes next, pings of either kind left out.
  pub(super) async fn next(&mut self) -> Got {
    let deadline = Instant::now() + PATIENCE;
    loop {
      let message = timeout_at(deadline, self.0.next()).await.expect("something comes");
      match message {
        Some(Ok(Message::Text(text))) => {
          let said: Value = serde_json::from_str(&text).unwrap();
          if said["type"] != "ping" {
            return Got::Said(said);
          }
        }
        Some(Ok(Message::Close(frame))) => return Got::Closed(frame.map_or(1005, |frame| frame.code.into())),
        Some(Ok(_)) => {}
        Some(Err(_)) | None => return Got::Closed(1006),
      }
    }
  }

  /// The next envelope of the updates.
  pub(super) async fn update(&mut self) -> Value {
    match self.next().await {
      Got::Said(said) if said["type"] == "next" => {
        assert!(said["payload"]["errors"].is_null(), "{said}");
        said["payload"]["data"]["updates"].clone()
      }
      other => panic!("an update: {other:?}"),
    }
  }

  /// Updates up to the first that `last` takes.
  pub(super) async fn until(&mut self, last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
      let update = self.update().await;
      let done = last(&update["change"]);
      all.push(update);
      if done {
        return all;
      }
    }
  }

  /// The code with which the server closes, whatever it says before.
  pub(super) async fn closed(&mut self) -> u16 {
    loop {
      if let Got::Closed(code) = self.next().await {
        return code;
      }
    }
  }
}
