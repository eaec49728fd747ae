//! One seed from beginning to end: a world, its people, its troubles, its healing, and the oracle's word.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::AgentId;
use pa_eventlog::sim::Odds;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::chaos::{CLOCK_MILLIS_MAX, Chaos, Kinds};
use super::client::{Administrator, Contact, Owner, reconcile, release};
use super::oracle;
use super::process::Roles;
use super::store::Trouble;
use super::watcher::watch;
use super::world::{Shared, World, agent, plan};

/// So long things go wrong.
const TROUBLE: Duration = Duration::from_secs(60);
/// After that everybody must come to an end within this time.
const PATIENCE: Duration = Duration::from_mins(10);

/// What a run was like, to see that it was worth it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stats {
  pub(super) inputs: usize,
  pub(super) events: usize,
  pub(super) voids: usize,
  pub(super) effects: usize,
  /// Of what stands where in the log.
  pub(super) fingerprint: u64,
}

/// Runs one seed on a clock of its own.
pub(super) fn run(seed: u64) -> Result<Stats, String> {
  in_paused_time(run_world(seed, kinds_of(seed)))
}

/// Runs a future on this thread alone, with a clock that jumps whenever everybody waits.
pub(super) fn in_paused_time<T>(future: impl Future<Output = T>) -> T {
  let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime without I/O");
  runtime.block_on(future)
}

/// Most seeds have a log that keeps its word and a database that only goes forward.
fn kinds_of(seed: u64) -> Kinds {
  Kinds { cuts: seed % 8 == 3, restores: seed % 8 == 5, clocks: seed % 8 == 7, quarantines: seed % 8 == 1 }
}

async fn run_world(seed: u64, kinds: Kinds) -> Result<Stats, String> {
  let mut random = StdRng::seed_from_u64(seed);
  let odds = match seed % 4 {
    0 => Odds::default(),
    1 => Odds { lost_ack: 30, lost: 20, refused: 10, ..Odds::default() },
    2 => Odds { late: 40, torn: 30, lost_ack: 20, ..Odds::default() },
    _ => Odds { lost_ack: 20, lost: 20, late: 25, duplicate: 30, gap: 30, torn: 20, refused: 10 },
  };
  let trouble = Trouble { away: false, lost_answers: 10, delay: Duration::from_millis(2) };
  let skew = if kinds.clocks { CLOCK_MILLIS_MAX } else { 2_000 };
  let nodes: Vec<(i64, Roles)> = (0..random.random_range(2..=3)).map(|_| (random.random_range(-skew..=skew), Roles::ALL)).collect();
  let world = World::new(seed, Shared::new(plan(seed, odds), trouble), &nodes);
  world.start_all().await;
  let people = people(&world, &mut random);
  let chaos = Chaos { world: Arc::clone(&world), seed: random.random(), until: Instant::now() + TROUBLE, kinds };
  chaos.rage().await;
  world.heal().await;
  if timeout(PATIENCE, people.join_all()).await.is_err() {
    return Err("people got no answers after everything was healed".to_owned());
  }
  world.settle(PATIENCE).await?;
  oracle::judge(&world, kinds).await
}

/// Owners and contacts of some agents, each a task.
#[expect(clippy::disallowed_methods, reason = "a simulation's tasks end with its runtime")]
fn people(world: &Arc<World>, random: &mut StdRng) -> JoinSet<()> {
  let agents: Vec<AgentId> = (0..random.random_range(2..=3_u128)).map(agent).collect();
  let mut people = JoinSet::new();
  let mut next = 0_u64;
  world.agents.lock().clone_from(&agents);
  tokio::spawn(reconcile(Arc::clone(world), random.random()));
  tokio::spawn(release(Arc::clone(world), random.random()));
  for agent in &agents {
    tokio::spawn(watch(Arc::clone(world), *agent, random.random()));
  }
  let administrator = Administrator { world: Arc::clone(world), accounts: random.random_range(0..=2), seed: random.random() };
  people.spawn(administrator.live());
  for agent in agents {
    let devices = random.random_range(1..=2_u64);
    let contacts = random.random_range(0..=6_u64);
    let (mut seeds, world) = (StdRng::seed_from_u64(random.random()), Arc::clone(world));
    let first = next;
    next += devices + contacts;
    people.spawn(async move {
      world.create(&mut seeds, agent).await;
      let mut people = JoinSet::new();
      for device in 0..devices {
        let owner = Owner { world: Arc::clone(&world), agent, device: first + device, actions: seeds.random_range(3..=8), seed: seeds.random() };
        people.spawn(owner.live());
      }
      for contact in 0..contacts {
        let number = first + devices + contact;
        let contact = Contact { world: Arc::clone(&world), agent, number, messages: seeds.random_range(1..=3), seed: seeds.random() };
        people.spawn(contact.live());
      }
      people.join_all().await;
    });
  }
  people
}
