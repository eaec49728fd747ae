//! Step by step over a store in memory, as the simulator does it.

use std::sync::Arc;

use pa_domain::AgentId;
use pa_eventlog::meta::hash::partition_of;
use pa_projections::commit::MemoryStore;
use pa_projections::conversation::Status;
use pa_projections::testing::Story;
use pa_projections::testing::story::{agent, everything, main_of};

use super::super::{PartitionProjector, Step};
use super::{PARTITIONS, World};

async fn open(world: &World, store: &Arc<MemoryStore>, agent: AgentId) -> PartitionProjector<MemoryStore> {
  let parts = world.parts();
  PartitionProjector::open(parts.log, parts.opener, Arc::clone(store), partition_of(agent, PARTITIONS)).await.unwrap()
}

#[tokio::test]
async fn steps_end_where_the_log_ends() {
  let story = everything();
  let world = World::of(&story).await;
  let store = Arc::new(MemoryStore::new());
  for partition in 0..PARTITIONS {
    let parts = world.parts();
    let mut projector = PartitionProjector::open(parts.log, parts.opener, Arc::clone(&store), partition).await.unwrap();
    while projector.step().await.unwrap() != Step::Idle {}
    assert_eq!(projector.step().await.unwrap(), Step::Idle);
  }
  for id in [agent(1), agent(2)] {
    assert_eq!(store.progress(id), story.ordinal(id));
    assert!(store.entries(id, main_of(id)).len() > 10);
  }
  assert_eq!(store.progress(agent(3)), 0, "it was erased");
}

#[tokio::test]
async fn a_projector_that_was_overtaken_goes_on_from_where_the_store_stands() {
  let mut world = World::new().await;
  let mut story = Story::default();
  story.create(agent(1));
  let turn = story.message(agent(1), "hello");
  story.start(turn, 1);
  story.finish(turn, 1, "hi", None);
  let store = Arc::new(MemoryStore::new());
  let (mut slow, mut fast) = (open(&world, &store, agent(1)).await, open(&world, &store, agent(1)).await);
  for decision in &story.decisions {
    world.put(decision).await;
  }
  while fast.step().await.unwrap() != Step::Idle {}
  assert_eq!(slow.step().await.unwrap(), Step::Stale);
  assert_eq!(slow.step().await.unwrap(), Step::Idle);
  assert_eq!(slow.mark(), fast.mark());
  assert_eq!(store.entries(agent(1), turn.conversation)[1].status, Status::Posted);
}
