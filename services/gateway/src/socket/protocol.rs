//! The messages and close codes of graphql-transport-ws.

use async_graphql::{Response, ServerError};
use axum::extract::ws::{CloseFrame, Message};
use pa_domain::lenient_json::lenient_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::graphql::endpoint::Given;

/// What a client says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Said {
  ConnectionInit {
    #[serde(default)]
    payload: Option<Value>,
  },
  Ping {},
  Pong {},
  Subscribe {
    id: String,
    payload: Given,
  },
  Complete {
    id: String,
  },
}

/// What the server says.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Say<'a> {
  ConnectionAck,
  Ping,
  Pong,
  Next { id: &'a str, payload: &'a Response },
  Error { id: &'a str, payload: &'a [ServerError] },
  Complete { id: &'a str },
}

/// Why the server ends a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
  /// The client closed, or is gone: there is nobody to tell.
  Gone,
  Stopping,
  TooSlow,
  Silent,
  Invalid,
  NotAcknowledged,
  Forbidden,
  WrongProtocol,
  InitTimeout,
  SameId,
  TooManyInits,
  TooManySockets,
  Internal,
}

impl Ending {
  pub(crate) fn frame(self) -> Option<CloseFrame> {
    let (code, reason) = match self {
      Self::Gone => return None,
      Self::Stopping => (1001, "the server stops"),
      Self::Internal => (1011, "internal error"),
      Self::TooSlow => (1013, "the reader is too slow"),
      Self::Silent => (4408, "no sign of life"),
      Self::Invalid => (4400, "invalid message"),
      Self::NotAcknowledged => (4401, "unauthorized: send connection_init first"),
      Self::Forbidden => (4403, "forbidden: not signed in"),
      Self::WrongProtocol => (4406, "subprotocol not acceptable: graphql-transport-ws"),
      Self::InitTimeout => (4408, "connection initialisation timeout"),
      Self::SameId => (4409, "subscriber already exists"),
      Self::TooManyInits => (4429, "too many initialisation requests"),
      Self::TooManySockets => (4429, "too many sockets of this account"),
    };
    Some(CloseFrame { code, reason: reason.into() })
  }
}

/// Reads what a client says; JSON that strict parsers refuse is mended first.
pub(crate) fn heard(text: &str) -> Result<Said, Ending> {
  serde_json::from_slice(&lenient_json(text.as_bytes())).map_err(|_| Ending::Invalid)
}

/// Writes what the server says.
pub(crate) fn said(say: &Say<'_>) -> Message {
  // Values of GraphQL are values of JSON.
  Message::Text(serde_json::to_string(say).expect("a GraphQL answer can be written as JSON").into())
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn what_clients_say_is_understood() {
    assert!(matches!(heard(r#"{"type":"connection_init"}"#), Ok(Said::ConnectionInit { payload: None })));
    assert!(matches!(heard(r#"{"type":"connection_init","payload":{"authorization":"Bearer x"}}"#), Ok(Said::ConnectionInit { payload: Some(_) })));
    assert!(matches!(heard(r#"{"type":"ping","payload":{}}"#), Ok(Said::Ping {})));
    assert!(matches!(heard(r#"{"type":"pong"}"#), Ok(Said::Pong {})));
    assert!(matches!(heard(r#"{"id":"1","type":"subscribe","payload":{"query":"{a}","variables":null,"extensions":null}}"#), Ok(Said::Subscribe { .. })));
    assert!(matches!(heard(r#"{"id":"1","type":"complete"}"#), Ok(Said::Complete { .. })));
    for wrong in ["", "{}", r#"{"type":"start"}"#, r#"{"type":"subscribe","id":"1"}"#, "[]"] {
      assert!(matches!(heard(wrong), Err(Ending::Invalid)), "{wrong}");
    }
  }

  #[test]
  fn what_the_server_says_has_the_protocols_form() {
    let text = |say: &Say<'_>| said(say).into_text().unwrap().to_string();
    assert_eq!(text(&Say::ConnectionAck), r#"{"type":"connection_ack"}"#);
    assert_eq!(text(&Say::Ping), r#"{"type":"ping"}"#);
    assert_eq!(text(&Say::Complete { id: "1" }), r#"{"type":"complete","id":"1"}"#);
    assert_eq!(text(&Say::Next { id: "1", payload: &Response::new(Value::Null.to_string()) }), r#"{"type":"next","id":"1","payload":{"data":"null"}}"#);
  }
}
