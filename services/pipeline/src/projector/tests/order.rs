//! An agent's events are folded in their order and without a gap, whatever the projector remembers and whoever built the tables.

use pa_domain::AgentId;
use pa_eventlog::meta::hash::partition_of;
use pa_eventlog::{EventLog as _, Stream};
use pa_projections::schema;
use pa_projections::system;
use pa_projections::testing::Story;
use pa_projections::testing::story::agent;
use pa_store::Role;

use super::super::build::{rebuild, rebuild_agent};
use super::super::verify::{Difference, verify};
use super::{PARTITIONS, World, eventually};
use crate::chains::Broken;

/// An agent, and another one of the same partition.
fn neighbours() -> (AgentId, AgentId) {
  let one = agent(1);
  let other = (2..50).map(agent).find(|id| partition_of(*id, PARTITIONS) == partition_of(one, PARTITIONS)).unwrap();
  (one, other)
}

/// Two agents with some turns each; how many decisions there are before the last turn of the first, and with which ordinal that begins.
fn story() -> (Story, usize, i64) {
  let (one, other) = neighbours();
  let mut story = Story::default();
  for id in [one, other] {
    story.create(id);
    story.turn(id, "question", "answer");
  }
  let (decisions, from) = (story.decisions.len(), story.ordinal(one) + 1);
  story.turn(one, "lost", "and what follows");
  story.turn(other, "question", "answer");
  (story, decisions, from)
}

impl World {
  /// Decides something that the log then loses, as if its record had become void.
  async fn lose(&mut self, decision: &pa_projections::testing::Decision) {
    let seqs = self.seqs.clone();
    self.records(decision).await;
    self.seqs = seqs;
  }

  async fn parked(&self) -> Vec<system::Parked> {
    let reads = self.db.database.read_pool(Role::Gateway, &schema::current());
    system::parked(&reads).await.unwrap()
  }

  async fn progress(&self, agent: AgentId) -> i64 {
    let reads = self.db.database.read_pool(Role::Gateway, &schema::current());
    system::progress(&reads, agent).await.unwrap_or(0)
  }
}

#[tokio::test]
async fn an_agent_whose_chain_has_a_hole_is_parked_there_and_nobody_else() {
  let (story, lost, from) = story();
  let (one, other) = neighbours();
  let found = story.decisions[lost + 1].facts[0].0.ordinal;
  // Read at once and in the end, or as it comes: the hole lies within a batch, or between what the tables have and a batch.
  for as_it_comes in [false, true] {
    let mut world = World::new().await;
    let mut position = 0;
    for (number, decision) in story.decisions.iter().enumerate() {
      if number == lost {
        if as_it_comes {
          world.project().await;
        }
        world.lose(decision).await;
        position = world.log.end(Stream::Events, partition_of(one, PARTITIONS)).await.unwrap();
      } else {
        world.put(decision).await;
      }
    }
    world.project().await;
    let parked = world.parked().await;
    assert_eq!(parked.iter().map(|parked| (parked.agent, parked.from)).collect::<Vec<_>>(), [(one, from)], "as it comes: {as_it_comes}");
    assert_eq!(parked[0].error, format!("the chain of events is broken: ordinal {from} expected, {found} found"));
    assert_eq!(world.progress(one).await, from - 1);
    assert_eq!(world.progress(other).await, story.ordinal(other));
    // The comparison names the same ordinal, and a rebuild makes it no better.
    let broken = [Difference::Chain(Broken { agent: one, ordinal: from, partition: partition_of(one, PARTITIONS), position })];
    assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), broken);
    rebuild(&world.parts(), &world.schemas()).await.unwrap();
    rebuild_agent(&world.parts(), &world.schemas(), one).await.unwrap();
    assert_eq!(world.parked().await, parked);
    assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), broken);
  }
}

#[tokio::test]
async fn a_projector_heeds_who_was_parked_and_let_go_behind_its_back() {
  let (mut story, _, from) = story();
  let (one, other) = neighbours();
  let mut world = World::of(&story).await;
  let running = world.run();
  running.ready().await;
  // As after a rebuild by another process that met a hole which this one never saw: the position is the same.
  world.tamper(&format!("UPDATE agent_progress SET ordinal = {} WHERE agent = '{one}'", from - 1)).await;
  world.tamper(&format!("INSERT INTO parked VALUES ('{one}', {}, {from}, 'a hole')", partition_of(one, PARTITIONS))).await;
  let mut written = story.decisions.len();
  for _ in 0..2 {
    story.turn(one, "behind the hole", "yes");
    story.turn(other, "beside it", "yes");
    for decision in &story.decisions[written..] {
      world.put(decision).await;
    }
    written = story.decisions.len();
    eventually("the neighbour goes on", || async { world.progress(other).await == story.ordinal(other) }).await;
    assert_eq!(world.progress(one).await, from - 1);
    assert_eq!(world.parked().await.len(), 1);
  }
  // And the other way round: it is well again, and no fact of it is left out.
  rebuild_agent(&world.parts(), &world.schemas(), one).await.unwrap();
  assert_eq!(world.parked().await, []);
  story.turn(one, "well again", "yes");
  for decision in &story.decisions[written..] {
    world.put(decision).await;
  }
  eventually("it goes on", || async { world.progress(one).await == story.ordinal(one) }).await;
  running.ready().await;
  running.stop().await;
  assert_eq!(world.parked().await, []);
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}
