//! Everything that the edge is made of, shared by all requests.

use std::ops::Deref;
use std::sync::Arc;

use axum::http::HeaderValue;
use pa_blobs::Blobs;
use pa_domain::settings::Effort;
use pa_eventlog::EventLog;
use pa_eventlog::appender::Appender;
use pa_eventlog::opener::Opener;
use pa_eventlog::pieces::Pieces;
use pa_eventlog::tail::Tail;
use pa_projections::live::Live;
use pa_store::PgPool;
use pa_store::clock::{Clock, Ids};
use pa_store::keys::KeyRing;
use pa_store::ops::tokens::LookUps;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Places, Sessions, Sockets, Throttle};
use crate::graphql::{self, Schema};
use crate::http::body::Discarding;
use crate::http::headers::page_policy;
use crate::http::operations::{Metrics, Readiness};
use crate::limits::{MUTATIONS_MAX, PAST_READS_MAX, SOCKETS_MAX, UPLOADS_MAX};
use crate::updates::{Count, Feeds};

/// A model that the installation offers; the first one offered is its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedModel {
  pub name: String,
  /// Lowest first.
  pub efforts: Vec<Effort>,
  pub sees_pictures: bool,
  /// The built-in rehearsal model.
  pub rehearsal: bool,
}

/// What the edge is given.
pub struct Parts {
  /// Where the outside finds this process: [`crate::Config::places`] of the bound address.
  pub places: Places,
  /// Pool of the control tables (`pa_store::Role::Gateway`).
  pub pool: PgPool,
  /// Pool of the read model (`Database::read_pool`).
  pub reads: PgPool,
  /// The name of the read schema that `reads` reads.
  pub read_schema: String,
  pub log: Arc<dyn EventLog>,
  pub opener: Arc<Opener>,
  pub appender: Appender,
  pub tail: Arc<Tail>,
  pub pieces: Arc<Pieces>,
  pub live: Live,
  pub blobs: Blobs,
  pub keys: KeyRing,
  pub clock: Arc<dyn Clock>,
  pub ids: Arc<dyn Ids>,
  pub models: Vec<OfferedModel>,
  pub readiness: Readiness,
  pub metrics: Metrics,
  /// The product's version.
  pub version: &'static str,
  /// What runs on behind a request; the process waits for it when it stops.
  pub tasks: TaskTracker,
  /// Cancelled when the process begins to stop.
  pub shutdown: CancellationToken,
}

/// The edge's state; cloning shares it.
#[derive(Clone)]
pub(crate) struct Edge(Arc<Inner>);

pub(crate) struct Inner {
  parts: Parts,
  pub schema: Schema,
  pub page_policy: HeaderValue,
  pub throttle: Throttle,
  pub sessions: Sessions,
  pub tokens: LookUps,
  pub sockets: Sockets,
  pub feeds: Feeds,
  pub subscriptions: Count,
  pub mutations: Arc<Semaphore>,
  pub uploads: Arc<Semaphore>,
  pub past_reads: Arc<Semaphore>,
  pub socket_places: Arc<Semaphore>,
}

impl Edge {
  pub(crate) fn new(parts: Parts) -> Self {
    Self(Arc::new(Inner {
      page_policy: page_policy(&parts.places),
      schema: graphql::schema(),
      throttle: Throttle::default(),
      sessions: Sessions::default(),
      tokens: LookUps::default(),
      sockets: Sockets::default(),
      feeds: Feeds::default(),
      subscriptions: Count::default(),
      mutations: Arc::new(Semaphore::new(MUTATIONS_MAX)),
      uploads: Arc::new(Semaphore::new(UPLOADS_MAX)),
      past_reads: Arc::new(Semaphore::new(PAST_READS_MAX)),
      socket_places: Arc::new(Semaphore::new(SOCKETS_MAX)),
      parts,
    }))
  }

  /// Where refused bodies are taken in.
  pub(crate) fn discarding(&self) -> Discarding<'_> {
    Discarding { tasks: &self.tasks, stop: &self.shutdown }
  }

  /// The part of the read schema's name that stands in cursors.
  pub(crate) fn schema_mark(&self) -> &str {
    self.read_schema.strip_prefix("read_").unwrap_or(&self.read_schema)
  }
}

impl Deref for Edge {
  type Target = Inner;

  fn deref(&self) -> &Inner {
    &self.0
  }
}

impl Deref for Inner {
  type Target = Parts;

  fn deref(&self) -> &Parts {
    &self.parts
  }
}
