//! Calls: permitted, made, reported, and what becomes of those that nobody reports.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pa_domain::call::{self, Class, Outcome};
use pa_domain::testing::inputs;
use pa_domain::{CallId, Event, JobId, ids};
use pa_tools::Tool;
use pa_tools::testing::{Counter, Ending, TestTool};
use tokio::time::Instant;

use super::model::{calling, results_of};
use super::{Line, ScriptedModel, World};
use crate::agent::turn::STEPS_MAX;

fn reads(counter: &Counter) -> Arc<dyn Tool> {
  Arc::new(TestTool::slow_read(counter.clone()))
}

fn contained(counter: &Counter) -> Arc<dyn Tool> {
  Arc::new(TestTool::contained(counter.clone()))
}

fn external(counter: &Counter) -> Arc<dyn Tool> {
  Arc::new(TestTool::external(counter.clone()))
}

/// The ordinals at which each call of a job began and was settled.
fn lives(world: &World, job: JobId) -> Vec<(CallId, i64, Option<i64>)> {
  let mut lives: Vec<(CallId, i64, Option<i64>)> = Vec::new();
  for recorded in world.rows.events.lock().iter() {
    let ordinal = recorded.core().ordinal;
    match &recorded.event {
      Event::Call(call::Event::CallStarted(started)) if started.job == job => lives.push((started.call, ordinal, None)),
      Event::Call(call::Event::CallReturned(returned)) => {
        if let Some(life) = lives.iter_mut().rev().find(|life| life.0 == returned.call) {
          life.2 = Some(ordinal);
        }
      }
      _ => {}
    }
  }
  lives
}

