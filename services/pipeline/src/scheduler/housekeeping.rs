//! What is cleared away, once an hour; each by itself, so that one that fails keeps nothing else.

use async_trait::async_trait;
use pa_domain::Timestamp;

/// Clears away what has had its time.
#[async_trait]
pub trait Keeper: Send + Sync + 'static {
  /// Inputs older than they are kept, below what deciders need.
  async fn inputs(&self) -> anyhow::Result<u64>;
  /// Pieces of replies.
  async fn pieces(&self) -> anyhow::Result<u64>;
  /// Uploads that nobody attached in a day.
  async fn uploads(&self, now: Timestamp) -> anyhow::Result<u64>;
  /// Sessions and codes that have run out, and other litter of the edge.
  async fn tokens(&self) -> anyhow::Result<u64>;
}

/// Clears everything away.
pub(super) async fn clear(keeper: &dyn Keeper, now: Timestamp) {
  said("inputs", keeper.inputs().await);
  said("pieces", keeper.pieces().await);
  said("uploads", keeper.uploads(now).await);
  said("tokens", keeper.tokens().await);
}

fn said(what: &'static str, cleared: anyhow::Result<u64>) {
  match cleared {
    Ok(0) => {}
    Ok(count) => tracing::info!(what, count, "cleared away"),
    Err(error) => tracing::warn!(what, error = &*error as &dyn std::error::Error, "could not be cleared away"),
  }
}
