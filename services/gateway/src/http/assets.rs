//! The page: the files that the build of services/web left, inside the program.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::answer::Refusal;
use crate::edge::Edge;

#[derive(RustEmbed)]
#[folder = "../web/dist"]
struct Page;

/// Names under this folder carry a hash of their content, so they never change.
const HASHED: &str = "assets/";
const INDEX: &str = "index.html";

/// Answers with a file of the page, or for any path that isn't a file with the page itself, which knows its own routes.
pub(crate) async fn page(State(edge): State<Edge>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
  if method != Method::GET && method != Method::HEAD {
    return StatusCode::METHOD_NOT_ALLOWED.into_response();
  }
  let path = uri.path().trim_start_matches('/');
  let is_file = path.rsplit('/').next().is_some_and(|name| name.contains('.'));
  let (name, file) = match Page::get(path) {
    Some(file) if !path.is_empty() => (path, file),
    _ if is_file || path.starts_with(HASHED) => return Refusal::NotFound("no such file").into_response(),
    _ => match Page::get(INDEX) {
      Some(file) => (INDEX, file),
      None => return Refusal::NotFound("the page was not built into this program").into_response(),
    },
  };
  served(name, file, &headers, &edge.page_policy)
}

fn served(name: &str, file: EmbeddedFile, headers: &HeaderMap, policy: &HeaderValue) -> Response {
  let etag = HeaderValue::try_from(format!("\"{}\"", hex::encode(&file.metadata.sha256_hash()[..16]))).expect("hex letters");
  let caching = if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
  let mut response = if headers.get(header::IF_NONE_MATCH) == Some(&etag) {
    StatusCode::NOT_MODIFIED.into_response()
  } else {
    let kind = HeaderValue::try_from(media_type(file.metadata.mimetype())).unwrap_or(HeaderValue::from_static("application/octet-stream"));
    ([(header::CONTENT_TYPE, kind)], axum::body::Body::from(file.data)).into_response()
  };
  let answered = response.headers_mut();
  answered.insert(header::ETAG, etag);
  answered.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
  answered.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
  response
}

fn media_type(guessed: &str) -> String {
  if guessed.starts_with("text/") { format!("{guessed}; charset=utf-8") } else { guessed.to_owned() }
}
