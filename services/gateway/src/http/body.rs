//! Request bodies with a limit: a body that is too large is never kept, and its sender can still read the answer.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::Refusal;
use crate::limits::{DISCARD_WITHIN, DISCARDED_BYTES_MAX, REQUEST_WITHIN};

/// Where the rest of a refused body is taken in: a task of its own, which ends with the process.
#[derive(Clone, Copy)]
pub(crate) struct Discarding<'a> {
  pub tasks: &'a TaskTracker,
  pub stop: &'a CancellationToken,
}

/// The whole body, if it has at most `bytes_max` bytes.
pub(crate) async fn whole(headers: &HeaderMap, body: Body, bytes_max: usize, rest: Discarding<'_>) -> Result<Bytes, Refusal> {
  let mut stream = body.into_data_stream();
  let stated = stated_length(headers);
  if stated.is_some_and(|length| length > bytes_max) {
    rest.discard(stream);
    return Err(Refusal::TooLarge { bytes_max });
  }
  let deadline = Instant::now() + REQUEST_WITHIN;
  let mut kept = BytesMut::with_capacity(stated.unwrap_or(0));
  while let Some(chunk) = timeout_at(deadline, stream.next()).await.map_err(|_| Refusal::Bad("the body came too slowly"))? {
    let chunk = chunk.map_err(|_| Refusal::Bad("the body ended too early"))?;
    if kept.len() + chunk.len() > bytes_max {
      rest.discard(stream);
      return Err(Refusal::TooLarge { bytes_max });
    }
    kept.extend_from_slice(&chunk);
  }
  Ok(kept.freeze())
}

/// The length that the client states.
pub(crate) fn stated_length(headers: &HeaderMap) -> Option<usize> {
  headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl Discarding<'_> {
  /// Goes on taking what the client sends, for a while, and forgets it. Without this the connection would be reset while the client still writes, and many clients
  /// would then report a broken connection instead of the answer.
  pub(crate) fn discard(self, stream: BodyDataStream) {
    let stop = self.stop.clone();
    self.tasks.spawn(async move {
      tokio::select! {
        () = stop.cancelled() => {}
        () = discard_within(stream, DISCARDED_BYTES_MAX, DISCARD_WITHIN) => {}
      }
    });
  }
}

pub(super) async fn discard_within(mut stream: BodyDataStream, bytes_max: usize, within: Duration) {
  let mut taken = 0;
  let taking = async {
    while let Some(Ok(chunk)) = stream.next().await {
      taken += chunk.len();
      if taken > bytes_max {
        break;
      }
    }
  };
  if tokio::time::timeout(within, taking).await.is_err() {
    tracing::debug!("a refused body was still coming; the connection closes");
  }
}

#[cfg(test)]
mod tests {
  use std::sync::Arc;
  use std::sync::atomic::{AtomicUsize, Ordering};

  use futures::stream;

  use super::*;

  #[tokio::test]
  async fn a_body_without_a_length_is_cut_at_the_limit() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let endless = stream::repeat_with(move || {
      counter.fetch_add(1_000, Ordering::Relaxed);
      Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 1_000]))
    });
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let answer = whole(&HeaderMap::new(), Body::from_stream(endless), 10_000, Discarding { tasks: &tasks, stop: &stop }).await;
    assert!(matches!(answer, Err(Refusal::TooLarge { bytes_max: 10_000 })));
    assert!(taken.load(Ordering::Relaxed) <= 11_000);
    tasks.close();
    tasks.wait().await;
    assert!(taken.load(Ordering::Relaxed) <= DISCARDED_BYTES_MAX + 20_000);
  }

  #[tokio::test]
  async fn a_body_at_the_limit_is_taken_whole() {
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let body = whole(&HeaderMap::new(), Body::from(vec![b'x'; 10]), 10, Discarding { tasks: &tasks, stop: &stop }).await;
    assert_eq!(body.unwrap().len(), 10);
  }
}
