//! What one GraphQL request carries: who asks, what it has read already, and how its errors look outside.
//!
//! Invariant: what a request has read once it does not read again, and nothing of it outlives the request.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_graphql::{Context, Error, ErrorExtensions, Result, ServerError, Value};
use pa_domain::account::Role;
use pa_projections::{accounts, settings, system};
use pa_store::Disposition;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::types::scalars::Position;
use crate::auth::Viewer;
use crate::edge::Edge;
use crate::http::trace::TraceId;
use crate::limits::DECISION_WITHIN;

const UNAVAILABLE: &str = "UNAVAILABLE";

/// A request's environment.
pub(crate) struct Env {
  pub edge: Edge,
  pub viewer: Viewer,
  pub trace: TraceId,
  stale: AtomicBool,
  settings: OnceCell<settings::Settings>,
  account: OnceCell<Option<accounts::Account>>,
  progress: OnceCell<i64>,
}

/// A failure of something that a request needs.
pub(crate) trait Failure: StdError {
  /// The same request may succeed a little later.
  fn passes(&self) -> bool;

  /// The agent's key is lost, which only a backup of the database mends.
  fn lacks_key(&self) -> bool {
    false
  }
}

impl Failure for pa_projections::Error {
  fn passes(&self) -> bool {
    self.disposition() == Disposition::Retry
  }
}

impl Failure for pa_store::Error {
  fn passes(&self) -> bool {
    self.disposition() != Disposition::Fail
  }
}

impl Failure for pa_eventlog::LogError {
  fn passes(&self) -> bool {
    matches!(self, Self::Away(_))
  }
}

/// A value in the request that can't be used.
pub(crate) fn invalid(message: String) -> Error {
  Error::new(message).extend_with(|_, extensions| extensions.set("code", "VALUE_INVALID"))
}

/// What was asked for can't be told; the code says why.
pub(crate) fn refused(code: &'static str, message: String) -> Error {
  Error::new(message).extend_with(|_, extensions| extensions.set("code", code))
}

/// Something is not there now, and nothing was accepted.
pub(crate) fn unavailable(message: &str) -> Error {
  Error::new(message).extend_with(|_, extensions| extensions.set("code", UNAVAILABLE))
}

/// Says whether an error is [`unavailable`]: the same request may succeed a moment later.
pub(crate) fn is_unavailable(error: &ServerError) -> bool {
  error.extensions.as_ref().and_then(|extensions| extensions.get("code")) == Some(&Value::from(UNAVAILABLE))
}

/// The log may have the request or not. Only the same request under the same key can tell.
pub(crate) fn unconfirmed() -> Error {
  Error::new("it is not known whether this was accepted; send it again with the same requestKey, which can't double it")
    .extend_with(|_, extensions| extensions.set("code", "UNCONFIRMED"))
}

impl Env {
  pub(crate) fn new(edge: Edge, viewer: Viewer, trace: TraceId) -> Arc<Self> {
    Arc::new(Self { edge, viewer, trace, stale: AtomicBool::new(false), settings: OnceCell::new(), account: OnceCell::new(), progress: OnceCell::new() })
  }

  /// The environment of the request that is being answered.
  pub(crate) fn of<'a>(context: &Context<'a>) -> &'a Arc<Self> {
    context.data_unchecked::<Arc<Self>>()
  }

  /// Logs a failure, once, and gives what the outside sees of it.
  #[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
  pub(crate) fn failed(&self, error: impl Failure + 'static) -> Error {
    let cause = &error as &dyn StdError;
    if error.passes() {
      tracing::warn!(trace.id = %self.trace, error = cause, "a request can't be answered now");
      return unavailable("the storage is away; try again");
    }
    if error.lacks_key() {
      tracing::error!(trace.id = %self.trace, agent.id = %self.viewer.account, error = cause, "an agent's key is lost: restore the database's backup");
      return Error::new("the key of this agent is lost: restore the database's backup").extend_with(|_, extensions| extensions.set("code", "KEY_LOST"));
    }
    tracing::error!(trace.id = %self.trace, error = cause, "a request failed");
    let trace = self.trace.to_string();
    Error::new("internal error").extend_with(|_, extensions| {
      extensions.set("code", "INTERNAL");
      extensions.set("traceId", trace.as_str());
    })
  }

  /// Waits until the read model has come as far as `wanted`, at most two seconds; what is read afterwards may be stale, and then the answer says so.
  pub(crate) async fn at_least(&self, wanted: Option<Position>) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    self.reached(wanted.ordinal, Instant::now() + DECISION_WITHIN).await?;
    Ok(())
  }

  /// Waits until the read model has come as far as an ordinal; marks the answer stale if it has not.
  pub(crate) async fn reached(&self, ordinal: i64, deadline: Instant) -> Result<bool> {
    let within = deadline.saturating_duration_since(Instant::now());
    let reached = self.edge.live.wait_for(&self.edge.reads, self.viewer.account, ordinal, within).await.map_err(|error| self.failed(error))?;
    if !reached {
      self.stale.store(true, Ordering::Relaxed);
    }
    Ok(reached)
  }

  /// The answer is older than it was asked to be.
  pub(crate) fn is_stale(&self) -> bool {
    self.stale.load(Ordering::Relaxed)
  }

  /// How far the read model has come. What the request reads after this has come at least as far.
  pub(crate) async fn position(&self) -> Result<Position> {
    let ordinal =
      self.progress.get_or_try_init(|| async { system::progress(&self.edge.reads, self.viewer.account).await.map_err(|error| self.failed(error)) }).await?;
    Ok(Position { ordinal: *ordinal, schema: Some(self.edge.schema_mark().to_owned()) })
  }

  /// The settings.
  pub(crate) async fn settings(&self) -> Result<settings::Settings> {
    let settings = self.settings.get_or_try_init(|| async {
      let row = settings::of(&self.edge.reads, self.viewer.account).await.map_err(|error| self.failed(error))?;
      row.ok_or_else(|| unavailable("this agent is not in the read model yet"))
    });
    Ok(settings.await?.clone())
  }

  /// The account, if the read model has it.
  pub(crate) async fn account(&self) -> Result<Option<accounts::Account>> {
    let account = self.account.get_or_try_init(|| async { accounts::one(&self.edge.reads, self.viewer.account).await.map_err(|error| self.failed(error)) });
    Ok(account.await?.clone())
  }

  /// The viewer runs the installation.
  pub(crate) async fn is_operator(&self) -> Result<bool> {
    Ok(self.account().await?.is_some_and(|account| matches!(account.role, Role::Owner | Role::Administrator)))
  }
}
