//! What becomes of a started call when its execution is lost, given back or stopped: by its class (D13).

use super::{ask, with_started};
use crate::call::{CallStatus, Class, Outcome};
use crate::codes::reason;
use crate::event::Input;
use crate::ids::JobId;
use crate::testing::{TestAgent, inputs};

const FINISHED: [&str; 4] = ["StepRecorded", "ExecutionFinished", "TimerCancelled", "ReplyPosted"];

fn finish(agent: &mut TestAgent, job: JobId) -> crate::testing::Decided {
  let work = agent.reply(job).work;
  agent.when(inputs::finish(job, work.executions, work.last_step() + 1, agent.ordinal(), "done"))
}

/// Proves PR-24 for a call: the next execution's ask is a new ask, and a repeatable call is made again.
#[test]
fn pr_24_a_repeatable_call_is_asked_again_by_the_next_execution() {
  let (mut agent, job, call) = with_started(Class::Repeatable);
  agent.when(inputs::loss(job, 1));
  agent.when(inputs::ask(job));
  finish(&mut agent, job).then_types(&["StepRecorded", "InputSettled"]);
  ask(&mut agent, job, 2, Class::Repeatable).then_types(&["CallStarted"]);
  ask(&mut agent, job, 2, Class::Repeatable).then_refused(reason::CALL_STARTED);
  assert_eq!(agent.reply(job).work.calls[&call].started_by, [1, 2]);
  agent.when(inputs::outcome(job, 2, call, Outcome::Returned)).then_types(&["CallReturned"]);
  finish(&mut agent, job).then_types(&FINISHED);
}

/// Proves PR-23: after a yield with a started contained call, the computer's word lets the next execution finish.
#[test]
fn pr_23_a_call_that_ran_at_a_yield_is_settled_by_its_class() {
  let (mut agent, job, call) = with_started(Class::Contained);
  agent.when(inputs::give_back(job, 1)).then_types(&["ExecutionYielded", "TimerCancelled"]);
  agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
  ask(&mut agent, job, 2, Class::Contained).then_refused(reason::CALL_OPEN);
  finish(&mut agent, job).then_types(&["StepRecorded", "InputSettled"]);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown)).then_types(&["CallUnknown"]);
  ask(&mut agent, job, 2, Class::Contained).then_refused(reason::CALL_SETTLED);
  finish(&mut agent, job).then_types(&FINISHED);
}

/// Proves RUN-17 and RUN-18 for a reply: a job with an open external call waits, from its start until somebody knows.
#[test]
fn a_job_with_an_open_external_call_waits() {
  let (mut agent, job, call) = with_started(Class::External);
  agent.when(inputs::loss(job, 1)).then_types(&["ExecutionLost", "TimerCancelled"]);
  agent.when(inputs::ask(job)).then_refused(reason::WAITING_FOR_CALL);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown)).then_types(&["CallUnknown", "NoticePosted"]);
  agent.when(inputs::ask(job)).then_refused(reason::WAITING_FOR_CALL);
  agent.when(inputs::reconcile(job, call, true)).then_types(&["CallReconciled"]);
  agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
  finish(&mut agent, job).then_types(&FINISHED);
}

#[test]
fn an_external_call_that_turns_out_unknown_blocks_the_running_execution() {
  let (mut agent, job, call) = with_started(Class::External);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown));
  finish(&mut agent, job).then_types(&["StepRecorded", "InputSettled"]);
  ask(&mut agent, job, 1, Class::External).then_refused(reason::WAITING_FOR_CALL);
  agent.when(inputs::outcome(job, 1, call, Outcome::Failed)).then_types(&["CallReconciled"]);
  finish(&mut agent, job).then_types(&FINISHED);
}

