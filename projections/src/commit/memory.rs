//! The read model in memory, for the simulator: the same folds and merges as in Postgres, applied to maps. It keeps what the simulator checks: conversations, the
//! queue, timers and progress. Nobody rebuilds it behind its back, so it guards the position alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use pa_domain::{AgentId, ConversationId, Timestamp};
use parking_lot::Mutex;
use uuid::Uuid;

use super::{Batch, Loaded, Mark, Outcome, ReadStore};
use crate::Error;
use crate::conversation::{EntryWrite, NewEntry, Opened};
use crate::queue::{CallRow, CallWrite, JobRow, JobState, JobWrite};
use crate::timers::TimerRow;

/// A read model that lives as long as its value; a crash of a simulated process keeps it, as a database would.
#[derive(Debug, Default)]
pub struct MemoryStore {
  rows: Mutex<Rows>,
  unguarded: AtomicBool,
}

#[derive(Debug, Default)]
struct Rows {
  partitions: BTreeMap<u16, Loaded>,
  conversations: BTreeMap<(AgentId, Uuid), Opened>,
  entries: BTreeMap<(AgentId, Uuid), NewEntry>,
  jobs: BTreeMap<(AgentId, Uuid), JobRow>,
  calls: BTreeMap<(AgentId, Uuid), CallRow>,
  timers: BTreeMap<(AgentId, Uuid), TimerRow>,
  progress: BTreeMap<AgentId, i64>,
}

impl MemoryStore {
  /// An empty read model.
  pub fn new() -> Self {
    Self::default()
  }

  /// Switches the guard of the position off or on: without it a commit on another position than the expected one is written all the same.
  pub fn guard_cursor(&self, on: bool) {
    self.unguarded.store(!on, Ordering::Relaxed);
  }

  /// The entries of a conversation that are shown, in their order.
  pub fn entries(&self, agent: AgentId, conversation: ConversationId) -> Vec<NewEntry> {
    let rows = self.rows.lock();
    let mut entries: Vec<_> = of(&rows.entries, agent).filter(|row| row.conversation == Some(conversation) && row.shown && !row.removed).cloned().collect();
    entries.sort_by_key(|row| row.place);
    entries
  }

  /// Every entry of an agent, also those that are not shown.
  pub fn all_entries(&self, agent: AgentId) -> Vec<NewEntry> {
    of(&self.rows.lock().entries, agent).cloned().collect()
  }

  /// An agent's conversations.
  pub fn conversations(&self, agent: AgentId) -> Vec<Opened> {
    of(&self.rows.lock().conversations, agent).cloned().collect()
  }

  /// All jobs with their agents.
  pub fn jobs(&self) -> Vec<(AgentId, JobRow)> {
    self.rows.lock().jobs.iter().map(|((agent, _), row)| (*agent, row.clone())).collect()
  }

  /// Jobs that may be claimed, longest waiting first.
  pub fn candidates(&self) -> Vec<(AgentId, JobRow)> {
    let rows = self.rows.lock();
    let waits = |agent: AgentId, job: &JobRow| of(&rows.calls, agent).any(|call| call.job == job.id && call.class == pa_domain::call::Class::External);
    let mut jobs: Vec<_> = rows
      .jobs
      .iter()
      .filter(|((agent, _), row)| row.state == JobState::Claimable && row.turn && !waits(*agent, row))
      .map(|((agent, _), row)| (*agent, row.clone()))
      .collect();
    jobs.sort_by_key(|(agent, row)| (row.since, *agent, row.id));
    jobs
  }

  /// All open calls with their agents.
  pub fn calls(&self) -> Vec<(AgentId, CallRow)> {
    self.rows.lock().calls.iter().map(|((agent, _), row)| (*agent, row.clone())).collect()
  }

  /// Timers that are due at or before an instant, the earliest first.
  pub fn due(&self, at: Timestamp) -> Vec<(AgentId, TimerRow)> {
    let rows = self.rows.lock();
    let mut due: Vec<_> = rows.timers.iter().filter(|(_, row)| row.due <= at).map(|((agent, _), row)| (*agent, row.clone())).collect();
    due.sort_by_key(|(agent, row)| (row.due, *agent, row.id));
    due
  }

  /// The agent's newest ordinal; 0 for none.
  pub fn progress(&self, agent: AgentId) -> i64 {
    self.rows.lock().progress.get(&agent).copied().unwrap_or(0)
  }
}

