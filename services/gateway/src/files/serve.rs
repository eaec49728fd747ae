//! `GET /files/{id}`: a file of the viewer's own, attached or still staged.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pa_blobs::Content;
use pa_projections::conversation;
use pa_store::ops::uploads;
use uuid::Uuid;

use super::headers::Described;
use super::{failed, unread};
use crate::auth::{Viewer, unavailable};
use crate::edge::Edge;
use crate::http::answer::Refusal;
use crate::http::trace::TraceId;
use crate::requests::attach;

/// Where a file's content lies.
enum Lies {
  Blob(String),
  Staged(Uuid),
}

struct File {
  name: String,
  media_type: String,
  size: i64,
  sha256: String,
  lies: Lies,
}

/// Serves a file to its owner; to anybody else there is none.
pub(crate) async fn serve(State(edge): State<Edge>, viewer: Viewer, trace: TraceId, Path(id): Path<String>, asked: HeaderMap) -> Result<Response, Refusal> {
  let id = Uuid::parse_str(&id).map_err(|_| NO_SUCH_FILE)?;
  let file = found(&edge, &viewer, trace, id).await?.ok_or(NO_SUCH_FILE)?;
  let described = Described { name: &file.name, media_type: &file.media_type, size: file.size, sha256: &file.sha256 };
  let mut headers = described.headers();
  if asked.get(header::IF_NONE_MATCH) == Some(&described.etag()) {
    headers.remove(header::CONTENT_LENGTH);
    return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
  }
  let content = opened(&edge, &viewer, trace, &file.lies).await?;
  Ok((headers, Body::from_stream(content)).into_response())
}

/// Also what a file of somebody else looks like.
pub(super) const NO_SUCH_FILE: Refusal = Refusal::NotFound("no such file");

async fn found(edge: &Edge, viewer: &Viewer, trace: TraceId, id: Uuid) -> Result<Option<File>, Refusal> {
  let attached = conversation::attachment(&edge.reads, viewer.account, &id.to_string()).await.map_err(|error| unread(trace, &error))?;
  if let Some(file) = attached {
    let lies = Lies::Blob(file.blob);
    return Ok(Some(File { name: file.name, media_type: file.media_type, size: file.size_bytes, sha256: file.sha256, lies }));
  }
  let upload = uploads::get(&edge.pool, viewer.account, &[id]).await.map_err(unavailable)?.pop();
  Ok(upload.map(|upload| File {
    name: upload.name,
    media_type: upload.media_type,
    size: upload.size,
    sha256: hex::encode(upload.sha256),
    lies: Lies::Staged(id),
  }))
}

async fn opened(edge: &Edge, viewer: &Viewer, trace: TraceId, lies: &Lies) -> Result<Content, Refusal> {
  let opened = match lies {
    Lies::Staged(id) => edge.blobs.staged(*id).await,
    Lies::Blob(name) => {
      let keys = attach::keys(edge, viewer).await.map_err(|error| {
        tracing::error!(trace.id = %trace, error = &error as &(dyn std::error::Error + 'static), "a file can't be opened");
        Refusal::Internal(trace)
      })?;
      edge.blobs.get(viewer.account, &keys, name).await
    }
  };
  opened.map_err(|error| failed(trace, &error))
}
