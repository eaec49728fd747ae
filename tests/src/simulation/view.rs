//! What a process knows of its agents' things: its own fold of the accepted log, for its workers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::{AgentId, JobId, Root, State, Thing, ThingId, evolve};
use pa_eventlog::fence::FenceState;
use pa_eventlog::meta::partition_of;
use pa_eventlog::opener::Opener;
use pa_eventlog::reader::{Decision, Item, Reader, Recorded};
use pa_eventlog::{EventLog, Partition};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::world::PARTITIONS;

/// Things by agent, as folded from the log.
#[derive(Default)]
pub(super) struct Folded {
  pub(super) roots: HashMap<AgentId, Root>,
  pub(super) things: HashMap<(AgentId, ThingId), Thing>,
  ordinals: HashMap<AgentId, i64>,
  records: HashMap<(AgentId, ThingId), Vec<Arc<Recorded>>>,
}

impl Folded {
  pub(super) fn fold(&mut self, decision: &Decision) {
    for recorded in decision.events.iter() {
      let (meta, event) = (recorded.core(), &recorded.event);
      let root = std::mem::take(self.roots.entry(decision.agent).or_default());
      let id = event.thing();
      let thing = id.and_then(|id| self.things.remove(&(decision.agent, id))).unwrap_or_default();
      let folded = evolve(State { root, thing }, meta, event);
      self.roots.insert(decision.agent, folded.root);
      if let Some(id) = id {
        self.things.insert((decision.agent, id), folded.thing);
        self.records.entry((decision.agent, id)).or_default().push(Arc::clone(recorded));
      }
    }
    self.ordinals.insert(decision.agent, decision.last_ordinal());
  }
}

/// One process's fold of all partitions.
pub(super) struct View {
  folded: Mutex<Folded>,
  moved: Notify,
}

impl View {
  pub(super) fn new() -> Arc<Self> {
    Arc::new(Self { folded: Mutex::default(), moved: Notify::new() })
  }

  pub(super) async fn follow(self: Arc<Self>, log: Arc<dyn EventLog>, opener: Arc<Opener>, partition: Partition) {
    loop {
      let mut reader = Reader::new(Arc::clone(&log), Arc::clone(&opener), partition, FenceState::START);
      while let Ok(items) = reader.next().await {
        for item in items {
          if let Item::Decision(decision) = item {
            self.folded.lock().fold(&decision);
          }
        }
        self.moved.notify_waiters();
      }
      // The log went away or was cut: everything anew, from nothing.
      self.forget(partition);
      sleep(Duration::from_millis(300)).await;
    }
  }

  fn forget(&self, partition: Partition) {
    let elsewhere = |agent: &AgentId| partition_of(*agent, PARTITIONS) != partition;
    let mut folded = self.folded.lock();
    folded.roots.retain(|agent, _| elsewhere(agent));
    folded.things.retain(|(agent, _), _| elsewhere(agent));
    folded.ordinals.retain(|agent, _| elsewhere(agent));
    folded.records.retain(|(agent, _), _| elsewhere(agent));
  }

  /// Waits until an agent is folded up to an ordinal; whether it is in time.
  pub(super) async fn reached(&self, agent: AgentId, ordinal: i64, within: Duration) -> bool {
    let reached = async {
      loop {
        let moved = self.moved.notified();
        if self.folded.lock().ordinals.get(&agent).is_some_and(|at| *at >= ordinal) {
          return;
        }
        moved.await;
      }
    };
    timeout(within, reached).await.is_ok()
  }

  /// The events about a job, in order.
  pub(super) fn record(&self, agent: AgentId, job: JobId) -> Vec<Arc<Recorded>> {
    self.folded.lock().records.get(&(agent, ThingId::from(job))).cloned().unwrap_or_default()
  }

  pub(super) fn root(&self, agent: AgentId) -> Option<Root> {
    self.folded.lock().roots.get(&agent).cloned()
  }
}
