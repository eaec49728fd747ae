//! Who may work on a job: the one whose ask the log grants.

use super::running;
use crate::codes::reason;
use crate::execution::{ExecutionStarted, JobKind, Running};
use crate::ids::{JobId, TimerId, Timestamp, derived};
use crate::testing::{TestAgent, input_id, inputs};
use crate::timer::{Purpose, TimerSet};

/// Proves REP-33: the limit of four minutes is stored with the start.
#[test]
fn an_ask_starts_an_execution_with_its_limit_and_its_timer() {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("hello")).message();
  agent.now = agent.now.plus_millis(5_000);
  let reply = agent.reply(job);
  let limit_ms = agent.now.plus_millis(240_000);
  let decided = agent.when(inputs::ask(job));
  let (ask, timer) = (decided.input, TimerId(derived(decided.input, 1)));
  decided.then(&[
    ExecutionStarted { job, kind: JobKind::Reply, execution: 1, conversation: reply.conversation, reply: reply.reply, limit_ms }.into(),
    TimerSet { timer, purpose: Purpose::AttemptLimit, due_ms: limit_ms.plus_millis(10_000), thing: Some(job.into()) }.into(),
  ]);
  assert_eq!(agent.reply(job).work.running, Some(Running { execution: 1, ask, limit_ms, timer }));
  assert!(agent.root.timers.contains_key(&timer));
}

#[test]
fn an_unknown_job_is_not_queued() {
  TestAgent::alive().when(inputs::ask(JobId(input_id(99)))).then_refused(reason::NOT_QUEUED);
}

#[test]
fn what_is_answered_or_stopped_does_not_start_again() {
  let (mut agent, job) = running();
  agent.when(inputs::finish(job, 1, 1, agent.ordinal(), "done"));
  agent.when(inputs::ask(job)).then_refused(reason::ENDED);
  let (mut agent, job) = running();
  agent.when(inputs::stop(job, ""));
  agent.when(inputs::ask(job)).then_refused(reason::STOPPED);
}

/// Proves RUN-16 and the rules' side of PR-21: one execution, two workers. Only the ask that was granted counts, and after its loss none of its reports do.
#[test]
fn pr_21_one_execution_of_two_workers_runs() {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("hello")).message();
  let first = agent.when(inputs::ask(job)).input;
  agent.when(inputs::ask(job)).then_refused(reason::ALREADY_RUNNING);
  assert_eq!(agent.reply(job).work.running.unwrap().ask, first);
  agent.when(inputs::loss(job, 1)).then_types(&["ExecutionLost", "TimerCancelled"]);
  let second = agent.when(inputs::ask(job)).input;
  assert_eq!(agent.reply(job).work.running.map(|running| (running.ask, running.execution)), Some((second, 2)));
  agent.when(inputs::step(job, 1, 1, &["search"])).then_unchanged(reason::STALE_EXECUTION);
  agent.when(inputs::finish(job, 1, 1, agent.ordinal(), "zombie")).then_refused(reason::STALE_EXECUTION);
  agent.when(inputs::give_back(job, 1)).then_unchanged(reason::STALE_EXECUTION);
  agent.when(inputs::failure(job, 1, "MODEL_REFUSED")).then_unchanged(reason::STALE_EXECUTION);
  agent.when(inputs::loss(job, 1)).then_unchanged(reason::STALE_EXECUTION);
  agent.when(inputs::step(job, 2, 1, &["search"])).then_types(&["StepRecorded"]);
  agent.when(inputs::call(job, 1, (1, 0), "search", crate::call::Class::Repeatable)).then_refused(reason::STALE_EXECUTION);
  agent.when(inputs::call(job, 2, (1, 0), "search", crate::call::Class::Repeatable)).then_types(&["CallStarted"]);
}

#[test]
fn the_agents_time_never_goes_back() {
  let (mut agent, job) = running();
  let started = agent.log.last().unwrap().0.at;
  agent.now = Timestamp(0);
  agent.when(inputs::loss(job, 1));
  agent.when(inputs::ask(job));
  assert_eq!(agent.reply(job).work.running.unwrap().limit_ms, started.plus_millis(240_000));
}
