//! `POST /files?name=N`: the raw body becomes a staged file.

use std::io;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use pa_store::ops::uploads::{self, Upload};
use serde::{Deserialize, Serialize};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::{bytes_max, failed, name};
use crate::auth::{Viewer, unavailable};
use crate::edge::Edge;
use crate::http::answer::Refusal;
use crate::http::body::stated_length;
use crate::http::trace::TraceId;
use crate::limits::{UPLOAD_SILENT_MAX, UPLOAD_WITHIN};

#[derive(Debug, Deserialize)]
pub(crate) struct Named {
  #[serde(default)]
  name: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Uploaded {
  id: uuid::Uuid,
  name: String,
  media_type: String,
  size: i64,
  sha256: String,
}

/// Takes a file in. Nothing refers to it until a message names its id, so doing it again is harmless.
pub(crate) async fn upload(
  State(edge): State<Edge>,
  viewer: Viewer,
  trace: TraceId,
  named: Result<Query<Named>, axum::extract::rejection::QueryRejection>,
  headers: HeaderMap,
  body: Body,
) -> Result<Response, Refusal> {
  let Query(named) = named.map_err(|_| Refusal::Bad("the name is not well-formed"))?;
  let media_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str()).transpose().map_err(|_| NOT_A_TYPE)?;
  let media_type = name::media_type(media_type).ok_or(NOT_A_TYPE)?;
  if media_type.starts_with("multipart/") {
    // A form would be stored with its boundaries and headers, which nobody means.
    edge.discarding().discard(body.into_data_stream());
    return Err(A_FORM);
  }
  let _place = place(&edge)?;
  let id = edge.ids.new_id();
  let staged = staged(&edge, trace, id, &headers, body).await?;
  let upload = Upload { id, agent: viewer.account, name: name::kept(&named.name), media_type, size: staged.size, sha256: staged.sha256 };
  uploads::put(&edge.pool, &upload).await.map_err(unavailable)?;
  let answer = Uploaded { id, name: upload.name, media_type: upload.media_type, size: upload.size, sha256: hex::encode(upload.sha256) };
  Ok(Json(answer).into_response())
}

const A_FORM: Refusal = Refusal::UnsupportedMediaType(
  "send the file itself, not a form: its bytes as the body, Content-Type = its media type, its name in ?name=. With curl: --data-binary @FILE instead of -F file=@FILE",
);
const TOO_SLOW: Refusal = Refusal::Bad("the body came too slowly");
const NOT_A_TYPE: Refusal = Refusal::Bad("Content-Type is not a media type");

fn place(edge: &Edge) -> Result<SemaphorePermit<'_>, Refusal> {
  edge.uploads.try_acquire().map_err(|_| Refusal::Busy)
}

async fn staged(edge: &Edge, trace: TraceId, id: uuid::Uuid, headers: &HeaderMap, body: Body) -> Result<pa_blobs::Staged, Refusal> {
  let mut stream = body.into_data_stream();
  if stated_length(headers).is_some_and(|length| length > bytes_max()) {
    edge.discarding().discard(stream);
    return Err(Refusal::TooLarge { bytes_max: bytes_max() });
  }
  let chunks = stream.by_ref().map(|chunk| chunk.map_err(io::Error::other));
  let chunks = Box::pin(within_silence(chunks, UPLOAD_SILENT_MAX));
  let staging = timeout(UPLOAD_WITHIN, edge.blobs.stage(id, chunks)).await.map_err(|_| TOO_SLOW)?;
  staging.map_err(|error| match &error {
    pa_blobs::Error::Upload { source } if source.kind() == io::ErrorKind::TimedOut => TOO_SLOW,
    pa_blobs::Error::TooLarge { .. } => {
      edge.discarding().discard(stream);
      failed(trace, &error)
    }
    _ => failed(trace, &error),
  })
}

/// The same chunks, which end with [`io::ErrorKind::TimedOut`] when none comes for `silent_max`.
fn within_silence(chunks: impl Stream<Item = io::Result<Bytes>> + Unpin, silent_max: Duration) -> impl Stream<Item = io::Result<Bytes>> {
  stream::unfold(Some(chunks), move |chunks| async move {
    let mut chunks = chunks?;
    match timeout(silent_max, chunks.next()).await {
      Ok(chunk) => Some((chunk?, Some(chunks))),
      Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
    }
  })
}

#[cfg(test)]
mod tests {
  use super::*;

  #[tokio::test]
  async fn an_upload_of_which_nothing_more_comes_is_given_up() {
    let slow = stream::iter([b"ab", b"cd", b"ef"]).then(|chunk| async move {
      tokio::time::sleep(Duration::from_millis(20)).await;
      Ok(Bytes::from_static(chunk))
    });
    // Slow is not silent.
    let whole: Vec<_> = within_silence(Box::pin(slow), Duration::from_secs(10)).map(Result::unwrap).collect().await;
    assert_eq!(whole.concat(), b"abcdef");
    let silent = stream::iter([Ok(Bytes::from_static(b"ab"))]).chain(stream::pending());
    let mut given_up = Box::pin(within_silence(silent, Duration::from_millis(50)));
    assert_eq!(given_up.next().await.unwrap().unwrap(), "ab");
    assert_eq!(given_up.next().await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert!(given_up.next().await.is_none());
  }
}
