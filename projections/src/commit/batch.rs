//! A batch: the rows of every projection after some decisions, merged.
//!
//! A decision is folded whole before any of it is merged, so a fold that fails leaves nothing of its decision behind. Whoever fails is parked: the agent's later
//! facts are skipped, in this batch and in all that follow, until its rows are built anew.
//!
//! An agent's events are folded one after the other, without a gap. Where an agent stands is in the tables alone: a batch says what it took for granted ([`Before`]), and
//! a commit writes nothing where that is not so.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pa_domain::{AgentId, Event, agent, log};

use super::{Argument, Fact, Parts, Projection};
use crate::system::{self, Parking};
use crate::{accounts, audit, conversation, indicator, outputs, pending_actions, queue, settings, task_entries, tasks, timers, usage};

/// What a batch finds of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
  /// It stands at this ordinal; 0 for none.
  At(i64),
  /// It is parked: the batch skips it.
  Parked,
}

/// What one fact changes, for each projection.
#[derive(Debug, Default)]
pub struct Folded {
  pub accounts: Vec<<accounts::Rows as Projection>::Change>,
  pub audit: Vec<<audit::Rows as Projection>::Change>,
  pub conversation: Vec<<conversation::Rows as Projection>::Change>,
  pub indicator: Vec<<indicator::Rows as Projection>::Change>,
  pub outputs: Vec<<outputs::Rows as Projection>::Change>,
  pub pending_actions: Vec<<pending_actions::Rows as Projection>::Change>,
  pub queue: Vec<<queue::Rows as Projection>::Change>,
  pub settings: Vec<<settings::Rows as Projection>::Change>,
  pub task_entries: Vec<<task_entries::Rows as Projection>::Change>,
  pub tasks: Vec<<tasks::Rows as Projection>::Change>,
  pub timers: Vec<<timers::Rows as Projection>::Change>,
  pub usage: Vec<<usage::Rows as Projection>::Change>,
}

/// Folds a fact for every projection. Pure.
pub fn fold(fact: &Fact<'_>) -> Folded {
  Folded {
    accounts: accounts::Rows::fold(fact),
    audit: audit::Rows::fold(fact),
    conversation: conversation::Rows::fold(fact),
    indicator: indicator::Rows::fold(fact),
    outputs: outputs::Rows::fold(fact),
    pending_actions: pending_actions::Rows::fold(fact),
    queue: queue::Rows::fold(fact),
    settings: settings::Rows::fold(fact),
    task_entries: task_entries::Rows::fold(fact),
    tasks: tasks::Rows::fold(fact),
    timers: timers::Rows::fold(fact),
    usage: usage::Rows::fold(fact),
  }
}

/// The rows of every projection as a batch of decisions changes them.
#[derive(Debug)]
pub struct Batch {
  fold: fn(&Fact<'_>) -> Folded,
  pub(crate) accounts: accounts::Rows,
  pub(crate) audit: audit::Rows,
  pub(crate) conversation: conversation::Rows,
  pub(crate) indicator: indicator::Rows,
  pub(crate) outputs: outputs::Rows,
  pub(crate) pending_actions: pending_actions::Rows,
  pub(crate) queue: queue::Rows,
  pub(crate) settings: settings::Rows,
  pub(crate) task_entries: task_entries::Rows,
  pub(crate) tasks: tasks::Rows,
  pub(crate) timers: timers::Rows,
  pub(crate) usage: usage::Rows,
  /// The newest ordinal of each agent that moved.
  progress: HashMap<AgentId, i64>,
  erased: BTreeSet<AgentId>,
  parked: BTreeMap<AgentId, Parking>,
  /// Parked before this batch or in it: the ordinal from which on facts are skipped.
  skipped: BTreeMap<AgentId, i64>,
  /// What the tables must hold of each agent that the batch meets, or its rows do not follow those that are there.
  before: BTreeMap<AgentId, Before>,
  /// Each agent's newest ordinal, when it was read beforehand.
  known: Option<BTreeMap<AgentId, i64>>,
  facts: usize,
}

impl Batch {
  /// An empty batch of a partition whose parked agents are `parked`.
  pub fn new(parked: &BTreeMap<AgentId, i64>) -> Self {
    Self::folding_with(fold, parked)
  }

