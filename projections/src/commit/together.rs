//! Small batches of several partitions in one transaction.
//!
//! While one statement is written, the batches of other partitions gather; whoever comes first after it writes all of them. So a quiet projector waits for nobody, and
//! under load one statement carries what eight would have carried. Invariants:
//! - Partitions have no agent in common, so no two batches of a group have a row in common.
//! - All of a group or nothing is written. A group that was not written is tried again one by one, so that a batch fails or goes stale for itself alone.
//! - A large batch goes alone: its statement is little beside its rows, and small ones need not wait for it.

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::statement::Parts;
use super::{Batch, Outcome, PostgresStore};
use crate::Error;
use crate::error::writing;
use crate::system::write::Move;

/// Facts of a batch that goes alone.
pub(super) const LARGE: usize = 200;
/// Facts of a group: what can be written in a few milliseconds.
const GROUP_FACTS_MAX: usize = 1_000;

/// A batch that waits to be written.
struct Waiting {
  moves: Move,
  parts: Parts<'static>,
  facts: usize,
  reply: oneshot::Sender<Result<Outcome, Error>>,
}

/// Who waits, and who writes.
#[derive(Default)]
pub(super) struct Together {
  waiting: Mutex<Vec<Waiting>>,
  writing: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for Together {
  fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    f.debug_struct("Together").field("waiting", &self.waiting.lock().len()).finish_non_exhaustive()
  }
}

impl Together {
  /// Writes a batch, alone or with others.
  pub(super) async fn commit(&self, store: &PostgresStore, moves: Move, batch: &Batch) -> Result<Outcome, Error> {
    let (reply, mut answer) = oneshot::channel();
    self.waiting.lock().push(Waiting { moves, parts: batch.parts().into_owned(), facts: batch.facts(), reply });
    // Whoever was woken by the same append gets here before the first one writes.
    tokio::task::yield_now().await;
    loop {
      tokio::select! {
        biased;
        // Whoever had taken the batch is gone, and what became of it is not known.
        answered = &mut answer => return answered.unwrap_or_else(|_| Err(writing("write a batch of the read model")(sqlx::Error::WorkerCrashed))),
        _writing = self.writing.lock() => store.write_group(self.take()).await,
      }
    }
  }

  /// The batches that waited longest, as many as one statement takes.
  fn take(&self) -> Vec<Waiting> {
    let mut waiting = self.waiting.lock();
    let mut facts = 0;
    let count = waiting.iter().take_while(|one| {
      let first = facts == 0;
      facts += one.facts.max(1);
      first || facts <= GROUP_FACTS_MAX
    });
    let count = count.count();
    waiting.drain(..count).collect()
  }
}

impl PostgresStore {
  async fn write_group(&self, group: Vec<Waiting>) {
    if group.is_empty() {
      return;
    }
    let group = match <[Waiting; 1]>::try_from(group) {
      Ok([alone]) => return self.write_alone(alone).await,
      Err(group) => group,
    };
    let mut parts = Parts::default();
    for one in &group {
      parts.append(one.parts.clone());
    }
    let moves: Vec<Move> = group.iter().map(|one| one.moves.clone()).collect();
    let written = self.write(&moves, parts).await;
    for one in group {
      match written {
        Ok(Outcome::Committed) => one.answer(Ok(Outcome::Committed)),
        // Whatever became of the group, each position tells what became of its batch.
        Ok(Outcome::Stale) | Err(_) => self.write_alone(one).await,
      }
    }
  }

  async fn write_alone(&self, mut one: Waiting) {
    let written = self.write(std::slice::from_ref(&one.moves), std::mem::take(&mut one.parts)).await;
    one.answer(written);
  }
}

impl Waiting {
  fn answer(self, written: Result<Outcome, Error>) {
    if self.reply.send(written).is_err() {
      tracing::debug!("who wanted a batch of the read model written went away");
    }
  }
}
