//! When a call may begin.

use super::{ask, with_started, with_step};
use crate::call::{CallAsked, CallSkipped, CallStarted, Class, Outcome, SkipReason};
use crate::codes::reason;
use crate::execution::tests::running;
use crate::ids;
use crate::limits::ARGUMENTS_BYTES_MAX;
use crate::testing::inputs;

const CLASSES: [Class; 3] = [Class::Repeatable, Class::Contained, Class::External];

#[test]
fn a_recorded_call_starts_with_what_was_asked() {
  let (mut agent, job) = with_step(&["tool"]);
  let asked = CallAsked { action: "{\"a\":1}".to_owned(), limit_millis: 30_000, ..inputs::call(job, 1, (1, 0), "tool", Class::External) };
  agent.when(asked).then(&[CallStarted {
    job,
    execution: 1,
    step: 1,
    index: 0,
    call: ids::call(job, 1, 0),
    tool: "tool".to_owned(),
    class: Class::External,
    action: "{\"a\":1}".to_owned(),
    limit_millis: 30_000,
    started_ms: agent.now,
    card: None,
  }
  .into()]);
}

#[test]
fn a_call_that_no_recorded_step_asks_for_does_not_start() {
  let (mut agent, job) = running();
  ask(&mut agent, job, 1, Class::Repeatable).then_refused(reason::NO_SUCH_CALL);
  let (mut agent, job) = with_step(&["tool"]);
  let right = inputs::call(job, 1, (1, 0), "tool", Class::Repeatable);
  for wrong in [
    CallAsked { tool: "other".to_owned(), ..right.clone() },
    CallAsked { index: 1, call: ids::call(job, 1, 1), ..right.clone() },
    CallAsked { index: -1, call: ids::call(job, 1, -1), ..right.clone() },
    CallAsked { step: 2, call: ids::call(job, 2, 0), ..right.clone() },
    CallAsked { call: ids::call(job, 1, 7), ..right.clone() },
  ] {
    agent.when(wrong).then_refused(reason::NO_SUCH_CALL);
  }
  agent.when(right).then_types(&["CallStarted"]);
}

#[test]
fn a_permit_is_given_once() {
  for class in CLASSES {
    let (mut agent, job, _) = with_started(class);
    ask(&mut agent, job, 1, class).then_refused(reason::CALL_STARTED);
  }
}

#[test]
fn reading_calls_of_a_step_run_together() {
  let (mut agent, job) = with_step(&["search", "fetch", "read"]);
  for (index, tool) in [(0, "search"), (1, "fetch"), (2, "read")] {
    agent.when(inputs::call(job, 1, (1, index), tool, Class::Repeatable)).then_types(&["CallStarted"]);
  }
}

#[test]
fn any_other_call_begins_when_all_before_it_are_settled() {
  for class in [Class::Contained, Class::External] {
    let (mut agent, job) = with_step(&["search", "fetch", "send", "read"]);
    let send = inputs::call(job, 1, (1, 2), "send", class);
    let read = inputs::call(job, 1, (1, 3), "read", Class::Repeatable);
    agent.when(send.clone()).then_refused(reason::CALL_OUT_OF_ORDER);
    agent.when(inputs::call(job, 1, (1, 0), "search", Class::Repeatable)).then_types(&["CallStarted"]);
    agent.when(inputs::call(job, 1, (1, 1), "fetch", Class::Repeatable)).then_types(&["CallStarted"]);
    agent.when(inputs::outcome(job, 1, ids::call(job, 1, 1), Outcome::Returned));
    agent.when(send.clone()).then_refused(reason::CALL_OUT_OF_ORDER);
    agent.when(inputs::outcome(job, 1, ids::call(job, 1, 0), Outcome::Failed));
    agent.when(read.clone()).then_refused(reason::CALL_OUT_OF_ORDER);
    agent.when(send).then_types(&["CallStarted"]);
    agent.when(read.clone()).then_refused(reason::CALL_OUT_OF_ORDER);
    agent.when(inputs::outcome(job, 1, ids::call(job, 1, 2), Outcome::Returned));
    agent.when(read).then_types(&["CallStarted"]);
  }
}

