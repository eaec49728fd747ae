//! A decider and a projector in a hundred lines: the rules decide, one batch a decision is committed. It has no terms, no checkpoint and no quarantine.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pa_domain::log::{EpochAnnounced, HeldInput, InputHeld};
use pa_domain::{AgentId, Event, Input, Meta, Origin, State, ThingId, decide, evolve, route, settle};
use pa_eventlog::appender::{Appender, Submission};
use pa_eventlog::compose::{Composer, Draft};
use pa_eventlog::meta::NO_HASH;
use pa_eventlog::opener::{Opened, Opener};
use pa_eventlog::{EventLog, Stream};
use pa_projections::commit::{Batch, Fact, Mark, PostgresStore, ReadStore};
use pa_projections::live::{Committed, Live};
use pa_store::clock::{Clock, SystemClock};
use pa_store::keys::KeyRing;
use tokio::sync::watch;
use uuid::Uuid;

/// What the harness switches.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one switch")]
pub(super) struct Switches {
  /// Inputs wait.
  pub undecided: bool,
  /// Decisions are not projected.
  pub unprojected: bool,
  /// Commits are not told.
  pub untold: bool,
  /// Inputs are held, as behind a quarantine.
  pub held: bool,
}

#[derive(Default)]
struct Agent {
  root: pa_domain::Root,
  things: BTreeMap<ThingId, pa_domain::Thing>,
  ordinal: i64,
  chain: [u8; 32],
}

pub(super) struct Decider {
  pub log: Arc<dyn EventLog>,
  pub opener: Arc<Opener>,
  pub appender: Appender,
  pub keys: KeyRing,
  pub store: PostgresStore,
  pub live: Live,
  pub switches: watch::Receiver<Switches>,
}

/// A decision's events at their positions, and the mark after them.
type Decided = (Vec<(i64, Meta, Event)>, Mark);

/// Everything of the one partition.
struct Run {
  decider: Decider,
  composer: Composer,
  agents: HashMap<AgentId, Agent>,
  keys: HashMap<(AgentId, Vec<u8>), (Uuid, Vec<u8>)>,
  seq: i64,
  mark: Mark,
  /// Decided and not projected yet.
  waiting: Vec<Decided>,
}

impl Decider {
  pub(super) async fn run(self) {
    let composer = Composer::new(true, "pa/test");
    let announced = EpochAnnounced { inputs_from: 0, base_epoch: 0, base_seq: 0, holder: Uuid::from_u128(9).into() };
    let announcement = composer.announcement(Uuid::from_u128(8), 1, SystemClock.now(), announced).unwrap();
    self.log.append(Stream::Events, 0, vec![announcement]).await.unwrap();
    let log_id = self.log.identity().await.unwrap().id;
    let mark = self.store.load(0, log_id).await.unwrap().mark;
    let mut run = Run { decider: self, composer, agents: HashMap::new(), keys: HashMap::new(), seq: 0, mark, waiting: Vec::new() };
    let mut next = 0;
    loop {
      run.project().await;
      if run.decider.switches.borrow().undecided {
        run.decider.switches.changed().await.unwrap();
        continue;
      }
      let batch = run.decider.log.read(Stream::Inputs, 0, next, 100).await.unwrap();
      for stored in batch.iter() {
        next = stored.position + 1;
        let Opened::Input(recorded) = run.decider.opener.input(stored).await.unwrap() else { panic!("an input of this test can be opened") };
        run.decide(stored.position, recorded.core(), &recorded.input).await;
        run.project().await;
      }
      if batch.is_empty() {
        tokio::select! {
          () = run.decider.log.wait(Stream::Inputs, 0, next) => {}
          changed = run.decider.switches.changed() => changed.unwrap(),
        }
      }
    }
  }
}

