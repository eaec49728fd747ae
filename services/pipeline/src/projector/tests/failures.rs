//! What fails: the database, one agent's rows, a record of a newer binary, a log that was replaced or cut, an erasure.

use std::sync::Arc;

use pa_eventlog::meta::hash::partition_of;
use pa_eventlog::{EventLog as _, Stream};
use pa_projections::schema::{self, Indexes};
use pa_projections::testing::Story;
use pa_projections::testing::story::{agent, everything, main_of};
use pa_projections::{conversation, system};
use pa_store::Role;

use super::super::build::rebuild_agent;
use super::super::verify::verify;
use super::{PARTITIONS, Running, World, eventually};

#[tokio::test]
async fn connections_that_die_cost_nothing() {
  let story = everything();
  let mut world = World::new().await;
  let running = world.run();
  for (number, decision) in story.decisions.iter().enumerate() {
    world.put(decision).await;
    if number % 10 == 3 {
      pa_projections::testing::kill_connections(&world.db.database).await;
      tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
  }
  let reads = world.db.database.read_pool(Role::Gateway, &schema::current());
  eventually("everything is read", || async { system::progress(&reads, agent(1)).await.unwrap_or(0) == story.ordinal(agent(1)) }).await;
  running.ready().await;
  running.stop().await;
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}

#[tokio::test]
async fn rows_that_the_database_refuses_park_their_agent_until_it_is_rebuilt() {
  let mut story = Story::default();
  for id in [agent(1), agent(2)] {
    story.create(id);
    for round in 0..5 {
      story.turn(id, &format!("question {round}"), "answer");
    }
  }
  let from = story.ordinal(agent(1)) + 1;
  story.turn(agent(1), "poison", "never shown");
  story.turn(agent(2), "fine", "yes");
  let world = World::of(&story).await;
  let schema = schema::current();
  world.schemas().create(&schema, Indexes::Now).await.unwrap();
  world.tamper("ALTER TABLE entries ADD CONSTRAINT no_poison CHECK (body <> 'poison')").await;
  world.project().await;
  let reads = world.db.database.read_pool(Role::Gateway, &schema);
  let parked = system::parked(&reads).await.unwrap();
  assert_eq!(parked.iter().map(|parked| (parked.agent, parked.from)).collect::<Vec<_>>(), [(agent(1), from)]);
  assert!(parked[0].error.contains("no_poison"), "{}", parked[0].error);
  assert_eq!(system::progress(&reads, agent(1)).await.unwrap(), from - 1);
  assert_eq!(system::progress(&reads, agent(2)).await.unwrap(), story.ordinal(agent(2)));
  // Its rows can be built anew while the projector runs, once the cause is gone.
  world.tamper("ALTER TABLE entries DROP CONSTRAINT no_poison").await;
  let running = world.run();
  running.ready().await;
  rebuild_agent(&world.parts(), &world.schemas(), agent(1)).await.unwrap();
  assert_eq!(system::parked(&reads).await.unwrap(), []);
  let page = conversation::page(&reads, agent(1), main_of(agent(1)), 2, None).await.unwrap();
  assert_eq!(page.entries.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>(), ["poison", "never shown"]);
  running.stop().await;
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}

#[tokio::test]
async fn a_type_that_this_binary_does_not_know_stops_its_partition_alone() {
  let story = everything();
  let mut world = World::of(&story).await;
  let stopped = partition_of(agent(1), PARTITIONS);
  let other = (1..50).map(agent).find(|id| partition_of(*id, PARTITIONS) != stopped).unwrap();
  let mut more = Story::default();
  more.create(agent(1));
  let mut records = world.records(&more.decisions[0]).await;
  records.truncate(1);
  let mut future = pa_eventlog::meta::decode(records[0].id, &records[0].meta).unwrap();
  future.place.parts = 1;
  records[0].meta = pa_eventlog::meta::encode(&future).unwrap();
  records[0].type_name = "pa.future.ThingHappened.v1".into();
  world.log.put(Stream::Events, stopped, records);
  let running = world.run();
  eventually("it stops", || async { running.status.partitions().get(&stopped).is_some_and(|status| status.stopped) }).await;
  let mut rest = Story::default();
  rest.create(other);
  world.chains.remove(&other);
  world.put(&rest.decisions[0]).await;
  let reads = world.db.database.read_pool(Role::Gateway, &schema::current());
  eventually("the other partition goes on", || async { system::progress(&reads, other).await.unwrap() >= 3 }).await;
  // Its status is set after its commit.
  eventually("only one partition waits", || async { running.status.reasons_to_wait().len() == 1 }).await;
  let reasons = running.status.reasons_to_wait();
  assert!(reasons[0].contains(&format!("partition {stopped}")), "{reasons:?}");
  assert_eq!(system::progress(&reads, agent(1)).await.unwrap(), story.ordinal(agent(1)), "what came before is shown");
  running.stop().await;
}

#[tokio::test]
async fn a_log_that_was_replaced_is_folded_anew_and_the_page_says_so() {
  let mut world = World::of(&everything()).await;
  world.project().await;
  // Another log in the same place, with another history.
  world.log.replace();
  world.chains.clear();
  world.announce();
  let mut story = Story::default();
  story.create(agent(5));
  for decision in &story.decisions {
    world.put(decision).await;
  }
  let running = world.run();
  let reads = world.db.database.read_pool(Role::Gateway, &schema::current());
  eventually("the new log is read", || async { system::progress(&reads, agent(5)).await.unwrap() == 3 }).await;
  running.ready().await;
  assert_eq!(system::progress(&reads, agent(1)).await.unwrap(), 0);
  let because = system::rebuilt(&reads).await.unwrap().unwrap().because;
  assert!(because.contains("comes from log"), "{because}");
  running.stop().await;
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}

#[tokio::test]
async fn a_log_that_lost_its_tail_is_folded_anew() {
  let story = everything();
  let mut world = World::of(&story).await;
  world.project().await;
  let partition = partition_of(agent(1), PARTITIONS);
  let end = world.log.end(Stream::Events, partition).await.unwrap();
  world.log.cut(Stream::Events, partition, end - 5);
  let running = Running::start(world.parts_over(Arc::new(world.log.fork())));
  let reads = world.db.database.read_pool(Role::Gateway, &schema::current());
  eventually("it says so", || async { system::rebuilt(&reads).await.unwrap().is_some() }).await;
  running.ready().await;
  running.stop().await;
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
  world.chains.clear();
}

#[tokio::test]
async fn records_of_an_erased_agent_take_its_rows_away() {
  let mut story = Story::default();
  for id in [agent(1), agent(2)] {
    story.create(id);
    story.turn(id, "question", "answer");
  }
  let mut world = World::of(&story).await;
  world.project().await;
  world.keys.erase(agent(1)).await.unwrap();
  // Its key is gone, so nobody can read that this decision erases it; that it can't be read is enough.
  let mut erased = Story::default();
  erased.erase(agent(1));
  let keys = std::mem::replace(&mut world.keys, pa_store::keys::KeyRing::fixed());
  world.put(&erased.decisions[0]).await;
  world.keys = keys;
  world.project().await;
  let snapshot = world.snapshot().await;
  for (table, agents) in &snapshot.tables {
    assert!(!agents.contains_key(&agent(1)), "{table}");
  }
  assert!(snapshot.tables["entries"].contains_key(&agent(2)));
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}