/// Proves the rules' side of PR-22: however long its worker sleeps, the owner has no word about a call before it is unknown, and the worker gets no second permit.
#[test]
fn pr_22_the_owner_has_no_word_before_the_outcome_is_unknown() {
  let (mut agent, job, call) = with_started(Class::External);
  agent.when(inputs::loss(job, 1));
  agent.when(inputs::reconcile(job, call, false)).then_refused(reason::STATE_CHANGED);
  ask(&mut agent, job, 1, Class::External).then_refused(reason::STALE_EXECUTION);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown)).then_types(&["CallUnknown", "NoticePosted"]);
  agent.when(inputs::reconcile(job, call, false)).then_types(&["CallReconciled"]);
}

/// Proves the rules' side of PR-28: a restart alone neither settles nor repeats an external call; only the word that its processes are ended does.
#[test]
fn pr_28_a_restart_does_not_settle_an_external_call() {
  let (mut agent, job, call) = with_started(Class::External);
  agent.when(crate::execution::ExecutionLossReported { job, execution: 1, reason: crate::execution::LossReason::NodeRestarted });
  assert_eq!(agent.reply(job).work.calls[&call].status, CallStatus::Started);
  agent.when(inputs::reconcile(job, call, false)).then_refused(reason::STATE_CHANGED);
  agent.when(inputs::ask(job)).then_refused(reason::WAITING_FOR_CALL);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown));
  agent.when(inputs::reconcile(job, call, false)).then_types(&["CallReconciled"]);
  agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
  ask(&mut agent, job, 2, Class::External).then_refused(reason::CALL_SETTLED);
}

/// Proves PR-29: stopped while a call runs, no outcome comes, tried again: settled by its class, and the finish isn't blocked for ever.
#[test]
fn pr_29_a_call_that_ran_at_a_stop_is_settled_by_its_class() {
  let (mut agent, job, call) = with_started(Class::Contained);
  agent.when(inputs::stop(job, ""));
  agent.when(inputs::retry(job)).then_types(&["MessageRetried", "ReplyRequested"]);
  agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown)).then_types(&["CallUnknown"]);
  finish(&mut agent, job).then_types(&FINISHED);

  let (mut agent, job, call) = with_started(Class::External);
  agent.when(inputs::stop(job, ""));
  agent.when(inputs::retry(job)).then_types(&["MessageRetried", "ReplyRequested"]);
  agent.when(inputs::ask(job)).then_refused(reason::WAITING_FOR_CALL);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown)).then_types(&["CallUnknown", "NoticePosted"]);
  agent.when(inputs::reconcile(job, call, false)).then_types(&["CallReconciled"]);
  agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
  finish(&mut agent, job).then_types(&FINISHED);

  let (mut agent, job, call) = with_started(Class::Repeatable);
  agent.when(inputs::stop(job, ""));
  agent.when(inputs::retry(job));
  agent.when(inputs::ask(job));
  ask(&mut agent, job, 2, Class::Repeatable).then_types(&["CallSkipped"]);
  agent.when(inputs::outcome(job, 1, call, Outcome::Returned)).then_unchanged(reason::CALL_SETTLED);
  finish(&mut agent, job).then_types(&FINISHED);
}

#[test]
fn a_repeatable_call_is_not_repeated_as_something_else() {
  let (mut agent, job, _) = with_started(Class::Repeatable);
  agent.when(inputs::loss(job, 1));
  agent.when(inputs::ask(job));
  ask(&mut agent, job, 2, Class::Contained).then_refused(reason::CALL_OPEN);
  ask(&mut agent, job, 2, Class::External).then_refused(reason::CALL_OPEN);
  ask(&mut agent, job, 2, Class::Repeatable).then_types(&["CallStarted"]);
}

#[test]
fn no_class_is_repeated_but_the_repeatable() {
  for ending in [inputs::loss as fn(JobId, i32) -> Input, inputs::give_back] {
    let (mut agent, job, _) = with_started(Class::Contained);
    agent.when(ending(job, 1));
    agent.when(inputs::ask(job));
    for class in [Class::Repeatable, Class::Contained, Class::External] {
      ask(&mut agent, job, 2, class).then_refused(reason::CALL_OPEN);
    }
  }
}
