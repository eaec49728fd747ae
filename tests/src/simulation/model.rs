//! The read model of a simulation: the product's folds over the store in memory, projected by every process at once, which the position's guard makes harmless.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::AgentId;
use pa_eventlog::fence::FenceState;
use pa_eventlog::opener::Opener;
use pa_eventlog::reader::{self, Decision, Item, Reader};
use pa_eventlog::{EventLog, Partition};
use pa_projections::commit::MemoryStore;
use pa_projections::{Batch, Fact, Loaded, Mark, Outcome, ReadStore};
use parking_lot::Mutex;
use tokio::time::sleep;
use uuid::Uuid;

use super::gate::Gate;
use super::traps::{Moment, Traps};

/// The log's id in the read model; a simulation has one log.
const LOG: Uuid = Uuid::nil();
const AGAIN_AFTER: Duration = Duration::from_millis(300);

/// The read schema that stands; a log that was cut makes a new one.
#[derive(Clone)]
pub(super) struct ReadModel(Arc<Mutex<Arc<MemoryStore>>>);

impl ReadModel {
  pub(super) fn new() -> Self {
    Self(Arc::new(Mutex::new(Arc::new(empty()))))
  }

  pub(super) fn store(&self) -> Arc<MemoryStore> {
    Arc::clone(&self.0.lock())
  }

  /// How far a partition is projected.
  pub(super) async fn state(&self, partition: Partition) -> FenceState {
    let Mark { next_position, epoch, seq, last } = self.store().load(partition, LOG).await.expect("memory does not fail").mark;
    FenceState { next_position, epoch, seq, last }
  }

  /// Puts an empty schema in the place of `old`, unless somebody did already.
  fn rebuild(&self, old: &Arc<MemoryStore>) {
    let mut store = self.0.lock();
    if Arc::ptr_eq(&store, old) {
      *store = Arc::new(empty());
    }
  }
}

fn empty() -> MemoryStore {
  let store = MemoryStore::new();
  store.guard_cursor(pa_eventlog::guards::on(pa_eventlog::guards::Guard::Cursor));
  store
}

/// One process's projector of one partition.
pub(super) struct Projector {
  pub(super) log: Arc<dyn EventLog>,
  pub(super) opener: Arc<Opener>,
  pub(super) partition: Partition,
  pub(super) model: ReadModel,
  pub(super) gate: Gate,
  pub(super) traps: Traps,
}

impl Projector {
  pub(super) async fn run(self) {
    loop {
      let store = self.model.store();
      match self.follow(&store).await {
        // Somebody else was faster: go on from where it is now.
        Ok(()) => {}
        Err(reader::Error::Changed(_)) => self.model.rebuild(&store),
        Err(_) => sleep(AGAIN_AFTER).await,
      }
    }
  }

  async fn follow(&self, store: &Arc<MemoryStore>) -> Result<(), reader::Error> {
    let Loaded { mark, mut parked, .. } = store.load(self.partition, LOG).await.expect("memory does not fail");
    let mut at = mark;
    let mut reader = Reader::new(Arc::clone(&self.log), Arc::clone(&self.opener), self.partition, state_of(&at));
    loop {
      let items = reader.next().await?;
      let agents: BTreeSet<AgentId> = items.iter().filter_map(Item::decided).map(|head| head.agent).collect();
      let progress = ReadStore::progress(&**store, &agents.into_iter().collect::<Vec<_>>()).await.expect("memory does not fail");
      let mut batch = Batch::new(&parked).after(progress);
      for item in &items {
        project(&mut batch, self.partition, item);
      }
      let next = mark_of(reader.state());
      // The commit's way to the database and back: another projector may come between.
      tokio::time::sleep(Duration::from_millis(2)).await;
      self.traps.spring(Moment::Before, "commit");
      self.gate.pass().await;
      let outcome = store.commit(self.partition, &at, &next, &batch).await.expect("memory does not fail");
      self.traps.spring(Moment::After, "commit");
      self.gate.pass().await;
      if outcome == Outcome::Stale {
        return Ok(());
      }
      parked.clone_from(batch.skipped());
      at = next;
    }
  }
}

/// Folds one item into a batch, as the projector stage does.
pub(super) fn project(batch: &mut Batch, partition: Partition, item: &Item) {
  match item {
    Item::Decision(decision) => batch.add_decision(&facts(partition, decision)),
    Item::Erased(head) => batch.erase(head.agent),
    Item::Unreadable { head, reason, .. } => batch.park(partition, head.agent, head.ordinal, reason),
    Item::Announced(_) | Item::Void(_) => {}
  }
}

fn facts(partition: Partition, decision: &Decision) -> Vec<Fact<'_>> {
  decision.events.iter().map(|recorded| Fact { partition, position: recorded.position, meta: recorded.core(), event: &recorded.event }).collect()
}

fn state_of(mark: &Mark) -> FenceState {
  FenceState { next_position: mark.next_position, epoch: mark.epoch, seq: mark.seq, last: mark.last }
}

pub(super) fn mark_of(state: FenceState) -> Mark {
  Mark { next_position: state.next_position, epoch: state.epoch, seq: state.seq, last: state.last }
}
