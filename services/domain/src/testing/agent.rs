//! An agent in memory: its root, its things, and the log that made them.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Decided, inputs};
use crate::conversation::Reply;
use crate::event::{Event, Input};
use crate::ids::{AgentId, ThingId, Timestamp, derived};
use crate::meta::{Kind, Meta, Origin};
use crate::provenance::origin_of;
use crate::state::{Root, State, Thing};
use crate::task::{self, Task};
use crate::{call, conversation, decide, evolve, route};

/// The instant at which every test begins: 2026-01-01T00:00:00Z.
const BEGINNING: Timestamp = Timestamp(1_767_225_600_000);

/// The id of a test's input number `number`.
pub fn input_id(number: u64) -> Uuid {
  Uuid::from_u128((0x019b_0000_0000_7000_8000_u128 << 48) | u128::from(number))
}

/// An agent with these events behind it, each a decision of its own.
pub fn given(events: impl IntoIterator<Item = Event>) -> TestAgent {
  let mut agent = TestAgent::absent();
  for event in events {
    let meta = agent.input_meta(Origin::Platform);
    agent.apply(&meta, &[event]);
  }
  agent
}

/// An agent in memory.
#[derive(Clone, Debug)]
pub struct TestAgent {
  pub agent: AgentId,
  pub root: Root,
  pub things: BTreeMap<ThingId, Thing>,
  /// Every event so far, with its metadata.
  pub log: Vec<(Meta, Event)>,
  /// The decider's clock.
  pub now: Timestamp,
  inputs: u64,
  /// How much of the log has led to what it leads to.
  routed: usize,
}

impl TestAgent {
  /// An agent that doesn't exist yet.
  pub fn absent() -> Self {
    Self::of(AgentId(Uuid::from_u128(0xa6e0_0000_0000_4000_8000_0000_0000_0001)))
  }

  /// Nothing yet, under this id.
  pub fn of(agent: AgentId) -> Self {
    Self { agent, root: Root::default(), things: BTreeMap::new(), log: Vec::new(), now: BEGINNING, inputs: 0, routed: 0 }
  }

  /// An agent that exists, with its main conversation; its account's name is `Ada`.
  pub fn alive() -> Self {
    let mut agent = Self::absent();
    agent.when(inputs::create("Ada")).then_types(&["AgentCreated", "ConversationOpened", "SettingsChanged"]);
    agent
  }

  /// Decides on an input of the origin that it usually has, and folds the decision.
  pub fn when(&mut self, input: impl Into<Input>) -> Decided {
    let input = input.into();
    self.when_from(usual_origin(&input), input)
  }

  /// Decides on an input of this origin, and folds the decision.
  pub fn when_from(&mut self, origin: Origin, input: impl Into<Input>) -> Decided {
    let meta = self.input_meta(origin);
    let input = input.into();
    let events = self.decide(&meta, &input);
    self.apply(&meta, &events);
    Decided { input: meta.id, events }
  }

  /// What would be decided, without folding it.
  pub fn decide(&self, meta: &Meta, input: &Input) -> Vec<Event> {
    let thing = input.thing(meta.id).map(|id| self.thing(id)).unwrap_or_default();
    decide(&self.root, &thing, meta, input, self.at())
  }

  /// Folds a decision on the input with metadata `input`.
  pub fn apply(&mut self, input: &Meta, events: &[Event]) {
    self.apply_at((i64::try_from(self.inputs).expect("tests have few inputs"), false), input, events);
  }

  /// Folds a decision whose records stand at `place`: the position of its input, and whether that had been held.
  pub fn apply_at(&mut self, place: (i64, bool), input: &Meta, events: &[Event]) {
    let at = self.at();
    for (index, event) in (0_u32..).zip(events) {
      let meta = Meta {
        id: derived(input.id, index),
        kind: Kind::Event,
        ordinal: self.ordinal() + 1,
        at,
        cause: input.id,
        correlation: input.id,
        origin: origin_of(input, event),
        input: place.0,
        held: place.1,
        part: i32::try_from(index + 1).expect("a decision has at most 64 events"),
        ..input.clone()
      };
      self.fold(&meta, event);
      self.log.push((meta, event.clone()));
    }
  }