#[async_trait]
impl ReadStore for MemoryStore {
  async fn load(&self, partition: u16, log: Uuid) -> Result<Loaded, Error> {
    let mut rows = self.rows.lock();
    Ok(rows.partitions.entry(partition).or_insert_with(|| Loaded { mark: Mark::default(), log, parked: BTreeMap::new() }).clone())
  }

  async fn commit(&self, partition: u16, expected: &Mark, next: &Mark, batch: &Batch) -> Result<Outcome, Error> {
    let mut rows = self.rows.lock();
    let Some(loaded) = rows.partitions.get_mut(&partition) else { return Ok(Outcome::Stale) };
    if loaded.mark != *expected && !self.unguarded.load(Ordering::Relaxed) {
      return Ok(Outcome::Stale);
    }
    loaded.mark = next.clone();
    for (agent, parking) in batch.parked() {
      loaded.parked.entry(*agent).or_insert(parking.from);
    }
    loaded.parked.retain(|agent, _| !batch.erased().contains(agent));
    batch.erased().iter().for_each(|agent| rows.erase(*agent));
    rows.apply(batch);
    Ok(Outcome::Committed)
  }

  async fn progress(&self, agents: &[AgentId]) -> Result<BTreeMap<AgentId, i64>, Error> {
    let rows = self.rows.lock();
    Ok(agents.iter().filter_map(|agent| Some((*agent, *rows.progress.get(agent)?))).collect())
  }

  async fn probe(&self, _batch: &Batch) -> Result<Option<String>, Error> {
    Ok(None)
  }
}

impl Rows {
  fn apply(&mut self, batch: &Batch) {
    self.conversation(batch);
    self.queue(batch);
    for (agent, id, row) in batch.timers.timers.iter() {
      match row {
        Some(row) => self.timers.insert((*agent, *id), row.clone()),
        None => self.timers.remove(&(*agent, *id)),
      };
    }
    self.progress.extend(batch.progress());
  }

  fn conversation(&mut self, batch: &Batch) {
    for (agent, id, row) in batch.conversation.opened.iter() {
      let opened = self.conversations.get(&(*agent, *id)).map_or(row.opened, |earlier| earlier.opened);
      self.conversations.insert((*agent, *id), Opened { opened, ..row.clone() });
    }
    for (agent, id, write) in batch.conversation.entries.iter() {
      let key = (*agent, *id);
      match write {
        EntryWrite::Enter(row) => self.enter(key, row),
        EntryWrite::Patch(patch) => {
          if let Some(row) = self.entries.get_mut(&key) {
            row.patch(patch.clone());
          }
        }
      }
    }
  }

  fn enter(&mut self, key: (AgentId, Uuid), row: &NewEntry) {
    if let Some(earlier) = self.entries.get_mut(&key) {
      return earlier.enter_again(row.clone());
    }
    self.entries.insert(key, row.clone());
  }

  fn queue(&mut self, batch: &Batch) {
    for (agent, id, write) in batch.queue.jobs.iter() {
      let key = (*agent, *id);
      match write {
        JobWrite::Put(row) => {
          self.jobs.insert(key, row.clone());
        }
        JobWrite::Patch(patch) => {
          if let Some(row) = self.jobs.get_mut(&key) {
            row.patch(*patch);
          }
        }
        JobWrite::Delete => {
          self.jobs.remove(&key);
        }
      }
    }
    for (agent, id, write) in batch.queue.calls.iter() {
      let key = (*agent, *id);
      match write {
        CallWrite::Put(row) => {
          self.calls.insert(key, row.as_ref().clone());
        }
        CallWrite::Unknown(changed) => {
          if let Some(row) = self.calls.get_mut(&key) {
            row.unknown = true;
            row.changed = *changed;
          }
        }
        CallWrite::Delete => {
          self.calls.remove(&key);
        }
      }
    }
  }

  fn erase(&mut self, agent: AgentId) {
    self.conversations.retain(|(of, _), _| *of != agent);
    self.entries.retain(|(of, _), _| *of != agent);
    self.jobs.retain(|(of, _), _| *of != agent);
    self.calls.retain(|(of, _), _| *of != agent);
    self.timers.retain(|(of, _), _| *of != agent);
    self.progress.remove(&agent);
  }
}

fn of<V>(rows: &BTreeMap<(AgentId, Uuid), V>, agent: AgentId) -> impl Iterator<Item = &V> {
  rows.range((agent, Uuid::nil())..=(agent, Uuid::max())).map(|(_, row)| row)
}
