//! One partition: read what is there, fold it, commit it.
//!
//! It holds no truth: after any failure it is opened again from the position that the store has. The simulator drives it step by step over a store in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use pa_domain::AgentId;
use pa_eventlog::fence::FenceState;
use pa_eventlog::opener::Opener;
use pa_eventlog::reader::{Decision, DecisionHead, Item, Reader};
use pa_eventlog::{EventLog, Partition, Stream};
use pa_projections::live::Committed;
use pa_projections::{Batch, Error as ModelError, Fact, Mark, Outcome, ReadStore};
use tracing::Instrument as _;

use super::Error;

/// Records of one batch at most: small enough to be committed in some milliseconds, large enough that the statement is the lesser part of it.
pub const BATCH_RECORDS: usize = 500;
/// The same where nobody waits: a schema that is being built.
pub const BUILD_RECORDS: usize = 2_000;

/// What a step did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
  /// There was nothing to read.
  Idle,
  Committed(Committed),
  /// Somebody else moved the partition; the next step goes on from there.
  Stale,
}

/// Projects one partition into a store.
pub struct PartitionProjector<S> {
  log: Arc<dyn EventLog>,
  opener: Arc<Opener>,
  store: Arc<S>,
  partition: Partition,
  records_max: usize,
  /// Only this agent's facts count: its rows are being built anew.
  only: Option<AgentId>,
  reader: Reader,
  mark: Mark,
  parked: BTreeMap<AgentId, i64>,
  /// Erased agents whose rows are known to be gone.
  erased: BTreeSet<AgentId>,
  /// The last batch was not written, so the next one asks first where its agents stand.
  doubtful: bool,
  facts: u64,
}

impl<S: ReadStore> PartitionProjector<S> {
  /// Opens a partition at the position that the store has.
  ///
  /// # Errors
  /// [`Error::OtherLog`] when the store was filled from another log.
  pub async fn open(log: Arc<dyn EventLog>, opener: Arc<Opener>, store: Arc<S>, partition: Partition) -> Result<Self, Error> {
    let reader = Reader::new(Arc::clone(&log), Arc::clone(&opener), partition, FenceState::START);
    let mut projector = Self {
      log,
      opener,
      store,
      partition,
      records_max: BATCH_RECORDS,
      only: None,
      reader,
      mark: Mark::default(),
      parked: BTreeMap::new(),
      erased: BTreeSet::new(),
      doubtful: false,
      facts: 0,
    };
    projector.load().await?;
    Ok(projector)
  }

  /// Reads more at once, for a schema that is being built.
  #[must_use]
  pub fn for_building(mut self, only: Option<AgentId>) -> Self {
    self.records_max = BUILD_RECORDS;
    self.only = only;
    self.reader = self.reader.with_records_max(BUILD_RECORDS);
    self
  }

  /// Where the partition stands.
  pub fn mark(&self) -> &Mark {
    &self.mark
  }

  /// Facts that were folded since it was opened.
  pub fn facts(&self) -> u64 {
    self.facts
  }

  /// Returns when there may be something to read; it can be cancelled.
  pub async fn wait(&self) {
    self.log.wait(Stream::Events, self.partition, self.reader.position()).await;
  }

  /// Reads what is there, folds and commits it. Must not be cancelled; after a failure the projector must be opened again.
  ///
  /// # Errors
  /// [`Error::trouble`] says what to do.
  pub async fn step(&mut self) -> Result<Step, Error> {
    let items = self.reader.poll().await?;
    let next = mark_of(&self.reader.state());
    if items.is_empty() && next == self.mark {
      return Ok(Step::Idle);
    }
    let span = tracing::info_span!("project", partition = self.partition, from = self.mark.next_position, to = next.next_position);
    self.commit(&items, next).instrument(span).await
  }

  async fn commit(&mut self, items: &[Item], next: Mark) -> Result<Step, Error> {
    let begun = Instant::now();
    let progress = if self.doubtful { Some(self.progress(items).await?) } else { None };
    let mut batch = self.fold(items, progress.as_ref(), &BTreeMap::new());
    pa_store::fail_point!("projector.before_commit");
    let outcome = match self.store.commit(self.partition, &self.mark, &next, &batch).await {
      Err(ModelError::Refused(_)) => {
        let refused = self.refused(items).await?;
        batch = self.fold(items, progress.as_ref(), &refused);
        self.store.commit(self.partition, &self.mark, &next, &batch).await?
      }
      outcome => outcome?,
    };
    pa_store::fail_point!("projector.after_commit");
    if outcome == Outcome::Stale {
      self.load().await?;
      self.doubtful = true;
      return Ok(Step::Stale);
    }
    for (agent, parking) in batch.parked() {
      tracing::error!(agent.id = %agent, from = parking.from, error = %parking.error, "an agent's read model stands still");
    }
    self.measure(&batch, begun);
    self.facts += batch.facts() as u64;
    self.mark = next;
    self.doubtful = false;
    self.parked.clone_from(batch.skipped());
    self.erased.extend(batch.erased());
    let agents = batch.progress().collect();
    Ok(Step::Committed(Committed { partition: self.partition, agents, queue: batch.changes_queue(), timers: batch.changes_timers() }))
  }

