//! The log's tail as one process reads it: every decision once, for whoever waits for one or follows all of them.
//!
//! One task a partition reads `pa.events`, fenced, from the end at start. Invariants:
//! - A decision is handed on when it was read back as accepted, never when it was appended.
//! - Who registers before its append misses no decision: the way to the end at start stops at the first record that somebody waits for.
//! - A tail that can't read on says so in its [`Status`] and tries again; it derives nothing from the log but the fence, so after a change of the log it begins anew.
//!
//! Next: `waiters.rs`, then `follow.rs`.

mod follow;
mod skip;
#[cfg(test)]
pub(crate) mod tests;
mod waiters;

use std::sync::Arc;

use pa_domain::AgentId;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::fence::FenceState;
use crate::opener::Opener;
use crate::port::EventLog;
use crate::reader::Decision;
use crate::record::Partition;
use follow::Follower;
use waiters::Waiters;

pub use waiters::Expected;

/// Decisions that a follower may be behind before it is told that it missed some. A decision is kept only until every follower has it.
const DECISIONS_KEPT: usize = 1_024;

/// How a partition's tail is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
  /// On its way to the end.
  Starting,
  /// At the end, handing on what comes.
  Following,
  /// The log or the keys can't be reached; it tries again.
  Away,
  /// It can't get past a record; it tries again, rarely.
  Stopped(String),
}

/// The log's tail in this process.
pub struct Tail {
  waiters: Arc<Waiters>,
  decisions: broadcast::Sender<Arc<Decision>>,
  statuses: Vec<watch::Receiver<Status>>,
}

impl Tail {
  /// Starts to read every partition from the state that somebody (decider or projector) saved for it: partition n from `states[n]`.
  pub fn start(log: &Arc<dyn EventLog>, opener: &Arc<Opener>, states: Vec<FenceState>, tasks: &TaskTracker, stop: &CancellationToken) -> Arc<Self> {
    let waiters = Arc::new(Waiters::default());
    let (decisions, _) = broadcast::channel(DECISIONS_KEPT);
    let mut statuses = Vec::with_capacity(states.len());
    for (partition, state) in (0..Partition::MAX).zip(states) {
      let (status, watched) = watch::channel(Status::Starting);
      statuses.push(watched);
      let follower =
        Follower { log: Arc::clone(log), opener: Arc::clone(opener), partition, waiters: Arc::clone(&waiters), decisions: decisions.clone(), status };
      let stop = stop.clone();
      tasks.spawn(async move {
        tokio::select! {
          biased;
          () = stop.cancelled() => {}
          () = follower.follow(state) => {}
        }
      });
    }
    Arc::new(Self { waiters, decisions, statuses })
  }

  /// Registers for the decision on an input. To miss nothing, register before the input is appended.
  pub fn expect(&self, agent: AgentId, input: Uuid) -> Expected {
    self.waiters.expect(agent, input)
  }

  /// Follows the decisions of all partitions from now on; who is too slow is told that it missed some.
  pub fn subscribe(&self) -> broadcast::Receiver<Arc<Decision>> {
    self.decisions.subscribe()
  }

  /// How each partition's tail is.
  pub fn statuses(&self) -> &[watch::Receiver<Status>] {
    &self.statuses
  }
}
