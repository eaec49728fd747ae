//! What the subscriptions of one agent read from the read model, read once for all of them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use pa_domain::AgentId;
use pa_projections::updates::{Changes, Update};
use pa_projections::{Error, system};
use pa_store::PgPool;
use parking_lot::Mutex;

use crate::limits::CATCH_UP_MAX;

/// The feeds of all agents that have a subscription.
#[derive(Default)]
pub(crate) struct Feeds {
  of: Mutex<HashMap<AgentId, Weak<Feed>>>,
  /// Agents that moved in one commit are read together.
  changes: Arc<Changes>,
}

/// One agent's feed.
pub(crate) struct Feed {
  agent: AgentId,
  changes: Arc<Changes>,
  /// The newest batch. Held while one reads, so that the others wait for the same answer.
  newest: tokio::sync::Mutex<Option<Arc<Batch>>>,
}

/// Changes with ordinals after `after` up to `ordinal`, in order.
#[derive(Debug)]
pub(crate) struct Batch {
  pub after: i64,
  pub ordinal: i64,
  pub changes: Vec<(i64, Update)>,
}

/// What a subscription at some ordinal gets.
#[derive(Debug)]
pub(crate) enum Step {
  /// The changes after its ordinal are those of the batch with a higher one.
  Changes(Arc<Batch>),
  /// It is too far behind; reading afresh brings it to this ordinal at least.
  Resync { ordinal: i64 },
}

impl Feeds {
  /// The agent's feed.
  pub(crate) fn of(&self, agent: AgentId) -> Arc<Feed> {
    let mut feeds = self.of.lock();
    if let Some(feed) = feeds.get(&agent).and_then(Weak::upgrade) {
      return feed;
    }
    // The moment of a new agent's first subscription is the moment to forget those that have none any more.
    feeds.retain(|_, feed| feed.strong_count() > 0);
    let feed = Arc::new(Feed { agent, changes: Arc::clone(&self.changes), newest: tokio::sync::Mutex::default() });
    feeds.insert(agent, Arc::downgrade(&feed));
    feed
  }
}

impl Feed {
  /// The changes after `after`, at least up to `known`, the newest ordinal that was heard of.
  pub(crate) async fn after(&self, reads: &PgPool, after: i64, known: i64) -> Result<Step, Error> {
    let mut newest = self.newest.lock().await;
    if let Some(batch) = newest.as_ref()
      && batch.after <= after
      && batch.ordinal >= known.max(after)
    {
      return Ok(Step::Changes(Arc::clone(batch)));
    }
    let limit = u32::try_from(CATCH_UP_MAX).expect("a small constant");
    let read = self.changes.after(reads, self.agent, after, limit).await?;
    if read.more {
      return Ok(Step::Resync { ordinal: system::progress(reads, self.agent).await? });
    }
    let batch = Arc::new(Batch { after, ordinal: read.upto, changes: read.changes });
    *newest = Some(Arc::clone(&batch));
    Ok(Step::Changes(batch))
  }
}