  /// Folds what was read. Agents in `refused` are parked at the decision with that ordinal.
  fn fold(&self, items: &[Item], progress: Option<&BTreeMap<AgentId, i64>>, refused: &BTreeMap<AgentId, (i64, String)>) -> Batch {
    let mut batch = Batch::new(&self.parked);
    if let Some(progress) = progress {
      batch = batch.after(progress.clone());
    }
    for item in items {
      let Some(head) = item.decided().filter(|head| self.counts(head)) else { continue };
      if let Some((_, error)) = refused.get(&head.agent).filter(|(ordinal, _)| *ordinal == head.ordinal) {
        batch.park(self.partition, head.agent, head.ordinal, error);
      }
      match item {
        Item::Decision(decision) => self.add(&mut batch, decision),
        Item::Erased(_) => batch.erase(head.agent),
        Item::Unreadable { position, reason, .. } => {
          batch.park(self.partition, head.agent, head.ordinal, &format!("the record at {position} can't be read: {reason}"));
        }
        Item::Announced(_) | Item::Void(_) => {}
      }
    }
    batch
  }

  /// Where the agents of what was read stand, by the tables.
  async fn progress(&self, items: &[Item]) -> Result<BTreeMap<AgentId, i64>, Error> {
    let agents: BTreeSet<_> = items.iter().filter_map(Item::decided).map(|head| head.agent).collect();
    Ok(self.store.progress(&agents.into_iter().collect::<Vec<_>>()).await?)
  }

  fn counts(&self, head: &DecisionHead) -> bool {
    self.only.is_none_or(|only| only == head.agent) && !self.erased.contains(&head.agent)
  }

  fn add(&self, batch: &mut Batch, decision: &Decision) {
    let facts: Vec<Fact<'_>> = decision
      .events
      .iter()
      .map(|recorded| {
        let meta = recorded.core();
        tracing::debug!(event.id = %meta.id, event.type = recorded.event.type_name(), agent.id = %meta.agent, ordinal = meta.ordinal, stage = "projector", "fold");
        Fact { partition: self.partition, position: recorded.position, meta, event: &recorded.event }
      })
      .collect();
    batch.add_decision(&facts);
  }

  /// Finds the agents whose rows the database refuses, each with the ordinal of the first decision that it refuses.
  async fn refused(&self, items: &[Item]) -> Result<BTreeMap<AgentId, (i64, String)>, Error> {
    let mut of_agents: BTreeMap<AgentId, Vec<&Arc<Decision>>> = BTreeMap::new();
    for item in items {
      if let Item::Decision(decision) = item
        && self.counts(decision)
      {
        of_agents.entry(decision.agent).or_default().push(decision);
      }
    }
    let mut refused = BTreeMap::new();
    for (agent, decisions) in of_agents {
      let Some(mut error) = self.probe(&decisions).await? else { continue };
      // The first `taken` decisions are taken, the first `not` are not.
      let (mut taken, mut not) = (0, decisions.len());
      while taken + 1 < not {
        let half = usize::midpoint(taken, not);
        match self.probe(&decisions[..half]).await? {
          None => taken = half,
          Some(said) => (not, error) = (half, said),
        }
      }
      refused.insert(agent, (decisions[not - 1].ordinal, error));
    }
    Ok(refused)
  }

  async fn probe(&self, decisions: &[&Arc<Decision>]) -> Result<Option<String>, Error> {
    let mut batch = Batch::new(&self.parked);
    for decision in decisions {
      self.add(&mut batch, decision);
    }
    Ok(self.store.probe(&batch).await?)
  }

  /// Goes to the position that the store has.
  async fn load(&mut self) -> Result<(), Error> {
    let log = self.log.identity().await?.id;
    let loaded = self.store.load(self.partition, log).await?;
    if loaded.log != log {
      return Err(Error::OtherLog { partition: self.partition, folded_from: loaded.log, log });
    }
    let Mark { next_position, epoch, seq, last } = loaded.mark;
    let state = FenceState { next_position, epoch, seq, last };
    self.reader = Reader::new(Arc::clone(&self.log), Arc::clone(&self.opener), self.partition, state).with_records_max(self.records_max);
    self.mark = loaded.mark;
    self.parked = loaded.parked;
    self.erased.clear();
    Ok(())
  }

  fn measure(&self, batch: &Batch, begun: Instant) {
    let partition = self.partition.to_string();
    metrics::counter!("pa_projector_facts_total", "partition" => partition.clone()).increment(batch.facts() as u64);
    metrics::counter!("pa_projector_parked_total", "partition" => partition.clone()).increment(batch.parked().len() as u64);
    metrics::histogram!("pa_projector_batch_facts").record(u32::try_from(batch.facts()).unwrap_or(u32::MAX));
    metrics::histogram!("pa_projector_commit_seconds").record(begun.elapsed().as_secs_f64());
  }
}

/// The fence's state as the read model keeps it.
pub fn mark_of(state: &FenceState) -> Mark {
  let FenceState { next_position, epoch, seq, last } = *state;
  Mark { next_position, epoch, seq, last }
}
