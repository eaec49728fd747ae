//! A subscription to `updates`, as a page has one.

use anyhow::{Context, Result, bail, ensure};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::product::Account;

const UPDATES: &str = "subscription { updates { cursor change { __typename \
  ... on MessageUpserted { message { id conversationId place changed role author text status createdAt replyToId replyId incomplete } } \
  ... on ReplyPiece { messageId attempt offset text } ... on StepNamed { conversationId step } \
  ... on IndicatorChanged { indicator { needsInput running } } ... on Resync { reason } } } }";

/// Bytes that a socket reads at a time: thousands of them live in this process.
const BUFFER_BYTES: usize = 8 * 1024;

/// A socket with one subscription.
pub(super) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
  pub(super) async fn connect(address: &str, account: &Account) -> Result<Self> {
    let mut request = format!("ws://{address}/graphql/ws").into_client_request().context("the socket's address")?;
    request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("graphql-transport-ws"));
    let bearer = HeaderValue::from_str(&format!("Bearer {}", account.token)).context("a token fits into a header")?;
    request.headers_mut().insert("authorization", bearer);
    let (stream, _) =
      connect_async_with_config(request, Some(WebSocketConfig::default().read_buffer_size(BUFFER_BYTES)), true).await.context("open a socket")?;
    let mut socket = Self(stream);
    socket.say(&json!({ "type": "connection_init" })).await?;
    let acknowledged = socket.next().await?;
    ensure!(acknowledged.contains("connection_ack"), "the socket said {acknowledged}");
    socket.say(&json!({ "type": "subscribe", "id": "1", "payload": { "query": UPDATES } })).await?;
    Ok(socket)
  }

  /// The next frame's text. Cancel-safe.
  pub(super) async fn next(&mut self) -> Result<String> {
    loop {
      match self.0.next().await.context("the socket has ended")?.context("read a socket")? {
        Message::Text(text) if text.contains("\"type\":\"ping\"") => self.say(&json!({ "type": "pong" })).await?,
        Message::Text(text) => return Ok(text.as_str().to_owned()),
        Message::Close(frame) => bail!("the socket was closed: {frame:?}"),
        _ => {}
      }
    }
  }

  async fn say(&mut self, value: &serde_json::Value) -> Result<()> {
    self.0.send(Message::text(value.to_string())).await.context("write to a socket")
  }
}

/// The value of a string field in a frame, by its first appearance: cheaper than parsing the frame.
pub(super) fn field<'f>(frame: &'f str, name: &str) -> Option<&'f str> {
  let marker = format!("\"{name}\":\"");
  let begin = frame.find(&marker)? + marker.len();
  frame[begin..].split('"').next()
}
