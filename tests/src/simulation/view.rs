//! What a process knows of its agents' things: its own fold of the accepted log, for its workers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::conversation::Reply;
use pa_domain::{AgentId, JobId, Root, State, Thing, ThingId, evolve};
use pa_eventlog::fence::FenceState;
use pa_eventlog::meta::partition_of;
use pa_eventlog::opener::Opener;
use pa_eventlog::reader::{Decision, Item, Reader};
use pa_eventlog::{EventLog, Partition, Position};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::world::PARTITIONS;

/// Longer than this a worker does not wait for what it was told of; it looks again.
const REACHED_WITHIN: Duration = Duration::from_secs(5);

/// Things by agent, as folded from the log.
#[derive(Default)]
pub(super) struct Folded {
  pub(super) roots: HashMap<AgentId, Root>,
  pub(super) things: HashMap<(AgentId, ThingId), (Thing, i64)>,
}

impl Folded {
  pub(super) fn fold(&mut self, decision: &Decision) {
    for recorded in decision.events.iter() {
      let (meta, event) = (recorded.core(), &recorded.event);
      let root = std::mem::take(self.roots.entry(decision.agent).or_default());
      let id = event.thing();
      let thing = id.and_then(|id| self.things.remove(&(decision.agent, id))).map_or(Thing::Absent, |(thing, _)| thing);
      let folded = evolve(State { root, thing }, meta, event);
      self.roots.insert(decision.agent, folded.root);
      if let Some(id) = id {
        self.things.insert((decision.agent, id), (folded.thing, meta.ordinal));
      }
    }
  }
}

/// One process's fold of all partitions.
pub(super) struct View {
  folded: Mutex<Folded>,
  positions: watch::Sender<HashMap<Partition, Position>>,
}

impl View {
  pub(super) fn new() -> Arc<Self> {
    Arc::new(Self { folded: Mutex::default(), positions: watch::Sender::default() })
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
        self.positions.send_modify(|positions| {
          positions.insert(partition, reader.position());
        });
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
  }

  /// Waits until the fold is past a record, within bounds.
  pub(super) async fn reached(&self, partition: Partition, position: Position) {
    let mut positions = self.positions.subscribe();
    let past = positions.wait_for(|positions| positions.get(&partition).is_some_and(|next| *next > position));
    drop(timeout(REACHED_WITHIN, past).await);
  }

  /// A reply job with the ordinal of its last event.
  pub(super) fn reply(&self, agent: AgentId, job: JobId) -> Option<(Reply, i64)> {
    let folded = self.folded.lock();
    let (thing, ordinal) = folded.things.get(&(agent, ThingId::from(job)))?;
    Some((thing.reply()?.clone(), *ordinal))
  }

  pub(super) fn root(&self, agent: AgentId) -> Option<Root> {
    self.folded.lock().roots.get(&agent).cloned()
  }
}
