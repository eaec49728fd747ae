//! What is recorded of the model's answers, and when a final one may be posted.

use super::running;
use crate::call::{Class, Outcome};
use crate::codes::reason;
use crate::conversation::{ReplyPosted, ReplyStatus};
use crate::event::{Event, Input};
use crate::execution::{ExecutionFinished, FinishAsked, Input as ExecutionInput, StepRecorded};
use crate::ids;
use crate::limits::{ARGUMENTS_BYTES_MAX, CALLS_PER_STEP_MAX, MESSAGE_TEXT_BYTES_MAX};
use crate::log::{InputSettled, Settlement};
use crate::testing::inputs;
use crate::timer::TimerCancelled;

const FINISHED: [&str; 4] = ["StepRecorded", "ExecutionFinished", "TimerCancelled", "ReplyPosted"];

/// Proves D4 and RUN-7: one attempt posts the reply, and the step that made it carries the usage but not the text again.
#[test]
fn a_final_answer_is_posted_once() {
  let (mut agent, job) = running();
  let reply = agent.reply(job);
  let timer = reply.work.running.unwrap().timer;
  let asked = inputs::finish(job, 1, 1, agent.ordinal(), "hi\0");
  agent.when(asked.clone()).then(&[
    StepRecorded { job, execution: 1, step: 1, model_call: inputs::model_call(), text: String::new(), calls: Vec::new() }.into(),
    ExecutionFinished { job, execution: 1 }.into(),
    TimerCancelled { timer }.into(),
    ReplyPosted { job, conversation: reply.conversation, reply: reply.reply, text: "hi\u{FFFD}".to_owned(), incomplete: false }.into(),
  ]);
  assert_eq!(agent.reply(job).status, ReplyStatus::Answered);
  agent.when(asked).then_refused(reason::STALE_EXECUTION);
}

#[test]
fn an_answer_longer_than_a_message_is_cut_and_marked() {
  let (mut agent, job) = running();
  let decided = agent.when(inputs::finish(job, 1, 1, agent.ordinal(), &"é".repeat(MESSAGE_TEXT_BYTES_MAX)));
  let reply = agent.reply(job);
  let text = "é".repeat(MESSAGE_TEXT_BYTES_MAX / 2);
  let expected = ReplyPosted { job, conversation: reply.conversation, reply: reply.reply, text, incomplete: true };
  assert_eq!(decided.events.last(), Some(&expected.into()));
}

#[test]
fn an_answer_that_ended_by_length_stays_marked() {
  let (mut agent, job) = running();
  let decided = agent.when(FinishAsked { incomplete: true, ..inputs::finish(job, 1, 1, agent.ordinal(), "half a") });
  let reply = agent.reply(job);
  let expected = ReplyPosted { job, conversation: reply.conversation, reply: reply.reply, text: "half a".to_owned(), incomplete: true };
  assert_eq!(decided.events.last(), Some(&expected.into()));
}

/// Proves the rules' side of BB-29: an answer without text is never posted, and what it cost is recorded.
#[test]
fn an_empty_answer_is_refused_and_its_usage_recorded() {
  let (mut agent, job) = running();
  agent.when(inputs::finish(job, 1, 1, agent.ordinal(), " \n")).then(&[
    StepRecorded { job, execution: 1, step: 1, model_call: inputs::model_call(), text: " \n".to_owned(), calls: Vec::new() }.into(),
    InputSettled { outcome: Settlement::Refused, reason: reason::TEXT_EMPTY.to_owned(), of: None }.into(),
  ]);
  agent.when(inputs::finish(job, 1, 2, agent.ordinal(), "cleaned up")).then_types(&FINISHED);
}

#[test]
fn a_worker_that_has_not_read_the_instruction_can_not_finish() {
  let (mut agent, job) = running();
  agent.when(inputs::stop(job, ""));
  agent.when(inputs::retry(job));
  let instructed = agent.reply(job).work.instructed;
  agent.when(inputs::ask(job));
  agent.when(inputs::finish(job, 2, 1, instructed - 1, "old")).then_types(&["StepRecorded", "InputSettled"]);
  agent.when(inputs::finish(job, 2, 2, instructed, "new")).then_types(&FINISHED);
}

