//! Waiting and watching.

use std::time::Duration;

use super::{Committed, Live};
use crate::testing::story::{Story, agent};
use crate::tests::{Model, project};

fn committed(ordinal: i64) -> Committed {
  Committed { partition: 0, agents: vec![(agent(1), ordinal)], queue: true, timers: false }
}

#[tokio::test]
async fn whoever_waits_is_told_after_the_commit() {
  let model = Model::new().await;
  let mut story = Story::default();
  story.create(agent(1));
  let live = Live::local();
  let waiting = live.wait_for(&model.pool, agent(1), 3, Duration::from_secs(10));
  let working = async {
    tokio::time::sleep(Duration::from_millis(30)).await;
    project(&model.store, &story.decisions, 500).await;
    live.tell(committed(3));
  };
  let (there, ()) = tokio::join!(waiting, working);
  assert!(there.unwrap());
  assert!(live.wait_for(&model.pool, agent(1), 2, Duration::ZERO).await.unwrap(), "what is known needs no waiting");
}

#[tokio::test]
async fn whoever_waits_in_vain_is_told_so_in_time() {
  let model = Model::new().await;
  let begun = tokio::time::Instant::now();
  assert!(!Live::local().wait_for(&model.pool, agent(1), 3, Duration::from_millis(80)).await.unwrap());
  assert!(begun.elapsed() >= Duration::from_millis(80));
}

#[tokio::test]
async fn a_commit_that_nobody_told_of_is_found_by_looking() {
  let model = Model::new().await;
  let mut story = Story::default();
  story.create(agent(1));
  let live = Live::remote();
  let waiting = live.wait_for(&model.pool, agent(1), 3, Duration::from_secs(10));
  let (there, ()) = tokio::join!(waiting, async {
    tokio::time::sleep(Duration::from_millis(50)).await;
    project(&model.store, &story.decisions, 500).await;
  });
  assert!(there.unwrap());
}

#[tokio::test]
async fn a_watch_sees_the_newest_of_its_own_agent_and_never_goes_back() {
  let live = Live::local();
  live.tell(committed(2));
  let mut watch = live.watch(agent(1));
  assert_eq!(watch.ordinal(), 2);
  live.tell(Committed { agents: vec![(agent(2), 9)], ..committed(0) });
  live.tell(committed(5));
  live.tell(committed(4));
  assert_eq!(watch.changed().await, 5);
  assert!(tokio::time::timeout(Duration::from_millis(20), watch.changed()).await.is_err(), "an older ordinal is no news");
}

#[tokio::test]
async fn nothing_is_left_of_watches_that_ended() {
  let live = Live::local();
  let (one, two) = (live.watch(agent(1)), live.watch(agent(1)));
  drop(one);
  assert_eq!(live.watched(), [agent(1)]);
  drop(two);
  assert_eq!(live.watched(), []);
}

#[tokio::test]
async fn every_commit_is_told_to_workers() {
  let live = Live::local();
  let mut commits = live.committed();
  live.tell(committed(1));
  live.tell(committed(2));
  assert_eq!(*commits.recv().await.unwrap(), committed(1));
  assert_eq!(*commits.recv().await.unwrap(), committed(2));
}
