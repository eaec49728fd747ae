//! What a handler left of a request's body. Bytes of it would stand before the next request of a connection, so either they are taken in before the answer goes out, or
//! the answer says that the connection closes: a client that uses it again would otherwise find it dead.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::StreamExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::body::discard_within;
use crate::limits::{DISCARD_WITHIN, DISCARDED_BYTES_MAX, REST_BYTES_MAX, REST_WITHIN};

/// Where a body is.
enum Place {
  /// Somebody still has it.
  Held,
  /// It was read to its end.
  Whole,
  /// It was dropped before its end.
  Left(Incoming),
}

/// A body that comes back when it is dropped before its end.
struct Lent {
  body: Option<Incoming>,
  place: Arc<Mutex<Place>>,
}

impl hyper::body::Body for Lent {
  type Data = Bytes;
  type Error = hyper::Error;

  fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
    let polled = Pin::new(body).poll_frame(context);
    if matches!(polled, Poll::Ready(None)) {
      self.body = None;
      *self.place.lock() = Place::Whole;
    }
    polled
  }

  fn is_end_stream(&self) -> bool {
    self.body.as_ref().is_none_or(Incoming::is_end_stream)
  }

  fn size_hint(&self) -> SizeHint {
    self.body.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
  }
}

impl Drop for Lent {
  fn drop(&mut self) {
    if let Some(body) = self.body.take() {
      *self.place.lock() = if body.is_end_stream() { Place::Whole } else { Place::Left(body) };
    }
  }
}

/// A request's body, after the handler.
pub(super) struct Rest {
  place: Arc<Mutex<Place>>,
  /// The client sends the body only when it is told to go on, and then it is not told.
  asks_first: bool,
}

/// Gives the request to a handler, and what is needed to see afterwards what it left of the body.
pub(super) fn lent(request: Request<Incoming>) -> (Request, Rest) {
  let place = Arc::new(Mutex::new(if request.body().is_end_stream() { Place::Whole } else { Place::Held }));
  let rest = Rest { place: Arc::clone(&place), asks_first: request.headers().contains_key(header::EXPECT) };
  (request.map(|body| Body::new(Lent { body: Some(body), place })), rest)
}

impl Rest {
  /// Takes in a small rest of the body. If it can't, the answer says that the connection closes, and what must still be taken in so that the client can read the answer
  /// is given back.
  pub(super) async fn settled(self, response: &mut Response) -> Option<Incoming> {
    let place = std::mem::replace(&mut *self.place.lock(), Place::Held);
    let left = match place {
      Place::Whole => return None,
      Place::Left(mut body) if !self.asks_first => {
        let small = body.size_hint().lower() <= REST_BYTES_MAX;
        if small && timeout(REST_WITHIN, is_taken(&mut body)).await.unwrap_or(false) {
          return None;
        }
        Some(body)
      }
      // Of the one nothing more comes; the other a task of the handler's takes in, perhaps not to its end.
      Place::Left(_) | Place::Held => None,
    };
    closes(response.headers_mut());
    left
  }
}

/// Takes a body in that may have [`REST_BYTES_MAX`] more bytes; false if it has more, or breaks off.
async fn is_taken(body: &mut Incoming) -> bool {
  let mut taken = 0;
  let mut frames = futures::stream::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
  while let Some(frame) = frames.next().await {
    let Ok(frame) = frame else { return false };
    taken += frame.data_ref().map_or(0, |data| data.len() as u64);
    if taken > REST_BYTES_MAX {
      return false;
    }
  }
  true
}

/// Goes on taking in what [`Rest::settled`] gave back.
pub(super) async fn discard(body: Incoming) {
  discard_within(Body::new(body).into_data_stream(), DISCARDED_BYTES_MAX, DISCARD_WITHIN).await;
}

fn closes(headers: &mut HeaderMap) {
  headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
}
