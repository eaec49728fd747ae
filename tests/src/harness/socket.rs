//! A subscriber over graphql-transport-ws.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::{Client, PATIENCE};

const UPDATES: &str = "subscription($after: Position) { updates(after: $after) { cursor change { __typename \
  ... on MessageUpserted { message { id text status role changed replyToId } } ... on ConversationUpserted { conversation { id kind } } \
  ... on SettingsUpserted { settings { version timeZone } } ... on IndicatorChanged { indicator { running needsInput } } \
  ... on ReplyPiece { messageId attempt offset text } ... on StepNamed { conversationId step } ... on Resync { reason } } } }";

/// One change with its cursor.
#[derive(Clone, Debug)]
pub(crate) struct Update {
  pub(crate) cursor: Option<String>,
  pub(crate) change: Value,
}

impl Update {
  pub(crate) fn kind(&self) -> &str {
    self.change["__typename"].as_str().unwrap_or_default()
  }

  /// The entry that it shows, if it shows one: id and status.
  pub(crate) fn entry(&self) -> Option<(String, String)> {
    let message = &self.change["message"];
    Some((message["id"].as_str()?.to_owned(), message["status"].as_str()?.to_owned()))
  }

  /// The text of a piece.
  pub(crate) fn piece(&self) -> Option<&str> {
    if self.kind() == "ReplyPiece" { self.change["text"].as_str() } else { None }
  }
}

/// An open socket with one subscription.
pub(crate) struct Socket {
  stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
  /// The reply that is being written, as far as its pieces have come.
  text: String,
  attempt: i64,
}

impl Client {
  /// Opens a socket with these headers beside the protocol's own.
  pub(crate) async fn socket(&self, headers: &[(&'static str, &str)]) -> Result<Socket, tokio_tungstenite::tungstenite::Error> {
    let mut request = format!("{}/graphql/ws", self.url.replace("http://", "ws://")).into_client_request()?;
    request.headers_mut().insert("sec-websocket-protocol", "graphql-transport-ws".parse().expect("a header"));
    for (name, value) in headers {
      request.headers_mut().insert(*name, value.parse().expect("a header"));
    }
    Ok(Socket { stream: connect_async(request).await?.0, text: String::new(), attempt: 0 })
  }

  /// Subscribes to what changes after a position.
  pub(crate) async fn updates(&self, after: Option<&str>) -> Socket {
    let mut socket = self.socket(&[]).await.expect("the socket opens");
    socket.say(json!({ "type": "connection_init", "payload": { "authorization": format!("Bearer {}", self.token) } })).await;
    assert_eq!(socket.hears().await.expect("an answer")["type"], "connection_ack");
    socket.subscribe(after).await;
    socket
  }

  /// The position that the read model has.
  pub(crate) async fn position(&self) -> String {
    let data = self.ask("{ agent { position } }", json!({})).await;
    data["agent"]["position"].as_str().expect("a position").to_owned()
  }
}

impl Socket {
  pub(crate) async fn say(&mut self, message: Value) {
    self.stream.send(Frame::text(message.to_string())).await.expect("the socket is open");
  }

  pub(crate) async fn subscribe(&mut self, after: Option<&str>) {
    self.say(json!({ "type": "subscribe", "id": "u", "payload": { "query": UPDATES, "variables": { "after": after } } })).await;
  }

  /// What comes next, pings left out; the close code when it was closed (1006: without a word).
  pub(crate) async fn hears(&mut self) -> Result<Value, u16> {
    self.hears_by(Instant::now() + PATIENCE).await
  }

  async fn hears_by(&mut self, deadline: Instant) -> Result<Value, u16> {
    loop {
      match timeout_at(deadline, self.stream.next()).await.expect("something comes") {
        Some(Ok(Frame::Text(text))) => {
          let said: Value = serde_json::from_str(&text).expect("JSON");
          if said["type"] == "ping" {
            self.say(json!({ "type": "pong" })).await;
          } else {
            return Ok(said);
          }
        }
        Some(Ok(Frame::Close(frame))) => return Err(frame.map_or(1005, |frame| frame.code.into())),
        Some(Ok(_)) => {}
        Some(Err(_)) | None => return Err(1006),
      }
    }
  }

  /// The next change.
  pub(crate) async fn next(&mut self) -> Update {
    self.next_by(Instant::now() + PATIENCE).await
  }

  async fn next_by(&mut self, deadline: Instant) -> Update {
    let said = self.hears_by(deadline).await.expect("the socket is open");
    assert_eq!(said["type"], "next", "{said}");
    assert!(said["payload"]["errors"].is_null(), "{said}");
    let update = &said["payload"]["data"]["updates"];
    Update { cursor: update["cursor"].as_str().map(str::to_owned), change: update["change"].clone() }
  }

  /// Everything up to the first change that `last` takes, that one too.
  pub(crate) async fn until(&mut self, last: impl Fn(&Update) -> bool) -> Vec<Update> {
    let (mut all, deadline) = (Vec::new(), Instant::now() + PATIENCE);
    loop {
      let update = self.next_by(deadline).await;
      let done = last(&update);
      all.push(update);
      if done {
        return all;
      }
    }
  }

  /// The text of the reply that is being written, piece by piece, once it has these words.
  pub(crate) async fn text_with(&mut self, words: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    while !self.text.contains(words) {
      let update = self.next_by(deadline).await;
      let Some(piece) = update.piece() else { continue };
      let attempt = update.change["attempt"].as_i64().expect("an attempt");
      if attempt > self.attempt {
        (self.attempt, self.text) = (attempt, String::new());
      }
      let units: Vec<u16> = self.text.encode_utf16().collect();
      let offset = usize::try_from(update.change["offset"].as_i64().expect("an offset")).expect("no negative offset");
      assert!(offset <= units.len(), "a piece is missing before {offset}, there is {:?}: {update:?}", self.text);
      self.text = String::from_utf16(&units[..offset]).expect("pieces begin between letters") + piece;
    }
    self.text.clone()
  }
}
