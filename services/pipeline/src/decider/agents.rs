//! The agents of one partition as its decider holds them: roots, things and chains, folded from what was read back plus this term's own decisions.
//!
//! Everything here is derived. It is loaded from the checkpoint together with the checkpoint's position; any other position than the one that this term last loaded
//! or wrote ends the term (PR-01). A changed thing is not evicted before it was written.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pa_domain::limits::ROOT_BYTES_MAX;
use pa_domain::state::Life;
use pa_domain::{AgentId, Event, Meta, Root, State, Thing, ThingId, Timestamp, evolve};
use pa_eventlog::Position;
use pa_eventlog::reader::DecisionHead;
use pa_store::checkpoint::{Loaded, ROOT, ThingState};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::End;
use super::store::DeciderStore;

/// Agents of a partition kept in memory between checkpoints; the rest is loaded again when it has an input.
const AGENTS_KEPT: usize = 2_000;
/// Things kept so.
const THINGS_KEPT: usize = 8_000;

/// A root of so many entries can't come near its limit.
const ROOT_ENTRIES_UNMEASURED: usize = 600;

/// An agent's root with what the decider itself counts for it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Agent {
  pub(super) root: Root,
  /// The last event's number.
  pub(super) ordinal: i64,
  /// The chain's hash after the last event: the next one's `prevhash`.
  pub(super) chain: [u8; 32],
  pub(super) at: Timestamp,
  /// How often inputs that are still set aside were quarantined.
  pub(super) quarantined: BTreeMap<Uuid, i32>,
  /// Where the events stand that carry held inputs: ordinal to position.
  pub(super) held_at: BTreeMap<i64, i64>,
  /// What of its history is missing from all this.
  pub(super) damage: Option<Damage>,
}

impl Agent {
  /// Nothing is left but that it was erased, and where its events go on.
  fn become_a_tombstone(&mut self) {
    let Self { ordinal, chain, at, .. } = *self;
    *self = Self { root: Root { life: Life::Erased, ..Root::default() }, ordinal, chain, at, ..Self::default() };
  }

  /// Whether it was erased.
  pub(super) fn is_erased(&self) -> bool {
    self.root.life == Life::Erased
  }
}

/// A decision that is in the log and not in the state: the agent's inputs are set aside until the history is whole again. Others go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Damage {
  /// The event at this position can't be opened or decoded, although the key is there.
  Unreadable(i64),
  /// The decision that begins at this position can't be folded by this binary.
  Unfoldable(i64),
}

impl std::fmt::Display for Damage {
  fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    match self {
      Self::Unreadable(position) => write!(f, "the agent's event at {position} can't be read"),
      Self::Unfoldable(position) => write!(f, "the agent's decision at {position} can't be folded"),
    }
  }
}

pub(super) struct Agents {
  part: i16,
  store: Arc<dyn DeciderStore>,
  /// The checkpoint's position that everything here was loaded or written with.
  checkpoint: Option<i64>,
  agents: HashMap<AgentId, Agent>,
  things: HashMap<(AgentId, ThingId), Thing>,
  changed: HashSet<(AgentId, Uuid)>,
  whole: Whole,
}

/// The nil agent's root row holds what concerns the partition.
const PARTITION_ROW: AgentId = AgentId(Uuid::nil());

/// What a start has to know before any agent has an input.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Whole {
  /// Agents whose held inputs are being decided.
  draining: BTreeSet<AgentId>,
  /// Positions of events that lead to something elsewhere which is not done yet.
  owed: BTreeSet<Position>,
}

/// A decision that can't be folded; nothing changed.
pub(super) enum Unfoldable {
  Panicked(String),
  /// The root would grow past its limit.
  RootTooLarge,
}

impl Agents {
  pub(super) fn new(part: i16, store: Arc<dyn DeciderStore>, checkpoint: Option<i64>) -> Self {
    Self { part, store, checkpoint, agents: HashMap::new(), things: HashMap::new(), changed: HashSet::new(), whole: Whole::default() }
  }

  /// Loads what concerns the partition.
  pub(super) async fn load_partition(&mut self) -> Result<(), End> {
    let Loaded { next_position, things } = self.store.things(self.part, &[(PARTITION_ROW, ROOT)]).await?;
    if next_position != self.checkpoint {
      return Err(End::new_term("the checkpoint is another one than this term's"));
    }
    if let Some(row) = things.first() {
      self.whole = postcard::from_bytes(&row.state).map_err(|_| End::Fatal(anyhow::anyhow!("the stored partition row can't be read; drop the checkpoint")))?;
    }
    Ok(())
  }

  /// The position of the checkpoint that this stands on.
  pub(super) fn checkpoint(&self) -> Option<i64> {
    self.checkpoint
  }

