//! The traces of the model check by name, on the product's code (`PR-..`): [`decider`] and [`cuts`] for the log and its decider, [`quarantine`] for inputs that are
//! set aside, [`work`] for executions and calls, [`told`] for what readers make of all that.
//!
//! A trace answers with what the oracle says, so that [`super::mutants`] can run it with a guard off and must be told that something is wrong. What is not here is
//! proven where it lives: PR-07, PR-08, PR-11, PR-14 by the log's readers, PR-18 by the suite that every engine passes.

pub(super) mod cuts;
pub(super) mod decider;
mod quarantine;
pub(super) mod told;
pub(super) mod work;

use std::sync::Arc;
use std::time::Duration;

use pa_domain::testing::inputs;
use pa_domain::{AgentId, Event, Input, log};
use pa_eventlog::{Position, Stored, Stream};
use pa_pipeline::decider::Status;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::time::{Instant, sleep};

use super::chaos::Kinds;
use super::client::{Resolved, request, resolve_at};
use super::oracle::{self, Accepted};
use super::process::{Process, Roles};
use super::world::{World, agent_in};

/// What must happen happens within this time.
const PATIENCE: Duration = Duration::from_mins(5);

/// A small world: node 0 answers people and does nothing else, the others are what a trace wants.
struct Stage {
  world: Arc<World>,
  edge: Arc<Process>,
  agent: AgentId,
  said: u64,
}

impl Stage {
  /// A world whose nodes beyond the first have these roles; only the first runs, and the agent is not there yet.
  async fn new(roles: &[Roles]) -> Self {
    let nodes: Vec<Roles> = std::iter::once(Roles::EDGE).chain(roles.iter().copied()).collect();
    let world = World::calm(&nodes);
    let edge = world.start(0).await;
    Self { world, edge, agent: agent_in(0), said: 0 }
  }

  /// A world in which node 1 leads and the agent exists.
  async fn led_by_the_first(roles: &[Roles]) -> Self {
    let stage = Self::new(roles).await;
    stage.world.start(1).await;
    stage.leads(1).await;
    stage.world.create(&mut StdRng::seed_from_u64(1), stage.agent).await;
    stage
  }

  fn process(&self, node: usize) -> Arc<Process> {
    self.world.process(node).expect("the node runs")
  }

  /// Asks until it is decided.
  async fn ask(&self, key: &str, input: Input) -> Resolved {
    resolve_at(&self.world, &self.edge, &request(self.agent, key, input)).await
  }

  /// The owner writes something new, and waits for its decision.
  async fn say(&mut self, text: &str) -> Resolved {
    self.said += 1;
    self.ask(&format!("said-{}", self.said), inputs::message(text)).await
  }

  /// Appends a message and does not wait.
  async fn leave(&mut self, text: &str) -> Position {
    self.said += 1;
    let request = request(self.agent, format!("left-{}", self.said), inputs::message(text));
    self.edge.append(&request).await.expect("the log takes it")
  }

  /// Waits until something is so.
  async fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
      assert!(Instant::now() < deadline, "it never came about that {what}");
      sleep(Duration::from_millis(20)).await;
    }
  }

  /// Waits until a node leads the partition of the agent; in which epoch.
  async fn leads(&self, node: usize) -> i64 {
    self.until("the node leads", || epoch_of(&self.process(node)).is_some()).await;
    epoch_of(&self.process(node)).expect("it just did")
  }

  /// Every trap of a process that still runs has sprung: a trace that did not happen proves nothing.
  fn nothing_is_set(&self) -> Result<(), String> {
    let mut processes = (0..self.world.nodes()).filter_map(|node| self.world.process(node));
    if processes.all(|process| process.traps.is_empty()) { Ok(()) } else { Err("a trap was never sprung".to_owned()) }
  }

  fn events(&self) -> Vec<Arc<Stored>> {
    self.world.shared.log.records(Stream::Events, 0)
  }

  fn inputs(&self) -> Vec<Arc<Stored>> {
    self.world.shared.log.records(Stream::Inputs, 0)
  }

  /// The events of the partition, a line each, for reading a trace.
  fn story(&self) -> String {
    let line = |stored: &Arc<Stored>| {
      let meta = stored.meta().expect("own records");
      let (place, core) = (&meta.place, &meta.core);
      format!(
        "{} {}/{} part {}/{} input {} {} {}",
        stored.position, place.epoch, place.seq, place.part, place.parts, place.input, stored.record.type_name, core.cause
      )
    };
    self.events().iter().map(line).collect::<Vec<_>>().join("\n")
  }

  async fn accepted(&self) -> Result<Accepted, String> {
    Accepted::read(&self.world.shared, 0).await
  }

  /// Waits until the decider has written all down, and hears the oracle on log, checkpoint and people.
  async fn judge(&self, kinds: Kinds) -> Result<Accepted, String> {
    let mut before = None;
    let deadline = Instant::now() + PATIENCE;
    while before != Some((self.inputs().len(), self.events().len())) {
      if Instant::now() >= deadline {
        return Err(format!("it does not come to rest: {before:?}"));
      }
      before = Some((self.inputs().len(), self.events().len()));
      sleep(Duration::from_secs(12)).await;
    }
    self.nothing_is_set()?;
    oracle::judge_log(&self.world, kinds).await.map_err(|problem| format!("{problem}\n{}", self.story()))?;
    self.accepted().await
  }
}

fn epoch_of(process: &Process) -> Option<i64> {
  let status = process.statuses.iter().find(|(partition, _)| *partition == 0).map(|(_, status)| status.borrow().clone());
  match status {
    Some(Status::Leading(epoch)) => Some(epoch),
    _ => None,
  }
}

/// Everything the log accepts that decides something new for the agent, as type names, with repeats and holds left out.
fn texts(accepted: &Accepted) -> Vec<String> {
  let events = accepted.decisions().flat_map(|decision| decision.events.iter());
  let text = |event: &Event| match event {
    Event::Conversation(pa_domain::conversation::Event::MessageAdmitted(admitted)) => Some(admitted.text.clone()),
    _ => None,
  };
  events.filter_map(|recorded| text(&recorded.event)).collect()
}

/// How many inputs were settled as repeats.
fn repeats(accepted: &Accepted) -> usize {
  let is_repeat = |event: &Event| matches!(event, Event::Log(log::Event::InputSettled(settled)) if settled.outcome == log::Settlement::Repeated);
  accepted.decisions().flat_map(|decision| decision.events.iter()).filter(|recorded| is_repeat(&recorded.event)).count()
}

/// A log that keeps its word.
const CALM: Kinds = Kinds { cuts: false, restores: false, clocks: false, quarantines: false };
/// A log that loses what it acknowledged.
const CUT: Kinds = Kinds { cuts: true, ..CALM };
