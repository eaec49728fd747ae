//! Those who use the product: owners who write, stop, retry and change settings, and platforms that bring messages. Whoever gets no answer asks again under the
//! same key, of any process that answers.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::call::Class;
use pa_domain::conversation;
use pa_domain::event::message_of;
use pa_domain::ids::{INSTALLATION, derived};
use pa_domain::log::{InputSettled, Settlement};
use pa_domain::testing::inputs;
use pa_domain::{AgentId, ConversationId, Event, Input, JobId, Origin, Timestamp, settings};
use pa_eventlog::appender::Prepared;
use pa_eventlog::reader::Decision;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::process::{Answer, Process, Request};
use super::record::{Acknowledged, Told};
use super::tools::some_wish;
use super::world::World;

const ANSWERS_WITHIN: Duration = Duration::from_secs(8);

/// How a request ended.
pub(super) struct Resolved {
  /// The input that counts: the first under its key.
  pub(super) input: Uuid,
  /// Its decision, unless the answer was that it had been decided before.
  pub(super) decision: Option<Arc<Decision>>,
}

impl Resolved {
  /// The reason of a refusal.
  pub(super) fn refused(&self) -> Option<String> {
    let decision = self.decision.as_ref()?;
    settled_of(decision).filter(|settled| settled.outcome == Settlement::Refused).map(|settled| settled.reason.clone())
  }
}

fn settled_of(decision: &Decision) -> Option<&InputSettled> {
  match &decision.events.first()?.event {
    Event::Log(pa_domain::log::Event::InputSettled(settled)) => Some(settled),
    _ => None,
  }
}

/// Asks until the request is decided, any process that answers.
pub(super) async fn resolve(world: &World, random: &mut StdRng, request: &Request) -> Resolved {
  loop {
    if let Some(process) = world.some_process(random)
      && let Some(resolved) = answer(world, &process, request).await
    {
      return resolved;
    }
    sleep(Duration::from_millis(random.random_range(100..2_500))).await;
  }
}

/// Asks one process until the request is decided.
pub(super) async fn resolve_at(world: &World, process: &Process, request: &Request) -> Resolved {
  loop {
    if let Some(resolved) = answer(world, process, request).await {
      return resolved;
    }
    sleep(Duration::from_millis(500)).await;
  }
}

/// Asks once; `None` when nobody knows yet.
async fn answer(world: &World, process: &Process, request: &Request) -> Option<Resolved> {
  match timeout(ANSWERS_WITHIN, process.give(request)).await {
    // What a dead or stopped process would have said never reaches anybody.
    Ok(Answer::Decided(decision)) if !process.gate.is_dead() && !process.gate.is_stopped() => {
      world.record.told(Told::of(&decision));
      if is_held(&decision) {
        return None;
      }
      let input = settled_of(&decision).and_then(|settled| settled.of).map_or(decision.cause, |of| of.0);
      let repeated = input != decision.cause;
      Some(Resolved { input, decision: (!repeated).then_some(decision) })
    }
    Ok(Answer::Decided(_) | Answer::Accepted | Answer::Refused) | Err(_) => None,
  }
}

fn is_held(decision: &Decision) -> bool {
  use pa_domain::log::Event::{InputHeld, InputQuarantined};
  matches!(decision.events.first().map(|recorded| &recorded.event), Some(Event::Log(InputHeld(_) | InputQuarantined(_))))
}

/// A client's request for an agent.
pub(super) fn request(agent: AgentId, key: impl Into<String>, input: Input) -> Request {
  let key = key.into();
  let content = Some(format!("{input:?}").into_bytes());
  Request { agent, input, producer: "account".to_owned(), key, content, origin: Origin::Owner }
}

/// The owner of an agent, on one of the owner's devices.
pub(super) struct Owner {
  pub(super) world: Arc<World>,
  pub(super) agent: AgentId,
  pub(super) device: u64,
  pub(super) actions: u64,
  pub(super) seed: u64,
}

