//! Rebuilding gives the same rows, and comparing finds every row and every link that is wrong.

use pa_eventlog::meta::hash::partition_of;
use pa_eventlog::{EventLog as _, Stream};
use pa_projections::schema;
use pa_projections::system;
use pa_projections::testing::story::{agent, everything};
use pa_store::Role;

use super::super::build::{prepare, rebuild, rebuild_agent};
use super::super::verify::{Difference, chains, verify};
use super::{PARTITIONS, World};
use crate::chains::{Broken, Unheard};

#[tokio::test]
async fn a_rebuilt_schema_is_equal_row_for_row() {
  let story = everything();
  let world = World::of(&story).await;
  world.project().await;
  let before = world.snapshot().await;
  let built = rebuild(&world.parts(), &world.schemas()).await.unwrap();
  assert!(built.facts > 100, "{built:?}");
  assert_eq!(world.snapshot().await, before);
  assert_eq!(world.schemas().list().await.unwrap(), [schema::current()], "nothing is left beside it");
  // The one that runs goes on in the new tables.
  let running = world.run();
  running.ready().await;
  rebuild(&world.parts(), &world.schemas()).await.unwrap();
  running.ready().await;
  running.stop().await;
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}

#[tokio::test]
async fn one_changed_cell_one_missing_and_one_added_row_are_found() {
  let story = everything();
  let world = World::of(&story).await;
  world.project().await;
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
  let id = agent(1);
  assert_eq!(
    world
      .tamper(&format!("UPDATE entries SET body = body || '.' WHERE agent = '{id}' AND place = (SELECT min(place) FROM entries WHERE agent = '{id}')"))
      .await,
    1
  );
  assert_eq!(world.tamper(&format!("DELETE FROM usage WHERE ctid = (SELECT ctid FROM usage WHERE agent = '{}' LIMIT 1)", agent(2))).await, 1);
  assert_eq!(world.tamper(&format!("INSERT INTO timers VALUES ('{}', '{}', 'ATTEMPT_LIMIT', 1, NULL, 1)", agent(3), agent(3))).await, 1);
  assert_eq!(world.tamper(&format!("UPDATE agent_progress SET ordinal = ordinal - 1 WHERE agent = '{id}'")).await, 1);
  let found = verify(&world.parts(), &world.schemas()).await.unwrap();
  let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
  assert_eq!(found.len(), 4, "{lines:?}");
  for (table, of) in [("entries", id), ("usage", agent(2)), ("timers", agent(3)), ("agent_progress", id)] {
    assert!(lines.iter().any(|line| line.starts_with(&format!("table {table} agent {of}:"))), "{table}: {lines:?}");
  }
  // What is wrong with one agent is mended for that agent.
  rebuild_agent(&world.parts(), &world.schemas(), id).await.unwrap();
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_comparison_is_with_the_moment_that_the_tables_show() {
  let story = everything();
  let mut world = World::new().await;
  let half = story.decisions.len() / 2;
  for decision in &story.decisions[..half] {
    world.put(decision).await;
  }
  world.project().await;
  for decision in &story.decisions[half..] {
    world.put(decision).await;
  }
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), [], "the tables are behind, not wrong");
  let reads = world.db.database.read_pool(Role::Gateway, &schema::current());
  assert!(system::progress(&reads, agent(2)).await.unwrap() < story.ordinal(agent(2)));
}

#[tokio::test]
async fn the_first_event_that_does_not_follow_is_named() {
  let story = everything();
  let mut world = World::new().await;
  let broken_at = story.decisions.iter().filter(|decision| decision.facts[0].0.agent == agent(2)).nth(5).unwrap();
  let (id, ordinal) = (agent(2), broken_at.facts[0].0.ordinal);
  let mut position = 0;
  for decision in &story.decisions {
    if decision.first == broken_at.first {
      // As if the event before had been another one.
      world.chains.get_mut(&id).unwrap().1[0] ^= 1;
      position = world.log.end(Stream::Events, partition_of(id, PARTITIONS)).await.unwrap();
    }
    world.put(decision).await;
  }
  world.project().await;
  let found = verify(&world.parts(), &world.schemas()).await.unwrap();
  assert_eq!(found, [Difference::Chain(Broken { agent: id, ordinal, partition: partition_of(id, PARTITIONS), position })]);
}

/// A record whose place says another term's, with nothing behind it: no row and no later event shows it yet.
#[tokio::test]
async fn an_event_that_does_not_count_is_named_until_another_stands_for_it() {
  let story = everything();
  let mut world = World::new().await;
  let (last, earlier) = story.decisions.split_last().unwrap();
  let (id, ordinal) = (last.facts[0].0.agent, last.facts[0].0.ordinal);
  for decision in earlier {
    world.put(decision).await;
  }
  let before = (world.seqs.clone(), world.chains.clone());
  let partition = partition_of(id, PARTITIONS);
  let position = world.log.end(Stream::Events, partition).await.unwrap();
  let mut records = world.records(last).await;
  for record in &mut records {
    let mut meta = pa_eventlog::meta::decode(record.id, &record.meta).unwrap();
    meta.place.seq += 1;
    record.meta = pa_eventlog::meta::encode(&meta).unwrap();
  }
  world.log.put(Stream::Events, partition, records);
  (world.seqs, world.chains) = before;
  world.project().await;
  let named = [Difference::Void(Unheard { agent: id, ordinal, partition, position })];
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), named);
  rebuild(&world.parts(), &world.schemas()).await.unwrap();
  assert_eq!(chains(&world.parts()).await.unwrap(), named);
  assert!(named[0].to_string().contains(&format!("agent {id}: its event {ordinal} does not count")), "{}", named[0]);
  // Its input is decided again, as after a stale decider's record.
  world.put(last).await;
  assert_eq!(chains(&world.parts()).await.unwrap(), []);
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}

/// Proves DEP-13.
#[tokio::test]
async fn a_schema_that_is_prepared_is_brought_up_to_the_end_and_needs_no_building() {
  let story = everything();
  let mut world = World::new().await;
  let half = story.decisions.len() / 2;
  for decision in &story.decisions[..half] {
    world.put(decision).await;
  }
  let first = prepare(&world.parts(), &world.schemas()).await.unwrap();
  assert!(first.facts > 50, "{first:?}");
  assert_eq!(prepare(&world.parts(), &world.schemas()).await.unwrap().facts, 0, "it is there");
  for decision in &story.decisions[half..] {
    world.put(decision).await;
  }
  let second = prepare(&world.parts(), &world.schemas()).await.unwrap();
  let whole: usize = story.decisions.iter().map(|decision| decision.facts.len()).sum();
  assert!(second.facts > 0 && first.facts + second.facts <= whole as u64, "only what is new is folded: {first:?} {second:?}");
  assert_eq!(world.schemas().list().await.unwrap(), [schema::current()], "nothing is left beside it");
  let before = world.snapshot().await;
  world.project().await;
  assert_eq!(world.snapshot().await, before, "nothing was left to do");
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}

#[tokio::test]
async fn a_missing_schema_can_not_be_compared() {
  let world = World::new().await;
  verify(&world.parts(), &world.schemas()).await.unwrap_err();
}
