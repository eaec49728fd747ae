//! Who wants to know when the read model has moved, and how far each agent is.
//!
//! One [`Live`] for each process. Where the process projects, commits are told in memory; elsewhere `follow` learns of them from the database. Invariants:
//! - A signal comes after its commit, so whoever reads then sees it. The order for a subscription is: watch, read what there is, then wait.
//! - Ordinals that are told only grow; a signal may be missed by nobody, but several may arrive as one.
//! - Nothing here waits while it holds a connection.

mod follow;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::AgentId;
use parking_lot::Mutex;
use sqlx::PgPool;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

pub use follow::{follow, look};

use crate::{Error, system};

/// The channel on which commits are hinted to other processes.
pub(crate) const HINT_CHANNEL: &str = "pa_read_model";
/// How often a process that does not project looks by itself: hints can be lost.
pub const POLL: Duration = Duration::from_secs(1);
/// Commits that a slow receiver may be behind before it is told that it missed some.
const COMMITS_KEPT: usize = 256;
/// Agents whose newest ordinal is remembered; beyond it the memory begins anew, at the price of a read.
const KNOWN_MAX: usize = 20_000;

/// A batch that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
  pub partition: u16,
  /// Agents that moved, with their newest ordinal.
  pub agents: Vec<(AgentId, i64)>,
  /// Jobs changed: there may be work.
  pub queue: bool,
  /// Timers changed: the next one may be due earlier.
  pub timers: bool,
}

/// The signals of one process; a clone is the same one.
#[derive(Clone, Debug)]
pub struct Live {
  shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
  /// This process projects: the memory below is as new as the read model.
  projects: bool,
  agents: Mutex<Agents>,
  commits: broadcast::Sender<Arc<Committed>>,
}

#[derive(Debug, Default)]
struct Agents {
  known: HashMap<AgentId, i64>,
  watched: HashMap<AgentId, watch::Sender<i64>>,
}

impl Live {
  /// For a process that projects: commits come from [`Live::tell`].
  pub fn local() -> Self {
    Self::new(true)
  }

  /// For a process that does not: commits come from `follow`.
  pub fn remote() -> Self {
    Self::new(false)
  }

  fn new(projects: bool) -> Self {
    let (commits, _) = broadcast::channel(COMMITS_KEPT);
    Self { shared: Arc::new(Shared { projects, agents: Mutex::default(), commits }) }
  }

  /// Tells of a commit.
  pub fn tell(&self, committed: Committed) {
    {
      let mut agents = self.shared.agents.lock();
      for (agent, ordinal) in &committed.agents {
        agents.move_to(*agent, *ordinal);
      }
    }
    // Nobody listening is no failure.
    drop(self.shared.commits.send(Arc::new(committed)));
  }

  /// Forgets how far agents are: the read model was emptied, or its rows may be lost with its server.
  pub fn forget(&self) {
    self.shared.agents.lock().known.clear();
  }

  /// Every commit of this process from now on; a receiver that lags is told so and should look at everything.
  pub fn committed(&self) -> broadcast::Receiver<Arc<Committed>> {
    self.shared.commits.subscribe()
  }

  /// An agent's newest ordinal from now on. It begins at what is known here, which may be behind the read model.
  pub fn watch(&self, agent: AgentId) -> Watch {
    let mut agents = self.shared.agents.lock();
    let known = agents.known.get(&agent).copied().unwrap_or(0);
    let receiver = agents.watched.entry(agent).or_insert_with(|| watch::channel(known).0).subscribe();
    Watch { agent, receiver, shared: Arc::clone(&self.shared) }
  }

  /// Waits until the read model has an agent's events up to `ordinal`; false when it has not after `timeout`.
  pub async fn wait_for(&self, pool: &PgPool, agent: AgentId, ordinal: i64, timeout: Duration) -> Result<bool, Error> {
    let known = self.shared.agents.lock().known.get(&agent).copied();
    if known.is_some_and(|known| known >= ordinal) {
      return Ok(true);
    }
    let deadline = Instant::now() + timeout;
    let mut watch = self.watch(agent);
    // What this process projects itself is told after its commit: a read would find what is known already.
    let mut look = !(self.shared.projects && known.is_some());
    loop {
      if look {
        let there = system::progress(pool, agent).await?;
        self.learn(agent, there);
        if there >= ordinal {
          return Ok(true);
        }
      }
      look = true;
      // Whoever projects here will say so; nevertheless it looks again by itself, as after a rebuild by another process.
      let look_again = deadline.min(Instant::now() + POLL);
      while watch.ordinal() < ordinal {
        if tokio::time::timeout_at(look_again, watch.changed()).await.is_err() {
          break;
        }
      }
      if watch.ordinal() >= ordinal {
        return Ok(true);
      }
      if Instant::now() >= deadline {
        return Ok(false);
      }
    }
  }

  /// Agents that somebody watches.
  pub(crate) fn watched(&self) -> Vec<AgentId> {
    self.shared.agents.lock().watched.keys().copied().collect()
  }

  /// Takes in what a read of the database showed.
  pub(crate) fn learn(&self, agent: AgentId, ordinal: i64) {
    self.shared.agents.lock().move_to(agent, ordinal);
  }

  /// Says whether commits are told in this process.
  pub fn projects(&self) -> bool {
    self.shared.projects
  }
}

impl Agents {
  fn move_to(&mut self, agent: AgentId, ordinal: i64) {
    if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&agent) {
      self.known.clear();
    }
    let known = self.known.entry(agent).or_insert(0);
    *known = (*known).max(ordinal);
    if let Some(sender) = self.watched.get(&agent) {
      sender.send_if_modified(|seen| {
        let newer = ordinal > *seen;
        if newer {
          *seen = ordinal;
        }
        newer
      });
    }
  }
}

/// One agent's newest ordinal as it grows.
#[derive(Debug)]
pub struct Watch {
  agent: AgentId,
  receiver: watch::Receiver<i64>,
  shared: Arc<Shared>,
}

impl Watch {
  /// The newest ordinal that was told.
  pub fn ordinal(&self) -> i64 {
    *self.receiver.borrow()
  }

  /// Waits for a newer one.
  pub async fn changed(&mut self) -> i64 {
    if self.receiver.changed().await.is_err() {
      // The sender lives as long as anybody watches, and this one does.
      std::future::pending::<()>().await;
    }
    *self.receiver.borrow_and_update()
  }
}

impl Drop for Watch {
  fn drop(&mut self) {
    let mut agents = self.shared.agents.lock();
    // This one still counts.
    if agents.watched.get(&self.agent).is_some_and(|sender| sender.receiver_count() <= 1) {
      agents.watched.remove(&self.agent);
    }
  }
}
