//! Timers: set, cancelled, elapsed once.

use super::TimerFired;
use crate::codes::reason;
use crate::ids::{ThingId, TimerId};
use crate::testing::{TestAgent, input_id, inputs};

fn running() -> (TestAgent, crate::ids::JobId, TimerId) {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("hello")).message();
  agent.when(inputs::ask(job));
  let timer = agent.reply(job).work.running.unwrap().timer;
  (agent, job, timer)
}

#[test]
fn a_timer_that_was_never_set_is_ignored() {
  let (mut agent, job, _) = running();
  agent.when(inputs::fire(TimerId(input_id(999)), job)).then_unchanged(reason::NOT_SET);
}

#[test]
fn a_timer_elapses_once() {
  let (mut agent, job, timer) = running();
  assert!(agent.when(inputs::fire(timer, job)).has("TimerElapsed"));
  agent.when(inputs::fire(timer, job)).then_unchanged(reason::NOT_SET);
}

#[test]
fn a_cancelled_timer_is_ignored() {
  let (mut agent, job, timer) = running();
  agent.when(inputs::finish(job, 1, 1, agent.ordinal(), "hi")).then_types(&["StepRecorded", "ExecutionFinished", "TimerCancelled", "ReplyPosted"]);
  agent.when(inputs::fire(timer, job)).then_unchanged(reason::NOT_SET);
}

#[test]
fn a_report_about_another_thing_changes_nothing_and_the_timer_still_runs() {
  let (mut agent, job, timer) = running();
  agent.when(TimerFired { timer, thing: Some(ThingId(input_id(77))) }).then_unchanged(reason::WRONG_THING);
  agent.when(TimerFired { timer, thing: None }).then_unchanged(reason::WRONG_THING);
  assert!(agent.when(inputs::fire(timer, job)).has("ExecutionLost"));
}

#[test]
fn a_timer_is_due_with_a_grace_after_the_attempts_limit_and_belongs_to_its_job() {
  let (agent, job, timer) = running();
  let set = &agent.root.timers[&timer];
  let limit = agent.reply(job).work.running.unwrap().limit_ms;
  assert_eq!((set.due_ms, set.thing), (limit.plus_millis(10_000), Some(job.into())));
}
