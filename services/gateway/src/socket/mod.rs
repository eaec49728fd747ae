//! `/graphql/ws`: subscriptions (and requests) over the protocol graphql-transport-ws.
//!
//! Invariants
//! - One task a socket, and nothing is queued: the next change is only taken from its subscription when the one before was written.
//! - A reader that does not take a frame for ten seconds is closed, so a slow one costs two frames of memory, not more.
//! - Whatever ends the socket drops its subscriptions with it.
//! - Both ends see that the other is gone within a minute.
//!
//! Read next: `protocol.rs`, then `connection.rs`.

mod connection;
mod protocol;

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use crate::auth::{self, Credential, Peer, Viewer};
use crate::edge::Edge;
use crate::http::answer::Refusal;
use crate::http::trace::TraceId;
use crate::limits::{REQUEST_BYTES_MAX, SOCKET_READ_BYTES, SOCKET_WRITE_BYTES_MAX};
use connection::Connection;

/// The one protocol that is spoken.
const PROTOCOL: &str = "graphql-transport-ws";

/// Takes the upgrade. A credential in the headers counts already; without one `connection_init` must bring it.
pub(crate) async fn upgrade(State(edge): State<Edge>, Peer(peer): Peer, trace: TraceId, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
  let viewer = match from_headers(&edge, &headers, peer).await {
    Ok(viewer) => viewer,
    Err(refusal) => return refusal.into_response(),
  };
  let Ok(place) = Arc::clone(&edge.socket_places).try_acquire_owned() else { return Refusal::Busy.into_response() };
  let tasks = edge.tasks.clone();
  upgrade
    .protocols([PROTOCOL])
    .read_buffer_size(SOCKET_READ_BYTES)
    // Frames are written at once: each is a change that somebody waits for.
    .write_buffer_size(0)
    .max_write_buffer_size(SOCKET_WRITE_BYTES_MAX)
    .max_message_size(REQUEST_BYTES_MAX)
    .max_frame_size(REQUEST_BYTES_MAX)
    .on_failed_upgrade(|error| tracing::debug!(%error, "a socket's upgrade failed"))
    // Tracked, because a graceful stop does not know of upgraded connections.
    .on_upgrade(move |socket| {
      tasks.track_future(async move {
        Connection::new(edge, peer, trace, viewer).run(socket).await;
        drop(place);
      })
    })
}

/// Who the headers say is there. A wrong credential is not refused here but by its close code, which a browser's script can read.
async fn from_headers(edge: &Edge, headers: &HeaderMap, peer: std::net::IpAddr) -> Result<Option<Viewer>, Refusal> {
  if matches!(Credential::of(headers, &edge.places), Credential::None) {
    return Ok(None);
  }
  match auth::viewer(edge, headers, peer).await {
    Ok(viewer) => Ok(Some(viewer)),
    Err(Refusal::Unauthenticated) => Ok(None),
    Err(refusal) => Err(refusal),
  }
}
