//! Who waits for the decision on which input.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pa_domain::AgentId;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::reader::Decision;

/// Parts of the map with a lock each: registering and telling must not wait for each other.
const SHARDS: usize = 16;

struct Waiter {
  ticket: u64,
  agent: AgentId,
  sender: oneshot::Sender<Arc<Decision>>,
}

/// Waiters by input.
#[derive(Default)]
pub(super) struct Waiters {
  shards: [Mutex<HashMap<Uuid, Vec<Waiter>>>; SHARDS],
  tickets: AtomicU64,
}

impl Waiters {
  pub(super) fn expect(self: &Arc<Self>, agent: AgentId, input: Uuid) -> Expected {
    let (sender, receiver) = oneshot::channel();
    let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
    self.shard(input).lock().entry(input).or_default().push(Waiter { ticket, agent, sender });
    Expected { waiters: Arc::clone(self), input, ticket, receiver }
  }

  /// Whether somebody waits for the decision on an input.
  pub(super) fn waits(&self, input: Uuid) -> bool {
    self.shard(input).lock().contains_key(&input)
  }

  /// Hands a decision to who waits for it.
  pub(super) fn tell(&self, decision: &Arc<Decision>) {
    for waiter in self.taken(decision.cause) {
      if waiter.agent == decision.agent {
        // Who gave up meanwhile needs no decision.
        drop(waiter.sender.send(Arc::clone(decision)));
      }
    }
  }

  /// Ends the wait for a decision that nobody can read.
  pub(super) fn give_up(&self, input: Uuid) {
    drop(self.taken(input));
  }

  fn taken(&self, input: Uuid) -> Vec<Waiter> {
    self.shard(input).lock().remove(&input).unwrap_or_default()
  }

  fn forget(&self, input: Uuid, ticket: u64) {
    let mut shard = self.shard(input).lock();
    if let Some(waiters) = shard.get_mut(&input) {
      waiters.retain(|waiter| waiter.ticket != ticket);
      if waiters.is_empty() {
        shard.remove(&input);
      }
    }
  }

  fn shard(&self, input: Uuid) -> &Mutex<HashMap<Uuid, Vec<Waiter>>> {
    // The last byte of an id is random, the first ones are the time.
    &self.shards[usize::from(input.as_bytes()[15]) % SHARDS]
  }
}

/// A decision that was registered for; dropping it ends the wait.
pub struct Expected {
  waiters: Arc<Waiters>,
  input: Uuid,
  ticket: u64,
  receiver: oneshot::Receiver<Arc<Decision>>,
}

impl Expected {
  /// The decision, if it is read back in time. `None` also when it was read back and can't be opened.
  pub async fn within(mut self, time: Duration) -> Option<Arc<Decision>> {
    tokio::time::timeout(time, self.decided()).await.ok().flatten()
  }

  /// Waits for the decision; `None` when it was read back and can't be opened. Cancel-safe until it has answered.
  pub async fn decided(&mut self) -> Option<Arc<Decision>> {
    (&mut self.receiver).await.ok()
  }
}

impl Drop for Expected {
  fn drop(&mut self) {
    self.waiters.forget(self.input, self.ticket);
  }
}
