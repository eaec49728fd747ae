//! The indicator: at work, failed, waiting for the owner.

use super::{Indicator, of};
use crate::testing::story::{Story, agent};
use crate::tests::Model;

async fn indicators(story: &Story) -> Indicator {
  let mut seen = Vec::new();
  for size in [1, 500] {
    let model = Model::new().await;
    crate::tests::project(&model.store, &story.decisions, size).await;
    seen.push(of(&model.pool, agent(1)).await.unwrap());
  }
  assert_eq!(seen[0], seen[1]);
  seen.remove(0)
}

#[tokio::test]
async fn an_agent_is_at_work_while_an_execution_runs() {
  let mut story = Story::default();
  story.create(agent(1));
  assert_eq!(indicators(&story).await, Indicator::default());
  let turn = story.message(agent(1), "hello");
  story.start(turn, 1);
  let at_work = indicators(&story).await;
  assert!(at_work.running && at_work.changed == story.ordinal(agent(1)) - 1, "{at_work:?}");
  story.give_back(turn, 1);
  assert!(!indicators(&story).await.running);
  story.start(turn, 2);
  story.finish(turn, 2, "hi", None);
  assert!(!indicators(&story).await.running);
}

#[tokio::test]
async fn the_newest_failure_stays_until_a_newer_one() {
  let mut story = Story::default();
  story.create(agent(1));
  let first = story.message(agent(1), "too hard");
  story.start(first, 1);
  story.fail(first, 1);
  story.turn(agent(1), "easy", "yes");
  let failure = indicators(&story).await.last_failure.unwrap();
  assert_eq!((failure.message, failure.code.as_str()), (first.message, "REPLY_INTERRUPTED"));
  let second = story.message(agent(1), "too hard again");
  story.start(second, 1);
  story.fail(second, 1);
  let newer = indicators(&story).await.last_failure.unwrap();
  assert_eq!(newer.message, second.message);
  assert!(newer.ordinal > failure.ordinal);
}

#[tokio::test]
async fn a_call_of_which_nobody_knows_the_outcome_waits_for_the_owner() {
  let mut story = Story::default();
  story.create(agent(1));
  let turn = story.message(agent(1), "send it");
  story.start(turn, 1);
  let [call, _] = story.calls(turn, 1, false);
  assert!(indicators(&story).await.needs_input);
  story.reconcile(turn, call);
  let settled = indicators(&story).await;
  assert!(!settled.needs_input && settled.changed == story.ordinal(agent(1)), "{settled:?}");
}
