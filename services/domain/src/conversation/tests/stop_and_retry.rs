//! The owner's word about a reply: stop it, take a waiting message back, try again.

use crate::codes::reason;
use crate::conversation::{MessageRetried, ReplyRequested, ReplyStatus, ReplyStopped};
use crate::execution::ExecutionStopped;
use crate::ids::JobId;
use crate::limits::MESSAGE_TEXT_BYTES_MAX;
use crate::meta::Origin;
use crate::testing::{TestAgent, input_id, inputs};
use crate::timer::TimerCancelled;

fn with(texts: &[&str]) -> (TestAgent, Vec<JobId>) {
  let mut agent = TestAgent::alive();
  let jobs = texts.iter().map(|text| agent.when(inputs::message(text)).message()).collect();
  (agent, jobs)
}

#[test]
fn a_running_reply_stops_with_what_was_shown_and_the_next_has_its_turn() {
  let (mut agent, jobs) = with(&["one", "two"]);
  agent.when(inputs::ask(jobs[0]));
  let (one, two) = (agent.reply(jobs[0]), agent.reply(jobs[1]));
  let timer = one.work.running.unwrap().timer;
  agent.when(inputs::stop(jobs[0], "I was abo\0ut")).then(&[
    ExecutionStopped { job: jobs[0], execution: 1 }.into(),
    TimerCancelled { timer }.into(),
    ReplyStopped { job: jobs[0], conversation: one.conversation, reply: one.reply, text: "I was abo\u{FFFD}ut".to_owned() }.into(),
    ReplyRequested { job: jobs[1], conversation: two.conversation, reply: two.reply }.into(),
  ]);
  assert_eq!(agent.reply(jobs[0]).status, ReplyStatus::Stopped);
}

#[test]
fn a_waiting_message_is_taken_back_without_text() {
  let (mut agent, jobs) = with(&["one", "two", "three"]);
  let two = agent.reply(jobs[1]);
  agent.when(inputs::stop(jobs[1], "never shown")).then(&[ReplyStopped {
    job: jobs[1],
    conversation: two.conversation,
    reply: two.reply,
    text: String::new(),
  }
  .into()]);
  agent.when(inputs::stop(jobs[0], "")).then_types(&["ReplyStopped", "ReplyRequested"]);
  assert!(agent.root.has_turn(two.conversation, jobs[2]));
}

#[test]
fn what_was_shown_is_cut_like_a_message() {
  let (mut agent, jobs) = with(&["one"]);
  agent.when(inputs::ask(jobs[0]));
  let decided = agent.when(inputs::stop(jobs[0], &"é".repeat(MESSAGE_TEXT_BYTES_MAX)));
  let reply = agent.reply(jobs[0]);
  let text = "é".repeat(MESSAGE_TEXT_BYTES_MAX / 2);
  assert_eq!(decided.events[2], ReplyStopped { job: jobs[0], conversation: reply.conversation, reply: reply.reply, text }.into());
}

#[test]
fn a_lost_attempt_that_waits_can_be_stopped_with_what_it_showed() {
  let (mut agent, jobs) = with(&["one"]);
  agent.when(inputs::ask(jobs[0]));
  agent.when(inputs::loss(jobs[0], 1));
  let reply = agent.reply(jobs[0]);
  agent.when(inputs::stop(jobs[0], "half")).then(&[ReplyStopped {
    job: jobs[0],
    conversation: reply.conversation,
    reply: reply.reply,
    text: "half".to_owned(),
  }
  .into()]);
}

#[test]
fn what_is_over_or_unknown_can_not_be_stopped() {
  let (mut agent, jobs) = with(&["one"]);
  agent.when(inputs::stop(input_job(99), "")).then_refused(reason::NOT_FOUND);
  agent.when_from(Origin::ThirdParty, inputs::stop(jobs[0], "")).then_refused(reason::NOT_ALLOWED);
  agent.when(inputs::ask(jobs[0]));
  agent.when(inputs::finish(jobs[0], 1, 1, agent.ordinal(), "done"));
  agent.when(inputs::stop(jobs[0], "")).then_refused(reason::STATE_CHANGED);
}