  /// Makes sure that these agents and things are here, with one statement for what is not.
  pub(super) async fn load(&mut self, wanted: impl Iterator<Item = (AgentId, Option<ThingId>)>) -> Result<(), End> {
    let mut missing: Vec<(AgentId, Uuid)> = Vec::new();
    for (agent, thing) in wanted {
      if !self.agents.contains_key(&agent) && !missing.contains(&(agent, ROOT)) {
        missing.push((agent, ROOT));
      }
      if let Some(thing) = thing
        && !self.things.contains_key(&(agent, thing))
        && !missing.contains(&(agent, thing.0))
      {
        missing.push((agent, thing.0));
      }
    }
    if missing.is_empty() {
      return Ok(());
    }
    let Loaded { next_position, things } = self.store.things(self.part, &missing).await?;
    if next_position != self.checkpoint {
      return Err(End::new_term("the checkpoint is another one than this term's"));
    }
    for ThingState { agent, thing, state } in things {
      let unreadable = |_| End::Fatal(anyhow::anyhow!("the stored state of {agent}/{thing} can't be read; drop the checkpoint"));
      if thing == ROOT {
        self.agents.insert(agent, postcard::from_bytes(&state).map_err(unreadable)?);
      } else {
        self.things.insert((agent, ThingId(thing)), postcard::from_bytes(&state).map_err(unreadable)?);
      }
    }
    for (agent, thing) in missing {
      if thing == ROOT {
        self.agents.entry(agent).or_default();
      } else {
        self.things.entry((agent, ThingId(thing))).or_default();
      }
    }
    Ok(())
  }

  /// A thing that this very decision makes: it can't be in the checkpoint.
  pub(super) fn is_new(&mut self, agent: AgentId, thing: ThingId) {
    self.things.entry((agent, thing)).or_default();
  }

  /// An agent that was loaded.
  pub(super) fn agent(&self, agent: AgentId) -> &Agent {
    self.agents.get(&agent).expect("an agent is loaded before its inputs are decided")
  }

  /// A thing that was loaded, or nothing's state.
  pub(super) fn thing(&self, agent: AgentId, thing: Option<ThingId>) -> Thing {
    thing.and_then(|thing| self.things.get(&(agent, thing)).cloned()).unwrap_or_default()
  }