/// Proves PR-24 for a finish: refused once and asked again is decided again, with the step recorded once.
#[test]
fn pr_24_a_finish_refused_once_is_asked_again() {
  let (mut agent, job) = running();
  agent.when(inputs::step(job, 1, 1, &["search"]));
  agent.when(inputs::call(job, 1, (1, 0), "search", Class::Repeatable)).then_types(&["CallStarted"]);
  let asked = |agent: &crate::testing::TestAgent| inputs::finish(job, 1, 2, agent.ordinal(), "hi");
  agent.when(asked(&agent)).then_types(&["StepRecorded", "InputSettled"]);
  agent.when(asked(&agent)).then_refused(reason::FINISH_TOO_EARLY);
  agent.when(inputs::outcome(job, 1, ids::call(job, 1, 0), Outcome::Returned)).then_types(&["CallReturned"]);
  agent.when(asked(&agent)).then_types(&["ExecutionFinished", "TimerCancelled", "ReplyPosted"]);
}

#[test]
fn a_finish_names_the_step_after_the_last() {
  let (mut agent, job) = running();
  let asked = |step| inputs::finish(job, 1, step, i64::MAX, "hi");
  agent.when(asked(0)).then_refused(reason::STEP_OUT_OF_ORDER);
  agent.when(asked(2)).then_refused(reason::STEP_OUT_OF_ORDER);
  agent.when(inputs::step(job, 1, 1, &["search"]));
  agent.when(asked(1)).then_refused(reason::STEP_RECORDED);
}

#[test]
fn a_step_is_recorded_once_and_the_first_wins() {
  let (mut agent, job) = running();
  agent.when(inputs::step(job, 1, 1, &["search"])).then_types(&["StepRecorded"]);
  agent.when(inputs::step(job, 1, 1, &["other"])).then_unchanged(reason::STEP_RECORDED);
  agent.when(inputs::step(job, 1, 3, &["other"])).then_unchanged(reason::STEP_OUT_OF_ORDER);
  agent.when(inputs::loss(job, 1));
  agent.when(inputs::ask(job));
  agent.when(inputs::step(job, 2, 1, &["other"])).then_unchanged(reason::STEP_RECORDED);
  agent.when(inputs::step(job, 2, 2, &["other"])).then_types(&["StepRecorded"]);
  assert_eq!(agent.reply(job).work.steps[&1].tools, ["search"]);
}

#[test]
fn a_steps_content_is_cleaned_and_bounded() {
  let (mut agent, job) = running();
  let Input::Execution(ExecutionInput::StepReported(mut step)) = inputs::step(job, 1, 1, &["search\0"; CALLS_PER_STEP_MAX + 1]) else { unreachable!() };
  step.text = "x".repeat(MESSAGE_TEXT_BYTES_MAX + 1);
  step.model_call.model = "m\0".to_owned();
  let decided = agent.when(step);
  let Event::Execution(crate::execution::Event::StepRecorded(recorded)) = &decided.events[0] else { panic!("no step: {decided:?}") };
  assert_eq!((recorded.text.len(), recorded.calls.len()), (MESSAGE_TEXT_BYTES_MAX, CALLS_PER_STEP_MAX));
  assert_eq!((recorded.calls[0].tool.as_str(), recorded.model_call.model.as_str()), ("search\u{FFFD}", "m\u{FFFD}"));
}

#[test]
fn arguments_beyond_the_limit_are_not_recorded() {
  let (mut agent, job) = running();
  let Input::Execution(ExecutionInput::StepReported(mut step)) = inputs::step(job, 1, 1, &["one", "two", "three"]) else { unreachable!() };
  for call in &mut step.calls {
    call.arguments = "x".repeat(ARGUMENTS_BYTES_MAX / 2);
  }
  agent.when(step);
  assert_eq!(agent.reply(job).work.steps[&1].tools, ["one", "two"]);
}

#[test]
fn an_answered_job_keeps_only_what_may_still_be_learnt() {
  let (mut agent, job) = running();
  agent.when(inputs::step(job, 1, 1, &["search", "write"]));
  agent.when(inputs::call(job, 1, (1, 0), "search", Class::Repeatable));
  agent.when(inputs::outcome(job, 1, ids::call(job, 1, 0), Outcome::Returned));
  agent.when(inputs::call(job, 1, (1, 1), "write", Class::Contained));
  agent.when(inputs::outcome(job, 1, ids::call(job, 1, 1), Outcome::Unknown));
  agent.when(inputs::finish(job, 1, 2, agent.ordinal(), "done")).then_types(&FINISHED);
  let work = agent.reply(job).work;
  assert!(work.steps.is_empty());
  assert_eq!(work.calls.keys().copied().collect::<Vec<_>>(), [ids::call(job, 1, 1)]);
  agent.when(inputs::outcome(job, 1, ids::call(job, 1, 1), Outcome::Returned)).then_types(&["CallReconciled"]);
}