#[test]
fn after_a_stop_nothing_of_that_execution_counts() {
  let (mut agent, jobs) = with(&["one"]);
  agent.when(inputs::ask(jobs[0]));
  agent.when(inputs::stop(jobs[0], ""));
  agent.when(inputs::finish(jobs[0], 1, 1, agent.ordinal(), "too late")).then_refused(reason::STALE_EXECUTION);
  agent.when(inputs::step(jobs[0], 1, 1, &["search"])).then_unchanged(reason::STALE_EXECUTION);
  agent.when(inputs::loss(jobs[0], 1)).then_unchanged(reason::STALE_EXECUTION);
  agent.when(inputs::ask(jobs[0])).then_refused(reason::STOPPED);
}

#[test]
fn a_stopped_message_can_be_tried_again_behind_the_others() {
  let (mut agent, jobs) = with(&["one", "two"]);
  agent.when(inputs::stop(jobs[0], ""));
  let one = agent.reply(jobs[0]);
  agent.when(inputs::retry(jobs[0])).then(&[MessageRetried { message: jobs[0].into(), conversation: one.conversation, reply: one.reply }.into()]);
  assert!(!agent.root.has_turn(one.conversation, jobs[0]));
  agent.when(inputs::stop(jobs[1], "")).then_types(&["ReplyStopped", "ReplyRequested"]);
  assert!(agent.root.has_turn(one.conversation, jobs[0]));
}

#[test]
fn a_retry_forgets_losses_and_counts_executions_on() {
  let (mut agent, jobs) = with(&["one"]);
  for execution in 1..=2 {
    agent.when(inputs::ask(jobs[0]));
    agent.when(inputs::loss(jobs[0], execution));
  }
  assert_eq!(agent.reply(jobs[0]).status, ReplyStatus::Failed);
  agent.when(inputs::ask(jobs[0])).then_refused(reason::ENDED);
  agent.when(inputs::retry(jobs[0])).then_types(&["MessageRetried", "ReplyRequested"]);
  let reply = agent.reply(jobs[0]);
  assert_eq!((reply.work.losses, reply.work.executions, reply.status), (0, 2, ReplyStatus::Pending));
  assert_eq!(reply.work.instructed, agent.ordinal() - 1);
  agent.when(inputs::ask(jobs[0]));
  agent.when(inputs::loss(jobs[0], 3)).then_types(&["ExecutionLost", "TimerCancelled"]);
  agent.when(inputs::ask(jobs[0]));
  agent.when(inputs::finish(jobs[0], 4, 1, agent.ordinal(), "at last")).then_types(&["StepRecorded", "ExecutionFinished", "TimerCancelled", "ReplyPosted"]);
}

#[test]
fn only_a_failed_or_stopped_message_is_tried_again() {
  let (mut agent, jobs) = with(&["one"]);
  agent.when(inputs::retry(jobs[0])).then_refused(reason::STATE_CHANGED);
  agent.when(inputs::retry(input_job(99))).then_refused(reason::NOT_FOUND);
  agent.when(inputs::ask(jobs[0]));
  agent.when(inputs::finish(jobs[0], 1, 1, agent.ordinal(), "done"));
  agent.when(inputs::retry(jobs[0])).then_refused(reason::STATE_CHANGED);
}

#[test]
fn a_retry_needs_room_in_the_queue() {
  let (mut agent, jobs) = with(&["one"]);
  agent.when(inputs::stop(jobs[0], ""));
  for _ in 0..crate::limits::OPEN_MESSAGES_MAX {
    agent.when(inputs::message("more"));
  }
  agent.when(inputs::retry(jobs[0])).then_refused(reason::QUEUE_FULL);
}

fn input_job(number: u64) -> JobId {
  JobId(input_id(number))
}