  /// Folds one decision's events into copies and, if the rules don't panic, keeps them. `chain` is the chain's hash after the last of them.
  pub(super) fn fold<'a>(&mut self, agent: AgentId, events: impl Iterator<Item = (&'a Meta, &'a Event)>, chain: [u8; 32]) -> Result<(), Unfoldable> {
    let mut entry = self.agent(agent).clone();
    let mut touched: HashMap<ThingId, Thing> = HashMap::new();
    let mut sets_aside = true;
    catch_unwind(AssertUnwindSafe(|| {
      for (meta, event) in events {
        sets_aside &= matches!(event, Event::Log(_));
        let thing_id = event.thing();
        let thing = match thing_id {
          Some(id) => touched.remove(&id).unwrap_or_else(|| self.thing(agent, thing_id)),
          None => Thing::Absent,
        };
        let folded = evolve(State { root: std::mem::take(&mut entry.root), thing }, meta, event);
        entry.root = folded.root;
        if let Some(id) = thing_id {
          touched.insert(id, folded.thing);
        }
        entry.ordinal = meta.ordinal;
        entry.at = meta.at;
        count_quarantines(&mut entry.quarantined, meta, event);
      }
    }))
    .map_err(|panic| Unfoldable::Panicked(panic_text(&*panic)))?;
    // What would make the root too large is set aside, so setting aside must always be possible.
    if !sets_aside && is_too_large(&entry.root) {
      return Err(Unfoldable::RootTooLarge);
    }
    entry.chain = chain;
    let erased = entry.is_erased();
    if erased {
      entry.become_a_tombstone();
    }
    let drains = pa_domain::log::next_to_drain(&entry.root).is_some();
    self.drains(agent, drains);
    self.agents.insert(agent, entry);
    self.changed.insert((agent, ROOT));
    if erased {
      self.things.retain(|(owner, _), _| *owner != agent);
      self.changed.retain(|(owner, thing)| *owner != agent || *thing == ROOT);
    } else {
      for (id, thing) in touched {
        self.changed.insert((agent, id.0));
        self.things.insert((agent, id), thing);
      }
    }
    Ok(())
  }

  /// Notes that a decision of a loaded agent is missing from its state. The first such one counts: what comes behind it is folded into a state that lacks it.
  pub(super) fn damage(&mut self, agent: AgentId, damage: Damage) {
    tracing::error!(agent.id = %agent, %damage, "an agent's inputs are set aside: its history is not whole");
    metrics::counter!("pa_decider_damaged_agents_total", "partition" => self.part.to_string()).increment(1);
    if let Some(entry) = self.agents.get_mut(&agent) {
      entry.damage.get_or_insert(damage);
      self.changed.insert((agent, ROOT));
    }
  }

  /// Goes past a decision of a loaded agent that was erased. What is left of it is its tombstone: a later input must not begin ordinals and chain anew.
  pub(super) fn bury(&mut self, decision: &DecisionHead, chain: [u8; 32]) {
    self.pass(decision, chain);
    self.entomb(decision.agent);
    if let Some(entry) = self.agents.get_mut(&decision.agent) {
      entry.at = entry.at.max(decision.at);
    }
  }

  /// Leaves nothing of a loaded agent but its tombstone: its keys are gone, also if the log has lost its erasure.
  pub(super) fn entomb(&mut self, agent: AgentId) {
    if let Some(entry) = self.agents.get_mut(&agent) {
      entry.become_a_tombstone();
      self.changed.insert((agent, ROOT));
    }
    self.drains(agent, false);
    self.things.retain(|(owner, _), _| *owner != agent);
    self.changed.retain(|(owner, thing)| *owner != agent || *thing == ROOT);
  }

  fn drains(&mut self, agent: AgentId, drains: bool) {
    let changed = if drains { self.whole.draining.insert(agent) } else { self.whole.draining.remove(&agent) };
    if changed {
      self.changed.insert((PARTITION_ROW, ROOT));
    }
  }

  /// The event at a position leads to something elsewhere.
  pub(super) fn owe(&mut self, position: Position) {
    if self.whole.owed.insert(position) {
      self.changed.insert((PARTITION_ROW, ROOT));
    }
  }

  /// What the event at a position leads to is done.
  pub(super) fn paid(&mut self, position: Position) {
    if self.whole.owed.remove(&position) {
      self.changed.insert((PARTITION_ROW, ROOT));
    }
  }

  /// The events that lead to something which is not done yet.
  pub(super) fn owed(&self) -> Vec<Position> {
    self.whole.owed.iter().copied().collect()
  }

  /// Goes past a decision of a loaded agent that is not folded: the next event is numbered and chained behind it all the same.
  pub(super) fn pass(&mut self, decision: &DecisionHead, chain: [u8; 32]) {
    if let Some(entry) = self.agents.get_mut(&decision.agent) {
      entry.ordinal += i64::from(decision.parts);
      entry.chain = chain;
      self.changed.insert((decision.agent, ROOT));
    }
  }

  /// Remembers where the event stands that carries a held input.
  pub(super) fn held_at(&mut self, agent: AgentId, ordinal: i64, position: i64) {
    if let Some(entry) = self.agents.get_mut(&agent) {
      let first_held = entry.root.quarantine.held.iter().map(|held| held.ordinal).min().unwrap_or(i64::MAX);
      entry.held_at = entry.held_at.split_off(&first_held);
      entry.held_at.insert(ordinal, position);
      self.changed.insert((agent, ROOT));
    }
  }

  /// Every change since the last checkpoint, as it is stored.
  pub(super) fn changes(&self) -> Result<Vec<ThingState>, End> {
    self
      .changed
      .iter()
      .map(|(agent, thing)| {
        let state = if *agent == PARTITION_ROW {
          postcard::to_stdvec(&self.whole)
        } else if *thing == ROOT {
          postcard::to_stdvec(self.agent(*agent))
        } else {
          postcard::to_stdvec(&self.thing(*agent, Some(ThingId(*thing))))
        };
        let state = state.map_err(|error| End::Fatal(anyhow::Error::new(error).context("encode a state for the checkpoint")))?;
        Ok(ThingState { agent: *agent, thing: *thing, state })
      })
      .collect()
  }

  /// The changes stand in the checkpoint at `position` now; what is not needed may go.
  pub(super) fn written(&mut self, position: i64) {
    self.checkpoint = Some(position);
    self.changed.clear();
    if self.things.len() > THINGS_KEPT {
      self.things.clear();
    }
    if self.agents.len() > AGENTS_KEPT {
      self.agents.clear();
      self.things.clear();
    }
  }

  /// Leaves an agent's held inputs alone in this term; the next one tries again.
  pub(super) fn drain_no_more(&mut self, agent: AgentId) {
    self.whole.draining.remove(&agent);
  }

  /// Agents whose held inputs are being decided, at most `max`, those behind `after` first.
  pub(super) fn draining(&self, after: Option<AgentId>, max: usize) -> Vec<AgentId> {
    let (before, behind): (Vec<AgentId>, Vec<AgentId>) = self.whole.draining.iter().partition(|agent| after.is_some_and(|after| **agent <= after));
    behind.into_iter().chain(before).take(max).collect()
  }
}

/// Measured exactly only when it could be near the limit: this runs for every decision.
fn is_too_large(root: &Root) -> bool {
  let open: usize = root.conversations.values().map(|conversation| conversation.open.len()).sum();
  let entries = open + root.conversations.len() + root.timers.len() + root.quarantine.held.len();
  entries > ROOT_ENTRIES_UNMEASURED && postcard::to_stdvec(root).map_or(usize::MAX, |bytes| bytes.len()) > ROOT_BYTES_MAX
}

fn count_quarantines(quarantined: &mut BTreeMap<Uuid, i32>, meta: &Meta, event: &Event) {
  if let Event::Log(pa_domain::log::Event::InputQuarantined(quarantine)) = event {
    *quarantined.entry(quarantine.held.id.0).or_default() += 1;
  } else if meta.held {
    quarantined.remove(&meta.cause);
  }
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
  let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
  text.unwrap_or_else(|| "panic".to_owned()).chars().take(500).collect()
}
