//! How an attempt ends that didn't finish.

use super::running;
use crate::codes::{notice, reason};
use crate::conversation::{NoticeParam, NoticePosted, ReplyFailed, ReplyRequested, ReplyStatus};
use crate::execution::{ExecutionFailed, ExecutionLossReported, ExecutionLost, ExecutionYielded, LossReason};
use crate::ids::{MessageId, derived};
use crate::testing::inputs;
use crate::timer::{TimerCancelled, TimerElapsed};

/// Proves the rules' side of REP-34: after a loss another worker may reply again.
#[test]
fn a_lost_execution_goes_back_to_the_queue() {
  let (mut agent, job) = running();
  let timer = agent.reply(job).work.running.unwrap().timer;
  agent
    .when(inputs::loss(job, 1))
    .then(&[ExecutionLost { job, execution: 1, reason: LossReason::LeaseExpired, losses: 1 }.into(), TimerCancelled { timer }.into()]);
  assert!(agent.root.timers.is_empty());
  agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
}

/// Proves REP-35: after two interruptions the message has failed, with exactly one notice, and the next one has its turn.
#[test]
fn the_second_loss_fails_the_message_with_one_notice() {
  let (mut agent, job) = running();
  let next = agent.when(inputs::message("next")).message();
  agent.when(inputs::loss(job, 1));
  agent.when(inputs::ask(job));
  let (reply, next_reply) = (agent.reply(job), agent.reply(next));
  let timer = reply.work.running.unwrap().timer;
  let decided = agent.when(ExecutionLossReported { job, execution: 2, reason: LossReason::NodeRestarted });
  let posted = MessageId(derived(decided.input, 3));
  let code = notice::REPLY_INTERRUPTED.to_owned();
  decided.then(&[
    ExecutionLost { job, execution: 2, reason: LossReason::NodeRestarted, losses: 2 }.into(),
    TimerCancelled { timer }.into(),
    ReplyFailed { job, conversation: reply.conversation, reply: reply.reply, code: code.clone() }.into(),
    NoticePosted {
      notice: posted,
      conversation: reply.conversation,
      reply_to: Some(job.into()),
      code,
      params: vec![NoticeParam::new("losses", "2"), NoticeParam::new("reason", "NODE_RESTARTED")],
    }
    .into(),
    ReplyRequested { job: next, conversation: reply.conversation, reply: next_reply.reply }.into(),
  ]);
  assert_eq!(agent.reply(job).status, ReplyStatus::Failed);
  agent.when(inputs::loss(job, 2)).then_unchanged(reason::STALE_EXECUTION);
}

/// Proves D3: an attempt that reaches its limit is an interruption, also when its worker doesn't say so.
#[test]
fn the_timer_ends_an_attempt_whose_worker_did_not() {
  let (mut agent, job) = running();
  let timer = agent.reply(job).work.running.unwrap().timer;
  agent
    .when(inputs::fire(timer, job))
    .then(&[ExecutionLost { job, execution: 1, reason: LossReason::TimeLimit, losses: 1 }.into(), TimerElapsed { timer }.into()]);
  agent.when(inputs::ask(job));
  let timer = agent.reply(job).work.running.unwrap().timer;
  agent.when(inputs::fire(timer, job)).then_types(&["ExecutionLost", "TimerElapsed", "ReplyFailed", "NoticePosted"]);
  assert!(agent.root.timers.is_empty());
}

#[test]
fn an_execution_that_is_given_back_does_not_count_as_lost() {
  let (mut agent, job) = running();
  let timer = agent.reply(job).work.running.unwrap().timer;
  agent.when(inputs::give_back(job, 1)).then(&[ExecutionYielded { job, execution: 1 }.into(), TimerCancelled { timer }.into()]);
  for execution in 2..=5 {
    agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
    agent.when(inputs::give_back(job, execution)).then_types(&["ExecutionYielded", "TimerCancelled"]);
  }
  let work = agent.reply(job).work;
  assert_eq!((work.losses, work.executions), (0, 5));
}

#[test]
fn a_failure_ends_the_message_with_its_code() {
  let (mut agent, job) = running();
  let reply = agent.reply(job);
  let timer = reply.work.running.unwrap().timer;
  let decided = agent.when(inputs::failure(job, 1, "MODEL_REFUSED"));
  let posted = MessageId(derived(decided.input, 3));
  let code = "MODEL_REFUSED".to_owned();
  decided.then(&[
    ExecutionFailed { job, execution: 1, code: code.clone(), detail: "status 400".to_owned() }.into(),
    TimerCancelled { timer }.into(),
    ReplyFailed { job, conversation: reply.conversation, reply: reply.reply, code: code.clone() }.into(),
    NoticePosted { notice: posted, conversation: reply.conversation, reply_to: Some(job.into()), code, params: Vec::new() }.into(),
  ]);
  agent.when(inputs::ask(job)).then_refused(reason::ENDED);
}

#[test]
fn a_failure_without_a_usable_code_is_just_a_failure() {
  for code in ["", "not a code", &"X".repeat(65)] {
    let (mut agent, job) = running();
    let decided = agent.when(inputs::failure(job, 1, code));
    let expected = ExecutionFailed { job, execution: 1, code: notice::FAILED.to_owned(), detail: "status 400".to_owned() };
    assert_eq!(decided.events[0], expected.into());
  }
}