  /// An empty batch that folds with another function, such as one that fails.
  pub fn folding_with(fold: fn(&Fact<'_>) -> Folded, parked: &BTreeMap<AgentId, i64>) -> Self {
    Self {
      fold,
      accounts: accounts::Rows::default(),
      audit: audit::Rows::default(),
      conversation: conversation::Rows::default(),
      indicator: indicator::Rows::default(),
      outputs: outputs::Rows::default(),
      pending_actions: pending_actions::Rows::default(),
      queue: queue::Rows::default(),
      settings: settings::Rows::default(),
      task_entries: task_entries::Rows::default(),
      tasks: tasks::Rows::default(),
      timers: timers::Rows::default(),
      usage: usage::Rows::default(),
      progress: HashMap::new(),
      erased: BTreeSet::new(),
      parked: BTreeMap::new(),
      skipped: parked.clone(),
      before: BTreeMap::new(),
      known: None,
      facts: 0,
    }
  }

  /// With each agent's newest ordinal as it was read (none: 0): whoever's events do not go on from there is parked. Without it the commit finds out, and writes nothing.
  #[must_use]
  pub fn after(mut self, progress: BTreeMap<AgentId, i64>) -> Self {
    self.known = Some(progress);
    self
  }

  /// Folds a whole decision in. All facts of a decision are of one agent.
  pub fn add_decision(&mut self, facts: &[Fact<'_>]) {
    let Some((first, last)) = facts.first().zip(facts.last()) else { return };
    let agent = first.meta.agent;
    if facts.iter().any(|fact| matches!(fact.event, Event::Agent(agent::Event::AgentErased(_)))) {
      return self.erase(agent);
    }
    if self.erased.contains(&agent) || self.skips(agent) {
      return;
    }
    let next = self.next(agent, first.meta.ordinal);
    if next == 1 && first.meta.ordinal > 1 && facts.iter().all(is_settled) {
      return;
    }
    if let Some((expected, fact)) = (next..).zip(facts).find(|(expected, fact)| *expected != fact.meta.ordinal) {
      return self.set_aside(first.partition, agent, next, broken(expected, fact.meta.ordinal));
    }
    let fold = self.fold;
    // The folds are pure and their results are thrown away after a panic, so nothing half-changed can be seen.
    match catch_unwind(AssertUnwindSafe(|| facts.iter().map(fold).collect::<Vec<_>>())) {
      Ok(folded) => {
        for (fact, folded) in facts.iter().zip(folded) {
          self.merge(fact, folded);
        }
        self.facts += facts.len();
        self.progress.insert(agent, last.meta.ordinal);
      }
      Err(panic) => self.park(first.partition, agent, first.meta.ordinal, &reason(panic.as_ref())),
    }
  }

  /// Parks an agent from `ordinal` on: its earlier facts count, later ones are skipped.
  pub fn park(&mut self, partition: u16, agent: AgentId, ordinal: i64, error: &str) {
    if self.erased.contains(&agent) || self.skips(agent) {
      return;
    }
    let next = self.next(agent, ordinal);
    let error = if next == ordinal { error.to_owned() } else { broken(next, ordinal) };
    self.set_aside(partition, agent, next, error);
  }

  /// Says whether an agent is parked, and notes what that was judged by.
  fn skips(&mut self, agent: AgentId) -> bool {
    let skips = self.skipped.contains_key(&agent);
    if skips {
      self.before.entry(agent).or_insert(Before::Parked);
    }
    skips
  }

  /// The ordinal that an agent's next event has. The first event that a batch meets of an agent is taken as it comes, here `found`, unless it is known where it stands.
  fn next(&mut self, agent: AgentId, found: i64) -> i64 {
    let stands = || self.known.as_ref().map_or(found - 1, |known| known.get(&agent).copied().unwrap_or(0));
    let before = self.progress.get(&agent).copied().unwrap_or_else(stands);
    self.before.entry(agent).or_insert(Before::At(before));
    before + 1
  }

  fn set_aside(&mut self, partition: u16, agent: AgentId, from: i64, error: String) {
    self.skipped.insert(agent, from);
    self.parked.insert(agent, Parking { partition, from, error });
  }

  /// Takes every row of an agent away, and that it was parked.
  pub fn erase(&mut self, agent: AgentId) {
    self.accounts.forget(agent);
    self.audit.forget(agent);
    self.conversation.forget(agent);
    self.indicator.forget(agent);
    self.outputs.forget(agent);
    self.pending_actions.forget(agent);
    self.queue.forget(agent);
    self.settings.forget(agent);
    self.task_entries.forget(agent);
    self.tasks.forget(agent);
    self.timers.forget(agent);
    self.usage.forget(agent);
    self.progress.remove(&agent);
    self.parked.remove(&agent);
    self.skipped.remove(&agent);
    self.before.remove(&agent);
    self.erased.insert(agent);
  }

  /// The newest ordinal of each agent that this batch moves.
  pub fn progress(&self) -> impl Iterator<Item = (AgentId, i64)> {
    self.progress.iter().map(|(agent, ordinal)| (*agent, *ordinal))
  }

  /// What the tables must hold of each agent that this batch meets.
  pub fn before(&self) -> impl Iterator<Item = (AgentId, Before)> {
    self.before.iter().map(|(agent, before)| (*agent, *before))
  }

  /// Agents whose facts are skipped from now on.
  pub fn skipped(&self) -> &BTreeMap<AgentId, i64> {
    &self.skipped
  }

  /// Agents that this batch parks.
  pub fn parked(&self) -> &BTreeMap<AgentId, Parking> {
    &self.parked
  }

  /// Agents that this batch erases.
  pub fn erased(&self) -> &BTreeSet<AgentId> {
    &self.erased
  }

  /// How many facts were folded in.
  pub fn facts(&self) -> usize {
    self.facts
  }

  /// Says whether jobs changed, so that workers may look for work.
  pub fn changes_queue(&self) -> bool {
    self.queue.offers_work()
  }

  /// Says whether timers changed.
  pub fn changes_timers(&self) -> bool {
    !self.timers.is_empty()
  }

  /// Every row, as parts of the statement that moves the partition.
  pub fn parts(&self) -> Parts<'_> {
    let mut parts = Parts::default();
    self.accounts.write(&mut parts);
    self.audit.write(&mut parts);
    self.conversation.write(&mut parts);
    self.indicator.write(&mut parts);
    self.outputs.write(&mut parts);
    self.pending_actions.write(&mut parts);
    self.queue.write(&mut parts);
    self.settings.write(&mut parts);
    self.task_entries.write(&mut parts);
    self.tasks.write(&mut parts);
    self.timers.write(&mut parts);
    self.usage.write(&mut parts);
    system::write::progress(&mut parts, &self.progress);
    system::write::parked(&mut parts, &self.parked);
    if !self.erased.is_empty() {
      let erased: Vec<_> = self.erased.iter().map(|agent| agent.0).collect();
      for text in crate::schema::ERASURES {
        parts.part(text, [Argument::Uuids(erased.clone())]);
      }
    }
    parts
  }

  fn merge(&mut self, fact: &Fact<'_>, folded: Folded) {
    let agent = fact.meta.agent;
    folded.accounts.into_iter().for_each(|change| self.accounts.merge(agent, change));
    folded.audit.into_iter().for_each(|change| self.audit.merge(agent, change));
    folded.conversation.into_iter().for_each(|change| self.conversation.merge(agent, change));
    folded.indicator.into_iter().for_each(|change| self.indicator.merge(agent, change));
    folded.outputs.into_iter().for_each(|change| self.outputs.merge(agent, change));
    folded.pending_actions.into_iter().for_each(|change| self.pending_actions.merge(agent, change));
    folded.queue.into_iter().for_each(|change| self.queue.merge(agent, change));
    folded.settings.into_iter().for_each(|change| self.settings.merge(agent, change));
    folded.task_entries.into_iter().for_each(|change| self.task_entries.merge(agent, change));
    folded.tasks.into_iter().for_each(|change| self.tasks.merge(agent, change));
    folded.timers.into_iter().for_each(|change| self.timers.merge(agent, change));
    folded.usage.into_iter().for_each(|change| self.usage.merge(agent, change));
  }
}

/// Whether a fact says no more than that an input had no effect. Between an erasure and the end of its keys an agent has no others, and leaves no row: without one and far from
/// its beginning it is taken for erased.
fn is_settled(fact: &Fact<'_>) -> bool {
  matches!(fact.event, Event::Log(log::Event::InputSettled(_)))
}

/// What the page shows beside an agent whose events do not follow each other.
fn broken(next: i64, found: i64) -> String {
  format!("the chain of events is broken: ordinal {next} expected, {found} found")
}

/// What a panic said; the page shows it beside the parked agent.
fn reason(panic: &(dyn std::any::Any + Send)) -> String {
  let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
  format!("the fold panicked: {}", said.unwrap_or("without a message"))
}
