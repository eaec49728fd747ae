//! The indicator: at work, failed, waiting for the owner.

use pa_domain::task::PauseReason;

use super::{Failing, Indicator, LastResult, of};
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
  assert_eq!((failure.what, failure.code.as_str()), (Failing::Message(first.message), "REPLY_INTERRUPTED"));
  let second = story.message(agent(1), "too hard again");
  story.start(second, 1);
  story.fail(second, 1);
  let newer = indicators(&story).await.last_failure.unwrap();
  assert_eq!(newer.what, Failing::Message(second.message));
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

/// Proves SID-2, SID-15: cards, unknown effects and tasks that stand still ask; a wait for a desktop, a pause that was asked for and work under way do not.
#[tokio::test]
async fn tasks_ask_for_the_owner_when_nothing_goes_on_without() {
  let mut story = Story::default();
  story.create(agent(1));
  let told = story.task(agent(1), "Send", "Send it.");
  story.begin_task(told, 1);
  let at_work = indicators(&story).await;
  assert!(at_work.running && !at_work.needs_input);
  let held = story.hold_email(told, (1, 0));
  let asking = indicators(&story).await;
  assert!(asking.needs_input && !asking.running && asking.changed == story.ordinal(agent(1)), "{asking:?}");
  story.approve(told, held, None);
  assert!(!indicators(&story).await.needs_input);
  story.begin_task(told, 2);
  story.pause(told, PauseReason::Asked);
  assert!(!indicators(&story).await.needs_input, "the owner paused it");
  story.resume(told, 1);
  story.begin_task(told, 3);
  story.interrupt(told, 3);
  assert!(indicators(&story).await.needs_input, "it was interrupted too often");
  story.resume(told, 1);
  story.begin_task(told, 4);
  story.pause(told, PauseReason::OutputLooped);
  assert!(indicators(&story).await.needs_input, "it repeated itself");
  story.stop_task(told, false);
  assert!(!indicators(&story).await.needs_input);
}

/// Proves SID-5, SID-6, SID-7: a failure stands until its task goes on; a result is delivered by the reply that tells it.
#[tokio::test]
async fn the_newest_result_says_whether_it_was_told_and_a_failure_goes_with_a_retry() {
  let mut story = Story::default();
  story.create(agent(1));
  let told = story.task(agent(1), "Try", "Try it.");
  story.begin_task(told, 1);
  story.fail_task(told, "INCOMPLETE");
  let failed = indicators(&story).await;
  let failure = failed.last_failure.unwrap();
  assert_eq!((failure.what, failure.ordinal), (Failing::Task(told.id), story.ordinal(agent(1))));
  story.resume(told, 2);
  assert_eq!(indicators(&story).await.last_failure, None);
  story.begin_task(told, 2);
  story.complete(told, "It works.");
  let ordinal = story.ordinal(agent(1));
  let result = |delivered| Some(LastResult { task: told.id, ordinal, delivered });
  assert_eq!(indicators(&story).await.last_result, result(false));
  // Another reply is none of it.
  story.turn(agent(1), "hello", "hi");
  assert_eq!(indicators(&story).await.last_result, result(false));
  let telling = story.report(told, "It works.");
  story.start(telling, 1);
  assert_eq!(indicators(&story).await.last_result, result(false));
  story.finish(telling, 1, "Done: it works.", None);
  let shown = indicators(&story).await;
  assert_eq!(shown.last_result, result(true));
  assert!(shown.changed > ordinal);
  story.instruct(told, "once more", None);
  assert_eq!(indicators(&story).await.last_result, None, "it is no result any more");
}