impl Owner {
  pub(super) async fn live(self) {
    let mut random = StdRng::seed_from_u64(self.seed);
    let (world, agent) = (&*self.world, self.agent);
    let mut jobs: Vec<JobId> = Vec::new();
    for number in 0..self.actions {
      sleep(Duration::from_millis(random.random_range(0..4_000))).await;
      let key = format!("{}-{number}", self.device);
      match (random.random_range(0..20), jobs.last().copied()) {
        (0 | 1, Some(job)) => drop(resolve(world, &mut random, &request(agent, key, inputs::stop(job, "shown"))).await),
        (2, Some(job)) => drop(resolve(world, &mut random, &request(agent, key, inputs::retry(job))).await),
        (3 | 4, _) => self.name(&mut random, key, number).await,
        (5 | 6, _) => self.once(&mut random, &key, number).await,
        _ => {
          let text = format!("message {key} {}", some_wish(&mut random));
          let resolved = resolve(world, &mut random, &request(agent, key, inputs::message(&text))).await;
          if let Some(reason) = resolved.refused() {
            world.record.problem(format!("a message of {agent} was refused: {reason}"));
          } else {
            jobs.push(message_of(resolved.input).into());
            if let Some(decision) = &resolved.decision {
              world.record.admitted(agent, decision.ordinal, message_of(resolved.input).0);
            }
            let source = format!("{agent}/{}", self.device);
            world.record.acknowledged(Acknowledged { agent, source, number, text, input: Some(resolved.input) });
          }
        }
      }
    }
  }

  /// Says something without a key, and only once: nobody knows what becomes of it without an answer.
  async fn once(&self, random: &mut StdRng, key: &str, number: u64) {
    let (world, agent, text) = (&*self.world, self.agent, format!("once {key} {}", some_wish(random)));
    let Some(process) = world.some_process(random) else { return };
    let Some(resolved) = answer(world, &process, &request(agent, "", inputs::message(&text))).await else { return };
    if let Some(reason) = resolved.refused() {
      world.record.problem(format!("a message of {agent} was refused: {reason}"));
    } else {
      world.record.acknowledged(Acknowledged { agent, source: format!("{agent}/{}", self.device), number, text, input: Some(resolved.input) });
    }
  }

  async fn name(&self, random: &mut StdRng, key: String, number: u64) {
    let process = self.world.some_process(random);
    let known = process.and_then(|process| process.view.root(self.agent)).and_then(|root| root.settings).map_or(1, |settings| settings.version);
    let given = settings::SettingsGiven { version: known, name: Some(format!("name {} {number}", self.device)), ..settings::SettingsGiven::default() };
    drop(resolve(&self.world, random, &request(self.agent, key, given.into())).await);
  }
}

/// Says for calls of unknown outcome what happened: the owner has looked.
pub(super) async fn reconcile(world: Arc<World>, seed: u64) {
  let mut random = StdRng::seed_from_u64(seed);
  loop {
    sleep(Duration::from_millis(random.random_range(1_000..5_000))).await;
    let calls = world.shared.model.store().calls();
    for (agent, row) in calls.into_iter().filter(|(_, row)| row.unknown && row.class == Class::External) {
      let executed = world.shared.ledger.happened(row.id);
      let key = format!("reconcile/{}/{executed}", row.id);
      world.record.reconciled(row.id, executed);
      drop(resolve(&world, &mut random, &request(agent, key, inputs::reconcile(row.job, row.id, executed))).await);
    }
  }
}

/// Lets go of inputs that are set aside: the owner drops the one that can't be opened, or tries it again first.
pub(super) async fn release(world: Arc<World>, seed: u64) {
  let mut random = StdRng::seed_from_u64(seed);
  for number in 0_u64.. {
    sleep(Duration::from_millis(random.random_range(1_000..5_000))).await;
    for agent in world.set_aside() {
      let drop_first = random.random_range(0..4) > 0;
      drop(resolve(&world, &mut random, &request(agent, format!("release/{number}"), inputs::release(drop_first))).await);
    }
  }
}

