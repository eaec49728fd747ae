//! The edge: page, GraphQL, files, sign-in, webhooks and operations over HTTP.
//!
//! Reads: the read model, `pa.events` (decisions, bodies for the audit)
//! Appends: `pa.inputs` (what clients ask for)
//! Effects: answers requests and subscriptions; stages uploads and enters attached ones as blobs; tokens of sign-in and sessions
//!
//! Only this crate knows HTTP-in and GraphQL. It decides nothing: a mutation is checked for its form, appended, and answered with the decision as read back; a query
//! reads the read model; a subscription reads it again after each commit. Invariants:
//! - Nobody sees another account's data: every read and write names the account of the credential.
//! - What was appended is never reported as not accepted, and what certainly was not is never reported as accepted.
//! - Memory is bounded however slow or hostile the other side is.
//!
//! [`Gateway::new`] takes its [`Parts`]; [`operations`] are the routes of a process without page, [`starting`] those of one
//! whose page is not there yet. Read next: `http/mod.rs`, then `graphql/mod.rs`.

mod auth;
mod config;
mod edge;
mod files;
mod graphql;
mod http;
mod limits;
mod requests;
mod socket;
#[cfg(test)]
mod tests;
mod updates;

use axum::Router;

pub use auth::Places;
pub use config::{Config, ConfigError};
pub use edge::{OfferedModel, Parts};
pub use http::{Metrics, Readiness, operations, serve, starting};

use edge::Edge;

/// The edge of one process.
#[derive(Clone)]
pub struct Gateway {
  edge: Edge,
}

impl Gateway {
  /// The edge made of its parts, within a runtime: until `shutdown` one of its tasks ends the sockets of credentials that were revoked.
  pub fn new(parts: Parts) -> Self {
    let edge = Edge::new(parts);
    edge.tasks.spawn(auth::watch::run(edge.clone()));
    Self { edge }
  }

  /// Every route, the operations among them.
  pub fn router(&self) -> Router {
    http::router(self.edge.clone())
  }

  /// The schema in GraphQL's own language: what `schemas/read_model.graphql` holds.
  pub fn sdl() -> String {
    graphql::sdl()
  }

  /// Subscriptions that are open now.
  pub fn open_subscriptions(&self) -> usize {
    self.edge.subscriptions.open()
  }
}
