//! HTTP: routes, what every answer carries, bodies within limits, the page's files, serving and stopping.
//!
//! Read next: [`router`].

pub(crate) mod answer;
mod assets;
pub(crate) mod body;
pub(crate) mod headers;
mod hooks;
pub(crate) mod operations;
mod rest;
mod serve;
pub(crate) mod trace;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{any, get, post};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use crate::auth::sign_in;
use crate::edge::Edge;
use crate::{files, graphql, socket};

pub use operations::{Metrics, Readiness, operations, starting};
pub use serve::serve;

/// Bytes from which on compressing saves a packet.
const COMPRESSED_FROM: u16 = 1_400;

/// Every route of the edge.
pub(crate) fn router(edge: Edge) -> Router {
  let operations = operations(edge.readiness.clone(), edge.metrics.clone());
  let compressed = Router::new()
    .route("/graphql", post(graphql::endpoint::post))
    .fallback(assets::page)
    .layer(CompressionLayer::new().compress_when(SizeAbove::new(COMPRESSED_FROM).and(NotForContentType::IMAGES)));
  // Not compressed: sockets compress nothing, files mostly are already, and the sign-in page is small.
  Router::new()
    .route("/graphql/ws", get(socket::upgrade))
    .route("/files", post(files::upload))
    .route("/files/{id}", get(files::serve))
    .route("/sign-in/{code}", get(sign_in::show).post(sign_in::enter))
    .route("/sign-out", post(sign_in::leave))
    .route("/sign-out/everywhere", post(sign_in::leave_everywhere))
    .route("/hooks/{channel}/{connection}", any(hooks::unknown))
    .merge(compressed)
    .with_state(edge)
    .merge(operations)
    .layer(from_fn(headers::protected))
    .layer(from_fn(trace::traced))
}