#[test]
fn a_settled_call_is_not_made_again() {
  for outcome in [Outcome::Returned, Outcome::Failed] {
    let (mut agent, job, call) = with_started(Class::Repeatable);
    agent.when(inputs::outcome(job, 1, call, outcome));
    ask(&mut agent, job, 1, Class::Repeatable).then_refused(reason::CALL_SETTLED);
    agent.when(inputs::loss(job, 1));
    agent.when(inputs::ask(job));
    ask(&mut agent, job, 2, Class::Repeatable).then_refused(reason::CALL_SETTLED);
  }
}

/// Proves the rules' side of D1: what hasn't started when an instruction comes is skipped, what has started isn't touched.
#[test]
fn a_newer_instruction_skips_what_has_not_started() {
  let (mut agent, job) = with_step(&["tool", "other"]);
  ask(&mut agent, job, 1, Class::Contained).then_types(&["CallStarted"]);
  agent.when(inputs::stop(job, ""));
  agent.when(inputs::retry(job));
  agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
  let call = ids::call(job, 1, 1);
  agent.when(inputs::call(job, 2, (1, 1), "other", Class::Repeatable)).then(&[CallSkipped {
    job,
    call,
    step: 1,
    index: 1,
    tool: "other".to_owned(),
    reason: SkipReason::Steered,
  }
  .into()]);
  agent.when(inputs::call(job, 2, (1, 1), "other", Class::Repeatable)).then_refused(reason::CALL_SETTLED);
  ask(&mut agent, job, 2, Class::Contained).then_refused(reason::CALL_OPEN);
}

#[test]
fn a_worker_that_has_not_read_the_instruction_gets_no_permit() {
  let (mut agent, job) = running();
  agent.when(inputs::stop(job, ""));
  agent.when(inputs::retry(job));
  let instructed = agent.reply(job).work.instructed;
  agent.when(inputs::ask(job));
  agent.when(inputs::step(job, 2, 1, &["tool"]));
  let stale = CallAsked { seen: instructed - 1, ..inputs::call(job, 2, (1, 0), "tool", Class::Repeatable) };
  agent.when(stale).then_types(&["CallSkipped"]);
}

#[test]
fn an_ask_for_a_job_that_is_over_settles_the_call_as_skipped() {
  let (mut agent, job) = with_step(&["tool"]);
  agent.when(inputs::stop(job, ""));
  let call = ids::call(job, 1, 0);
  let skipped = |reason| CallSkipped { job, call, step: 1, index: 0, tool: "tool".to_owned(), reason }.into();
  ask(&mut agent, job, 1, Class::Contained).then(&[skipped(SkipReason::Stopped)]);
  let (mut agent, job) = with_step(&["tool"]);
  agent.when(inputs::failure(job, 1, "MODEL_REFUSED"));
  let call = ids::call(job, 1, 0);
  let skipped = |reason| CallSkipped { job, call, step: 1, index: 0, tool: "tool".to_owned(), reason }.into();
  ask(&mut agent, job, 1, Class::Contained).then(&[skipped(SkipReason::Lost)]);
}

#[test]
fn an_action_that_no_record_can_hold_is_refused() {
  let (mut agent, job) = with_step(&["tool"]);
  let asked = |length| CallAsked { action: "x".repeat(length), ..inputs::call(job, 1, (1, 0), "tool", Class::Contained) };
  agent.when(asked(ARGUMENTS_BYTES_MAX + 1)).then_refused(reason::VALUE_INVALID);
  agent.when(asked(ARGUMENTS_BYTES_MAX)).then_types(&["CallStarted"]);
}

#[test]
fn a_tools_limit_and_its_text_are_kept_within_bounds() {
  let (mut agent, job) = with_step(&["tool"]);
  let asked = CallAsked { action: "{\0}".to_owned(), limit_millis: i64::MAX, ..inputs::call(job, 1, (1, 0), "tool", Class::Contained) };
  let decided = agent.when(asked);
  let crate::event::Event::Call(crate::call::Event::CallStarted(started)) = &decided.events[0] else { panic!("not started: {decided:?}") };
  assert_eq!((started.action.as_str(), started.limit_millis), ("{\u{FFFD}}", 86_400_000));
}
