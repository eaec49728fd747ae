//! The share of the partitions that this process leads, so that several processes have about the same number.
//!
//! A share is the number of partitions by the number of processes that can lead, rounded up. Who has more gives partitions back cleanly, once that has been so for
//! a whole lease: a process that restarts, or is not seen for a moment, moves nothing. Who has its share leaves what was given back to the others for a while, but takes at once what
//! a dead process held. None of this is needed for safety, which the fence gives: it only says who asks first.

use std::collections::BTreeSet;
use std::sync::Arc;

use pa_eventlog::{Partition, Stream};
use pa_store::lease::{LEASE, RENEW_EVERY};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::term::{part, pause};

/// Of this process.
pub(super) struct Share {
  state: Mutex<State>,
}

struct State {
  held: BTreeSet<Partition>,
  /// What is being given back; it counts as given.
  giving: BTreeSet<Partition>,
  allowed: usize,
  /// Since when it holds more.
  over_since: Option<Instant>,
  /// The log answered when it was asked last.
  reaches_log: bool,
}

impl Share {
  /// A process that leads so many partitions until it hears of others.
  pub(super) fn whole(partitions: usize) -> Self {
    Self { state: Mutex::new(State { held: BTreeSet::new(), giving: BTreeSet::new(), allowed: partitions.max(1), over_since: None, reaches_log: true }) }
  }

  /// The partition is this process's.
  pub(super) fn hold(&self, partition: Partition) {
    let mut state = self.state.lock();
    if !state.giving.contains(&partition) {
      state.held.insert(partition);
    }
    state.weigh();
  }

  /// It is no longer.
  pub(super) fn release(&self, partition: Partition) {
    let mut state = self.state.lock();
    state.held.remove(&partition);
    state.giving.remove(&partition);
    state.weigh();
  }

  /// It has as many as it should have.
  pub(super) fn is_full(&self) -> bool {
    let state = self.state.lock();
    state.held.len() >= state.allowed
  }

  /// Whether this partition is one too many: it stays so until it is released.
  pub(super) fn gives(&self, partition: Partition) -> bool {
    let mut state = self.state.lock();
    if state.over_since.is_some_and(|since| since.elapsed() >= LEASE) && state.held.remove(&partition) {
      state.giving.insert(partition);
      state.weigh();
    }
    state.giving.contains(&partition)
  }

  /// A process that does not reach the log takes nothing that it could not lead.
  pub(super) fn reaches_log(&self) -> bool {
    self.state.lock().reaches_log
  }

  fn allow(&self, partitions: usize) {
    let mut state = self.state.lock();
    state.allowed = partitions.max(1);
    state.weigh();
  }

  fn says_log(&self, answers: bool) {
    self.state.lock().reaches_log = answers;
  }
}

impl State {
  fn weigh(&mut self) {
    let over = self.held.len() > self.allowed;
    self.over_since = over.then(|| self.over_since.unwrap_or_else(Instant::now));
  }
}

/// Keeps the share up to date until `stop`, if there is anybody to share with.
pub(super) async fn balance(parts: Parts, partitions: Vec<Partition>, share: Arc<Share>, stop: CancellationToken) {
  let mut asked = partitions.iter().copied().cycle();
  while !stop.is_cancelled() {
    // Another one each time, since they may lie on different brokers.
    let Some(partition) = asked.next() else { return };
    let answers = parts.log.end(Stream::Events, partition).await.is_ok();
    share.says_log(answers);
    if answers {
      match parts.store.can_lead().await {
        Ok(Some(processes)) => share.allow(partitions.len().div_ceil(processes)),
        Ok(None) => return,
        Err(error) => tracing::debug!(partition = part(partition), error = &error as &dyn std::error::Error, "could not say that this process can lead"),
      }
    }
    pause(RENEW_EVERY / 3, &stop).await;
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  #[tokio::test(start_paused = true)]
  async fn what_is_too_much_for_a_whole_lease_is_given_and_no_more() {
    let share = Share::whole(8);
    (0..8).for_each(|partition| share.hold(partition));
    assert!(share.is_full() && !share.gives(0));
    share.allow(3);
    tokio::time::advance(LEASE / 2).await;
    assert!(!share.gives(0), "it may be a restart");
    tokio::time::advance(LEASE).await;
    let given: Vec<Partition> = (0..8).filter(|partition| share.gives(*partition)).collect();
    assert_eq!(given, [0, 1, 2, 3, 4]);
    assert!(share.is_full());
    share.release(7);
    assert!(!share.is_full());
  }

  #[tokio::test(start_paused = true)]
  async fn one_that_is_not_seen_for_a_moment_moves_nothing() {
    let share = Share::whole(8);
    (0..8).for_each(|partition| share.hold(partition));
    share.allow(4);
    tokio::time::advance(LEASE / 2).await;
    share.allow(8);
    share.allow(4);
    tokio::time::advance(LEASE / 2).await;
    assert!((0..8).all(|partition| !share.gives(partition)));
  }
}