impl Run {
  async fn decide(&mut self, position: i64, meta: &Meta, input: &Input) {
    let events = self.events(meta, input);
    let agent = self.agents.entry(meta.agent).or_insert_with(|| Agent { chain: NO_HASH, ..Agent::default() });
    let keys = self.decider.keys.get_or_create(meta.agent).await.unwrap();
    let draft = Draft {
      input: meta,
      position,
      held: false,
      at: SystemClock.now(),
      epoch: 1,
      seq: self.seq + 1,
      ordinal: agent.ordinal,
      chain: agent.chain,
      first_index: 0,
      events: &events,
    };
    let composed = self.composer.decision(Some(&*keys), &draft, None).unwrap();
    agent.chain = composed.chain;
    let positions = self.decider.log.append(Stream::Events, 0, composed.records).await.unwrap();
    let mut facts = Vec::new();
    for ((meta, event), position) in composed.metas.iter().zip(&events).zip(&positions) {
      let thing_id = event.thing();
      let thing = thing_id.and_then(|id| agent.things.get(&id).cloned()).unwrap_or_default();
      let state = evolve(State { root: std::mem::take(&mut agent.root), thing }, &meta.core, event);
      agent.root = state.root;
      if let Some(id) = thing_id {
        agent.things.insert(id, state.thing);
      }
      agent.ordinal = meta.core.ordinal;
      facts.push((*position, meta.core.clone(), event.clone()));
    }
    self.seq += i64::try_from(events.len()).unwrap();
    let next = Mark { next_position: positions.last().unwrap() + 1, epoch: 1, seq: self.seq, last: [0; 32] };
    self.waiting.push((facts, next));
    self.routed(&composed.metas.iter().map(|meta| &meta.core).zip(&events).collect::<Vec<_>>()).await;
  }

  fn events(&mut self, meta: &Meta, input: &Input) -> Vec<Event> {
    if self.decider.switches.borrow().held {
      let held = HeldInput { position: 0, id: meta.id.into(), type_name: String::new(), meta: Vec::new(), value: Vec::new() };
      return vec![InputHeld { held }.into()];
    }
    if meta.key.len() == 64 {
      let (key, content) = meta.key.split_at(32);
      let known = self.keys.entry((meta.agent, key.to_vec())).or_insert_with(|| (meta.id, content.to_vec()));
      if known.1 != content {
        return vec![settle::refused("REQUEST_KEY_CONFLICT")];
      }
      if known.0 != meta.id {
        return vec![settle::repeated(known.0)];
      }
    }
    let agent = self.agents.entry(meta.agent).or_insert_with(|| Agent { chain: NO_HASH, ..Agent::default() });
    let thing = input.thing(meta.id).and_then(|id| agent.things.get(&id).cloned()).unwrap_or_default();
    decide(&agent.root, &thing, meta, input, SystemClock.now())
  }

  async fn routed(&self, events: &[(&Meta, &Event)]) {
    for (meta, event) in events {
      let Some(routed) = route(meta, event) else { continue };
      self.decider.keys.get_or_create(routed.agent).await.unwrap();
      let submission = Submission {
        agent: routed.agent,
        input: routed.input,
        producer: "decider",
        key: None,
        content: None,
        actor: "platform",
        origin: Origin::Platform,
        cause: Some(meta.id),
        correlation: None,
        traceparent: None,
      };
      self.decider.appender.submit(submission).await.unwrap();
    }
  }

  async fn project(&mut self) {
    if self.decider.switches.borrow().unprojected {
      return;
    }
    for (facts, next) in std::mem::take(&mut self.waiting) {
      let mut batch = Batch::new(&BTreeMap::new());
      let facts: Vec<Fact<'_>> = facts.iter().map(|(position, meta, event)| Fact { partition: 0, position: *position, meta, event }).collect();
      batch.add_decision(&facts);
      self.decider.store.commit(0, &self.mark, &next, &batch).await.unwrap();
      self.mark = next;
      if self.decider.switches.borrow().untold {
        continue;
      }
      let agents = batch.progress().collect();
      self.decider.live.tell(Committed { partition: 0, agents, queue: batch.changes_queue(), timers: batch.changes_timers() });
    }
  }
}