#[tokio::test(start_paused = true)]
async fn reads_go_together_and_anything_else_after_what_is_before_it() {
  let world = World::new().await;
  let (looked, done) = (Counter::default(), Counter::default());
  looked.hold();
  let model = ScriptedModel::new([
    calling(&[("pa_slow_read", r#"{"text":"a"}"#), ("pa_slow_read", r#"{"text":"b"}"#), ("pa_contained", "{}"), ("pa_slow_read", "{}")]),
    Line::Say("that is all"),
  ]);
  let _process = world.process(1, &model, vec![reads(&looked), contained(&done)]);
  let job = world.send("look").await;
  looked.reached(2).await;
  assert_eq!((looked.begun(), done.begun()), (2, 0));
  looked.release();
  assert_eq!(world.answered(job).await.as_deref(), Ok("that is all"));
  let lives = lives(&world, job);
  let call = |index| ids::call(job, 1, index);
  assert_eq!(lives.iter().map(|life| life.0).collect::<Vec<_>>(), [call(0), call(1), call(2), call(3)]);
  assert!(lives[1].1 < lives[0].2.unwrap(), "both reads had begun before the first was settled");
  assert!(lives[2].1 > lives[0].2.unwrap() && lives[2].1 > lives[1].2.unwrap() && lives[3].1 > lives[2].2.unwrap(), "{lives:?}");
  let results = results_of(&model.requests()[1]);
  assert_eq!(results.len(), 4);
  assert!(results[0].contains("done: a") && results[1].contains("done: b"), "{results:?}");
}

/// Written in full, numbers take more room than the model gave them; the model is told so, and the turn goes on.
#[tokio::test(start_paused = true)]
async fn arguments_that_are_too_long_when_written_in_full_are_told_to_the_model() {
  let world = World::new().await;
  let counter = Counter::default();
  let long = format!(r#"{{"text":"a","numbers":[{}0]}}"#, "1e15,".repeat(40_000));
  assert!(long.len() <= pa_domain::limits::ARGUMENTS_BYTES_MAX);
  let model = ScriptedModel::new([calling(&[("pa_slow_read", &long)]), Line::Say("then not")]);
  let _process = world.process(1, &model, vec![reads(&counter)]);
  let job = world.send("look").await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("then not"));
  assert_eq!(counter.begun(), 0);
  let results = results_of(&model.requests()[1]);
  assert!(results[0].contains("too long"), "{results:?}");
}

/// A model that only ever calls is stopped by a limit that no real work meets, and the owner is told.
#[tokio::test(start_paused = true)]
async fn a_model_that_runs_in_circles_ends_in_a_notice() {
  let world = World::new().await;
  let config = pa_model::Config { context_tokens: 10_000_000, ..pa_model::Config::new("http://fake.invalid/v1", "scripted") };
  let lines = (0..=STEPS_MAX).map(|_| calling(&[("pa_no_such_tool", "{}")]));
  let model = ScriptedModel::with_config(config, lines);
  let _process = world.process(1, &model, vec![]);
  let job = world.send("round and round").await;
  assert_eq!(world.answered(job).await, Err("TOO_MANY_STEPS".to_owned()));
  assert_eq!(model.requests().len(), usize::try_from(STEPS_MAX).unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_next_execution_goes_on_from_the_record_and_repeats_only_what_may_be_repeated() {
  let world = World::new().await;
  let (looked, done) = (Counter::default(), Counter::default());
  let first = ScriptedModel::new([calling(&[("pa_contained", "{}"), ("pa_slow_read", "{}")])]);
  looked.hold();
  let killed = world.process(1, &first, vec![reads(&looked), contained(&done)]);
  let job = world.send("work").await;
  looked.reached(1).await;
  killed.kill();
  let (looked_again, done_again) = (Counter::default(), Counter::default());
  let second = ScriptedModel::new([Line::Say("finished")]);
  let _process = world.process(1, &second, vec![reads(&looked_again), contained(&done_again)]);
  assert_eq!(world.answered(job).await.as_deref(), Ok("finished"));
  assert_eq!((done.done(), done_again.begun()), (1, 0), "a recorded result stands");
  assert_eq!(looked_again.calls(), [ids::call(job, 1, 1)], "the read is made again, under the same id");
  let results = results_of(&second.requests()[0]);
  assert!(results.iter().all(|result| result.contains("done: ")), "{results:?}");
}

/// Proves RUN-18, PR-22, PR-28: an external call that nobody reports is unknown only after its permit and its own limit are over, is never repeated, and waits for
/// the owner.
#[tokio::test(start_paused = true)]
async fn an_external_call_of_a_killed_process_becomes_unknown_and_waits_for_the_owner() {
  let world = World::new().await;
  let sent = Counter::default();
  sent.hold();
  let first = ScriptedModel::new([calling(&[("pa_external", "{}")])]);
  let killed = world.process(1, &first, vec![external(&sent)]);
  let job = world.send("send it").await;
  sent.reached(1).await;
  let begun = Instant::now();
  killed.kill();
  let sent_again = Counter::default();
  let second = ScriptedModel::new([Line::Say("it was sent")]);
  let _process = world.process(1, &second, vec![external(&sent_again)]);
  world.happened(job, "ExecutionLost", 1).await;
  // Too early: the owner's word is not taken while the call may still land.
  world.give(inputs::reconcile(job, ids::call(job, 1, 0), true)).await;
  world.happened(job, "CallUnknown", 1).await;
  assert!(begun.elapsed() >= Duration::from_secs(40), "{:?}", begun.elapsed());
  tokio::time::sleep(Duration::from_secs(120)).await;
  assert!(second.requests().is_empty(), "the job waits");
  world.give(inputs::reconcile(job, ids::call(job, 1, 0), true)).await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("it was sent"));
  assert_eq!(sent_again.begun(), 0);
}

/// Proves PR-29: a stop ends the execution, not the external call, whose outcome is taken in afterwards.
#[tokio::test(start_paused = true)]
async fn an_external_call_outlives_a_stop_and_is_reported() {
  let world = World::new().await;
  let sent = Counter::default();
  sent.hold();
  let model = ScriptedModel::new([calling(&[("pa_external", "{}")])]);
  let _process = world.process(1, &model, vec![external(&sent)]);
  let job = world.send("send it").await;
  sent.reached(1).await;
  world.give(inputs::stop(job, "")).await;
  world.happened(job, "ExecutionStopped", 1).await;
  sent.release();
  world.happened(job, "CallReturned", 1).await;
  assert_eq!(sent.done(), 1);
}

/// Proves PR-23: a contained call that a graceful stop drops is said to be unknown, and the model is told to look.
#[tokio::test(start_paused = true)]
async fn a_contained_call_that_was_dropped_is_unknown_and_the_model_is_told_to_look() {
  let world = World::new().await;
  let done = Counter::default();
  done.hold();
  let first = ScriptedModel::new([calling(&[("pa_contained", "{}")])]);
  let process = world.process(1, &first, vec![contained(&done)]);
  let job = world.send("work").await;
  done.reached(1).await;
  process.stop().await;
  let second = ScriptedModel::new([Line::Say("looked and done")]);
  let _process = world.process(2, &second, vec![contained(&done)]);
  assert_eq!(world.answered(job).await.as_deref(), Ok("looked and done"));
  let results = results_of(&second.requests()[0]);
  assert!(results[0].starts_with("Interrupted: it may have been done in part."), "{results:?}");
  assert_eq!(done.begun(), 1, "never repeated by itself");
}

/// Proves PR-22: a permit counts from the sending of its ask, by a clock that counts suspension.
#[tokio::test(start_paused = true)]
async fn a_permit_that_was_read_too_late_is_not_used() {
  let world = World::new().await;
  let sent = Counter::default();
  let model = ScriptedModel::new([calling(&[("pa_external", "{}")]), Line::Say("not sent")]);
  let _process = world.process(1, &model, vec![external(&sent)]);
  world.held_back.send_replace("pa.call.CallAsked");
  let job = world.send("send it").await;
  world.happened(job, "StepRecorded", 1).await;
  tokio::time::sleep(Duration::from_secs(1)).await;
  // The machine sleeps while the ask is under way.
  world.boot.slept_millis.store(29_500, Ordering::SeqCst);
  world.held_back.send_replace("");
  assert_eq!(world.answered(job).await.as_deref(), Ok("not sent"));
  assert_eq!(sent.begun(), 0);
  assert!(results_of(&model.requests()[1])[0].contains("PERMIT_EXPIRED"));
}

#[tokio::test(start_paused = true)]
async fn what_cant_be_called_is_told_to_the_model() {
  let world = World::new().await;
  let model = ScriptedModel::new([
    calling(&[("pa_nothing", "{}"), ("pa_slow_read", r#"{"text":0.5}"#), ("pa_slow_read", r#"{"other":1}"#), ("pa_slow_read", "[]")]),
    Line::Say("I see"),
  ]);
  let looked = Counter::default();
  let _process = world.process(1, &model, vec![reads(&looked)]);
  let job = world.send("look").await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("I see"));
  let results = results_of(&model.requests()[1]);
  assert!(results[0].contains("TOOL_UNKNOWN"), "{results:?}");
  assert!(results[1..].iter().all(|result| result.contains("ARGUMENTS_INVALID")), "{results:?}");
  assert_eq!(looked.begun(), 0);
}

/// Proves RUN-22.
#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_settled_by_its_class() {
  let world = World::new().await;
  let (looked, done) = (Counter::default(), Counter::default());
  looked.hold();
  done.hold();
  let model = ScriptedModel::new([calling(&[("pa_slow_read", "{}"), ("pa_contained", "{}")]), Line::Say("enough")]);
  let tools: Vec<Arc<dyn Tool>> = vec![
    Arc::new(TestTool::slow_read(looked.clone()).limited_to(Duration::from_secs(2))),
    Arc::new(TestTool::contained(done.clone()).limited_to(Duration::from_secs(3))),
  ];
  let _process = world.process(1, &model, tools);
  let job = world.send("work").await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("enough"));
  let results = results_of(&model.requests()[1]);
  assert!(results[0].contains("TIMED_OUT") && results[1].starts_with("Interrupted"), "{results:?}");
}

/// Proves RUN-18: when a tool itself does not know, the job waits for the owner.
#[tokio::test(start_paused = true)]
async fn an_external_call_of_unknown_outcome_makes_the_job_wait() {
  let world = World::new().await;
  let sent = Counter::default();
  let model = ScriptedModel::new([calling(&[("pa_external", "{}")]), Line::Say("understood")]);
  let tool: Arc<dyn Tool> = Arc::new(TestTool::external(sent.clone()).ending(Ending::DoesNotKnow));
  let _process = world.process(1, &model, vec![tool]);
  let job = world.send("send it").await;
  world.happened(job, "CallUnknown", 1).await;
  tokio::time::sleep(Duration::from_secs(300)).await;
  assert_eq!(model.requests().len(), 1);
  assert!(!world.types(job).contains(&"ExecutionLost"), "{:?}", world.types(job));
  world.give(inputs::reconcile(job, ids::call(job, 1, 0), false)).await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("understood"));
  assert!(results_of(&model.requests()[1])[0].contains("not done"));
  assert_eq!(sent.begun(), 1);
}

/// Proves PR-25: a late outcome of an earlier execution's worker counts, and the worker goes on with it.
#[tokio::test(start_paused = true)]
async fn an_outcome_that_somebody_else_reported_first_counts() {
  let world = World::new().await;
  let done = Counter::default();
  done.hold();
  let first = ScriptedModel::new([calling(&[("pa_contained", "{}")])]);
  let killed = world.process(1, &first, vec![contained(&done)]);
  let job = world.send("work").await;
  done.reached(1).await;
  killed.kill();
  let second = ScriptedModel::new([Line::Say("with the late result")]);
  let _process = world.process(2, &second, vec![contained(&Counter::default())]);
  world.happened(job, "ExecutionStarted", 2).await;
  tokio::time::sleep(Duration::from_secs(5)).await;
  assert!(second.requests().is_empty(), "it waits until the call is settled");
  let mut late = inputs::outcome(job, 1, ids::call(job, 1, 0), Outcome::Returned);
  late.parts[0].text = "late but good".to_owned();
  world.give(late.into()).await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("with the late result"));
  assert!(results_of(&second.requests()[0])[0].contains("late but good"));
  assert_eq!(Class::Contained, TestTool::contained(Counter::default()).class());
}