/// Who adds accounts and erases some of them again.
pub(super) struct Administrator {
  pub(super) world: Arc<World>,
  pub(super) accounts: u64,
  pub(super) seed: u64,
}

impl Administrator {
  pub(super) async fn live(self) {
    let mut random = StdRng::seed_from_u64(self.seed);
    let world = &*self.world;
    for number in 0..self.accounts {
      sleep(Duration::from_millis(random.random_range(0..9_000))).await;
      let name = format!("Account {number}");
      let resolved = resolve(world, &mut random, &request(INSTALLATION, format!("add-{number}"), inputs::add_account(&name))).await;
      let account = AgentId(derived(resolved.input, 0));
      let text = format!("from account {number}");
      // Its agent comes by itself; before that nobody takes a message.
      for again in 0_u64.. {
        let hello = request(account, format!("hello-{again}"), inputs::message(&text));
        if resolve(world, &mut random, &hello).await.refused().is_none() {
          break;
        }
        sleep(Duration::from_secs(1)).await;
      }
      if random.random() {
        sleep(Duration::from_millis(random.random_range(0..4_000))).await;
        world.record.erased(account);
        let erase = request(account, "erase", inputs::erase(&name));
        let late = self.late(&mut random, account).await;
        // Once it is gone nobody can be asked for it any more.
        while !world.is_erased(account) {
          drop(timeout(ANSWERS_WITHIN, resolve(world, &mut random, &erase)).await);
        }
        for late in late {
          sleep(Duration::from_millis(random.random_range(0..12_000))).await;
          if let Some(process) = world.some_process(&mut random) {
            timeout(ANSWERS_WITHIN, process.append_prepared(&late)).await.ok();
          }
        }
      }
    }
  }
}

impl Administrator {
  /// Inputs on their way to an account, which arrive only when it is erased.
  async fn late(&self, random: &mut StdRng, account: AgentId) -> Vec<Prepared> {
    let mut late = Vec::new();
    for number in 0..random.random_range(0..3) {
      let request = request(account, format!("late-{number}"), inputs::message("too late"));
      if let Some(process) = self.world.some_process(random)
        && let Ok(Ok(prepared)) = timeout(ANSWERS_WITHIN, process.prepare(&request)).await
      {
        late.push(prepared);
      }
    }
    late
  }
}

/// A contact on a platform, whose messages come in by webhook.
pub(super) struct Contact {
  pub(super) world: Arc<World>,
  pub(super) agent: AgentId,
  pub(super) number: u64,
  pub(super) messages: u64,
  pub(super) seed: u64,
}

impl Contact {
  pub(super) async fn live(self) {
    let mut random = StdRng::seed_from_u64(self.seed);
    let conversation: ConversationId = inputs::channel(self.number);
    for number in 0..self.messages {
      sleep(Duration::from_millis(random.random_range(0..3_000))).await;
      let text = format!("contact {} says {number} {}", self.number, some_wish(&mut random));
      let received: conversation::Input = inputs::received(conversation, &text).into();
      let request = Request {
        agent: self.agent,
        input: received.into(),
        producer: "lark-1".to_owned(),
        key: format!("{}/{number}", self.number),
        content: None,
        origin: Origin::ThirdParty,
      };
      self.deliver(&mut random, &request).await;
      // A platform may deliver again although it was told.
      if random.random_range(0..5) == 0 {
        self.deliver(&mut random, &request).await;
      }
      let source = format!("{}/{conversation}", self.agent);
      self.world.record.acknowledged(Acknowledged { agent: self.agent, source, number, text, input: None });
    }
  }

  async fn deliver(&self, random: &mut StdRng, request: &Request) {
    loop {
      if let Some(process) = self.world.some_process(random)
        && timeout(ANSWERS_WITHIN, process.receive(request)).await == Ok(true)
      {
        return;
      }
      sleep(Duration::from_millis(random.random_range(100..2_000))).await;
    }
  }
}

/// Far in the future, for reading all timers.
pub(super) const FOR_EVER: Timestamp = Timestamp(i64::MAX);