  /// The metadata of the next input.
  pub fn input_meta(&mut self, origin: Origin) -> Meta {
    self.inputs += 1;
    let id = input_id(self.inputs);
    Meta {
      id,
      kind: Kind::Input,
      agent: self.agent,
      ordinal: 0,
      at: self.now,
      cause: Uuid::nil(),
      correlation: id,
      actor: "test".to_owned(),
      origin,
      producer: String::new(),
      key: Vec::new(),
      input: 0,
      held: false,
      part: 0,
    }
  }

  /// A task's state.
  pub fn task(&self, task: impl Into<ThingId>) -> Task {
    self.thing(task).task().expect("the task is known").clone()
  }

  /// Decides on everything that the log leads to and was not decided on yet, as the decider's process does; gives what was decided.
  pub fn carry_on(&mut self) -> Vec<Decided> {
    std::iter::from_fn(|| self.carry_on_once()).collect()
  }

  /// Decides on the next thing that the log leads to, if there is one.
  pub fn carry_on_once(&mut self) -> Option<Decided> {
    while let Some((meta, event)) = self.log.get(self.routed).cloned() {
      self.routed += 1;
      if let Some(routed) = route(&meta, &event).filter(|routed| routed.agent == self.agent) {
        return Some(self.when_from(Origin::Platform, routed.input));
      }
    }
    None
  }

  /// The ordinal of the last event.
  pub fn ordinal(&self) -> i64 {
    self.log.last().map_or(0, |(meta, _)| meta.ordinal)
  }

  /// A thing's state.
  pub fn thing(&self, id: impl Into<ThingId>) -> Thing {
    self.things.get(&id.into()).cloned().unwrap_or_default()
  }

  /// A reply job's state.
  pub fn reply(&self, job: impl Into<ThingId>) -> Reply {
    self.thing(job).reply().expect("the job is known").clone()
  }

  /// The same agent, folded anew from its log.
  #[must_use]
  pub fn replayed(&self) -> Self {
    let mut agent = Self { root: Root::default(), things: BTreeMap::new(), log: Vec::new(), ..self.clone() };
    for (meta, event) in &self.log {
      agent.fold(meta, event);
      agent.log.push((meta.clone(), event.clone()));
    }
    agent
  }

  fn at(&self) -> Timestamp {
    self.log.last().map_or(self.now, |(meta, _)| meta.at.max(self.now))
  }

  fn fold(&mut self, meta: &Meta, event: &Event) {
    let id = event.thing();
    let thing = id.and_then(|id| self.things.remove(&id)).unwrap_or_default();
    let state = evolve(State { root: std::mem::take(&mut self.root), thing }, meta, event);
    self.root = state.root;
    if let Some(id) = id {
      self.things.insert(id, state.thing);
    }
  }
}

/// Who usually sends such an input.
fn usual_origin(input: &Input) -> Origin {
  match input {
    Input::Account(_) | Input::Agent(_) | Input::Log(_) | Input::Timer(_) | Input::Conversation(conversation::Input::ResultReported(_)) => Origin::Platform,
    Input::Task(input) => of_task(input),
    Input::Conversation(conversation::Input::MessageReceived(received)) if received.author == conversation::Author::Person => Origin::ThirdParty,
    Input::Settings(_) | Input::Conversation(_) | Input::Call(call::Input::CallReconcileGiven(_)) => Origin::Owner,
    Input::Execution(_) => Origin::Agent,
    Input::Call(_) => Origin::Tool,
  }
}

fn of_task(input: &task::Input) -> Origin {
  let (order, is_workers) = match input {
    task::Input::TaskStartAsked(asked) => (asked.order, false),
    task::Input::InstructionGiven(given) => (given.order, false),
    task::Input::TaskPauseAsked(asked) => (asked.order, false),
    task::Input::TaskResumeAsked(asked) => (asked.order, false),
    task::Input::TaskStopAsked(asked) => (asked.order, false),
    task::Input::ActionDecisionGiven(_) => (None, false),
    task::Input::CheckpointAsked(_)
    | task::Input::DeliveryAsked(_)
    | task::Input::OutputLoopReported(_)
    | task::Input::DesktopBusyReported(_)
    | task::Input::DesktopFreedReported(_) => (None, true),
  };
  match (order, is_workers) {
    (Some(_), _) => Origin::Platform,
    (None, true) => Origin::Agent,
    (None, false) => Origin::Owner,
  }
}
