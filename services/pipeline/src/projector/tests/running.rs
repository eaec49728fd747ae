//! A projector that keeps up: signals, restarts, two at once, a stop.

use std::time::Duration;

use pa_projections::live::Live;
use pa_projections::schema;
use pa_projections::testing::story::{agent, everything, main_of};
use pa_projections::{conversation, system, updates};
use pa_store::Role;

use super::super::verify::verify;
use super::{Running, World, eventually};

#[tokio::test]
async fn a_commit_is_told_to_those_who_wait_for_it() {
  let story = everything();
  let mut world = World::new().await;
  let running = world.run();
  running.ready().await;
  let reads = world.db.database.read_pool(Role::Gateway, &schema::current());
  let mut watch = world.live.watch(agent(1));
  let mut commits = world.live.committed();
  assert!(!world.live.wait_for(&reads, agent(1), 1, Duration::from_millis(50)).await.unwrap(), "nothing is there yet");
  for decision in &story.decisions {
    world.put(decision).await;
  }
  let last = story.ordinal(agent(1));
  assert!(world.live.wait_for(&reads, agent(1), last, super::PATIENCE).await.unwrap());
  while watch.ordinal() < last {
    watch.changed().await;
  }
  assert!(commits.recv().await.unwrap().agents.iter().all(|(_, ordinal)| *ordinal > 0));
  let page = conversation::page(&reads, agent(1), main_of(agent(1)), 200, None).await.unwrap();
  let updates = updates::after(&reads, agent(1), 0, 500).await.unwrap();
  assert_eq!(updates.upto, last);
  assert!(!page.entries.is_empty() && updates.changes.len() >= page.entries.len());
  running.stop().await;
}

#[tokio::test]
async fn a_restart_goes_on_where_the_read_model_stands() {
  let story = everything();
  let mut world = World::new().await;
  for (number, decision) in story.decisions.iter().enumerate() {
    world.put(decision).await;
    if number % 40 == 17 {
      world.project().await;
    }
  }
  world.project().await;
  let reads = world.db.database.read_pool(Role::Gateway, &schema::current());
  assert_eq!(system::progress(&reads, agent(1)).await.unwrap(), story.ordinal(agent(1)));
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}

#[tokio::test]
async fn two_projectors_do_not_write_a_fact_twice() {
  let story = everything();
  let mut world = World::new().await;
  let (one, two) = (world.run(), Running::start(world.parts()));
  one.ready().await;
  two.ready().await;
  for decision in &story.decisions {
    world.put(decision).await;
    tokio::task::yield_now().await;
  }
  let reads = world.db.database.read_pool(Role::Gateway, &schema::current());
  eventually("everything is read", || async { system::progress(&reads, agent(2)).await.unwrap() == story.ordinal(agent(2)) }).await;
  one.ready().await;
  two.ready().await;
  one.stop().await;
  two.stop().await;
  assert_eq!(verify(&world.parts(), &world.schemas()).await.unwrap(), []);
}

/// Each of two processes tells its own pages and workers, whichever of them wrote.
#[tokio::test]
async fn what_another_projector_wrote_is_told_here_too() {
  let story = everything();
  let mut world = World::new().await;
  let lives = [Live::local(), Live::local()];
  let [one, two] = lives.clone().map(|live| Running::start(super::Parts { live, ..world.parts() }));
  one.ready().await;
  two.ready().await;
  let mut commits = lives.clone().map(|live| live.committed());
  let mut watches = lives.clone().map(|live| live.watch(agent(1)));
  for decision in &story.decisions {
    world.put(decision).await;
    tokio::task::yield_now().await;
  }
  for (watch, commits) in watches.iter_mut().zip(&mut commits) {
    // A watch looks at nothing by itself: it is told, or it waits for ever.
    let told = async {
      while watch.ordinal() < story.ordinal(agent(1)) {
        watch.changed().await;
      }
    };
    tokio::time::timeout(super::PATIENCE, told).await.expect("both are told");
    assert!(commits.try_recv().is_ok(), "workers are woken too");
  }
  one.stop().await;
  two.stop().await;
}

#[tokio::test]
async fn another_process_learns_of_commits_by_itself() {
  let story = everything();
  let mut world = World::new().await;
  let running = world.run();
  running.ready().await;
  let reads = world.db.database.read_pool(Role::Gateway, &schema::current());
  let remote = pa_projections::live::Live::remote();
  let stop = tokio_util::sync::CancellationToken::new();
  let (schema, database) = (schema::current(), world.db.database.clone());
  let following = pa_projections::live::follow(&database, &schema, &reads, &remote, stop.clone().cancelled_owned());
  let told = async {
    let mut watch = remote.watch(agent(1));
    for decision in &story.decisions {
      world.put(decision).await;
    }
    while watch.ordinal() < story.ordinal(agent(1)) {
      watch.changed().await;
    }
    stop.cancel();
  };
  tokio::time::timeout(super::PATIENCE, futures::future::join(following, told)).await.expect("the other process is told");
  running.stop().await;
}

#[tokio::test]
async fn a_waiting_projector_stops_at_once() {
  let world = World::new().await;
  let running = world.run();
  running.ready().await;
  let begun = tokio::time::Instant::now();
  running.stop().await;
  assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
}
