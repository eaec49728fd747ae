//! One subscriber: hears of an agent what it does not have yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::AgentId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::kept::Cursors;
use super::{Heard, Pieces};

/// Between two looks of one subscriber: more frames a second than a screen shows cost and show nothing. The first piece never waits.
const PACE: Duration = Duration::from_millis(20);

/// A subscription to one agent's pieces.
pub struct Subscription {
  pieces: Arc<Pieces>,
  agent: AgentId,
  changed: watch::Receiver<u64>,
  cursors: Cursors,
  ready: VecDeque<Heard>,
  /// When it last heard something.
  heard: Option<Instant>,
}

impl Subscription {
  pub(super) fn new(pieces: Arc<Pieces>, agent: AgentId, mut changed: watch::Receiver<u64>) -> Self {
    changed.mark_changed();
    Self { pieces, agent, changed, cursors: Cursors::default(), ready: VecDeque::new(), heard: None }
  }

  /// What comes next; `None` when the agent is gone. Cancel-safe.
  pub async fn next(&mut self) -> Option<Heard> {
    loop {
      if let Some(heard) = self.ready.pop_front() {
        return Some(heard);
      }
      self.changed.changed().await.ok()?;
      if let Some(heard) = self.heard {
        // Cancelled here, the change counts as seen: it is marked again until it was looked at.
        self.changed.mark_changed();
        sleep_until(heard + PACE).await;
      }
      self.look();
    }
  }

  fn look(&mut self) {
    self.changed.mark_unchanged();
    let shard = self.pieces.shard(self.agent).lock();
    let Some(agent) = shard.get(&self.agent) else { return };
    let (pieces, steps) = agent.kept.unheard(&mut self.cursors, None);
    drop(shard);
    self.ready.extend(pieces.into_iter().map(Heard::Piece));
    self.ready.extend(steps.into_iter().map(Heard::Step));
    if !self.ready.is_empty() {
      self.heard = Some(Instant::now());
    }
  }
}

impl Drop for Subscription {
  fn drop(&mut self) {
    let mut shard = self.pieces.shard(self.agent).lock();
    // This one is still counted.
    if shard.get(&self.agent).is_some_and(|agent| agent.kept.is_empty() && agent.changed.receiver_count() <= 1) {
      shard.remove(&self.agent);
    }
  }
}
