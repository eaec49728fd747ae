//! What a task waits for, how often it returns by itself, and what is said about it.

use super::{ask, call, report, running, status, with_step};
use crate::call::{CallAsked, Class, Outcome};
use crate::codes::{notice, reason};
use crate::conversation::{NoticeParam, NoticePosted};
use crate::event::Event;
use crate::ids::TaskId;
use crate::limits::TASK_RETURNS_MAX;
use crate::task::{Decision, PauseReason, Status, WaitReason};
use crate::testing::{Decided, TestAgent, inputs, tasks};

fn notice_of(decided: &Decided) -> NoticePosted {
  let posted = |event: &Event| if let Event::Conversation(crate::conversation::Event::NoticePosted(posted)) = event { Some(posted.clone()) } else { None };
  decided.events.iter().find_map(posted).expect("a notice")
}

/// A task with an external call that was approved and has started.
fn with_external() -> (TestAgent, TaskId) {
  let (mut agent, task) = with_step(&["send", "read"]);
  let asked = tasks::external(task, 1, (1, 0), "{}", tasks::email("ada@example.org: hello"));
  agent.when(asked.clone()).then_types(&["CallHeld", "ExecutionSuspended", "TaskWaiting"]);
  let card = super::card(&agent, task, 0);
  agent.when(tasks::decide(task, card, Decision::ApproveOnce)).then_types(&["ActionApproved", "TaskQueued", "TaskRunRequested"]);
  agent.when(tasks::ask(task)).then_types(&["ExecutionStarted"]);
  agent.when(CallAsked { execution: 2, ..asked }).then_types(&["CallStarted"]);
  (agent, task)
}

/// Proves RUN-17 and the rules' side of BB-13 and BB-14: a task returns by itself twice; then it waits, with one notice.
#[test]
fn bb_14_the_third_loss_makes_the_task_wait_with_one_notice() {
  let (mut agent, task) = running();
  for execution in 1..=TASK_RETURNS_MAX {
    agent.when(inputs::loss(task.into(), execution)).then_types(&["ExecutionLost"]);
    agent.when(inputs::step(task.into(), execution, 1, &["search"])).then_unchanged(reason::STALE_EXECUTION);
    agent.when(tasks::ask(task)).then_types(&["ExecutionStarted"]);
  }
  let decided = agent.when(inputs::loss(task.into(), 3)).then_types(&["ExecutionLost", "NoticePosted", "TaskWaiting"]);
  let posted = notice_of(&decided);
  assert_eq!((posted.code.as_str(), Some(posted.conversation)), (notice::TASK_INTERRUPTED, agent.root.main));
  let params = [NoticeParam::new("task", task.to_string()), NoticeParam::new("title", "Report"), NoticeParam::new("losses", "3")];
  assert_eq!(posted.params, params);
  assert_eq!(status(&agent, task), Status::Waiting(WaitReason::Notice));
  agent.when(tasks::ask(task)).then_refused(reason::WAITING);
  agent.when(inputs::loss(task.into(), 3)).then_unchanged(reason::STALE_EXECUTION);
}

#[test]
fn an_instruction_or_a_resume_lets_it_go_on_and_the_losses_no_longer_count() {
  for goes_on in [tasks::resume(tasks::task(1)), tasks::instruct(tasks::task(1), "try again").into()] {
    let (mut agent, task) = running();
    for execution in 1..=3 {
      agent.when(inputs::loss(task.into(), execution));
      agent.when(tasks::ask(task));
    }
    assert!(agent.when(goes_on).has("TaskRunRequested"));
    assert_eq!((agent.task(task).work.losses, agent.task(task).run), (0, 1));
    agent.when(tasks::ask(task)).then_types(&["ExecutionStarted"]);
    agent.when(inputs::loss(task.into(), 4)).then_types(&["ExecutionLost"]);
  }
}

#[test]
fn a_yield_is_no_loss() {
  let (mut agent, task) = running();
  for execution in 1..=5 {
    agent.when(inputs::give_back(task.into(), execution)).then_types(&["ExecutionYielded"]);
    agent.when(tasks::ask(task)).then_types(&["ExecutionStarted"]);
  }
  assert_eq!(agent.task(task).work.losses, 0);
}

/// Proves RUN-18 and RUN-4: interrupted with an external call open the task waits, a notice asks the owner, and their word lets it go on.
#[test]
fn an_unknown_effect_makes_the_task_wait_for_the_owner() {
  let (mut agent, task) = with_external();
  agent.when(inputs::loss(task.into(), 2)).then_types(&["ExecutionLost", "TaskWaiting"]);
  agent.when(tasks::ask(task)).then_refused(reason::WAITING_FOR_CALL);
  let decided = report(&mut agent, task, 0, Outcome::Unknown).then_types(&["CallUnknown", "NoticePosted"]);
  assert_eq!(notice_of(&decided).code, notice::CALL_UNKNOWN);
  agent.when(tasks::resume(task)).then_refused(reason::STATE_CHANGED);
  agent.when(tasks::instruct(task, "just go on")).then_types(&["TaskInstructed"]);
  assert_eq!(status(&agent, task), Status::Waiting(WaitReason::UnknownEffect));
  agent.when(inputs::reconcile(task.into(), call(task, 0), true)).then_types(&["CallReconciled", "TaskQueued", "TaskRunRequested"]);
}

/// Proves the rules' side of SID-12: an outcome that comes late by itself lets the task go on without anybody's word.
#[test]
fn a_late_outcome_lets_the_task_go_on() {
  let (mut agent, task) = with_external();
  agent.when(inputs::give_back(task.into(), 2)).then_types(&["ExecutionYielded", "TaskWaiting"]);
  report(&mut agent, task, 0, Outcome::Returned).then_types(&["CallReturned", "TaskQueued", "TaskRunRequested"]);
}

#[test]
fn an_unknown_outcome_in_the_middle_ends_the_execution() {
  let (mut agent, task) = with_external();
  let decided = report(&mut agent, task, 0, Outcome::Unknown);
  decided.then_types(&["CallUnknown", "NoticePosted", "ExecutionSuspended", "TaskWaiting"]);
  agent.when(inputs::outcome(task.into(), 2, call(task, 0), Outcome::Returned)).then_types(&["CallReconciled", "TaskQueued", "TaskRunRequested"]);
}

/// Proves the rules' side of SID-18: a pause outlasts the settling of an unknown effect, and an effect outlasts the resume.
#[test]
fn neither_a_pause_nor_an_unknown_effect_overrides_the_other() {
  let (mut agent, task) = with_external();
  agent.when(inputs::loss(task.into(), 2));
  agent.when(tasks::pause(task)).then_types(&["TaskPaused"]);
  agent.when(tasks::resume(task)).then_types(&["TaskResumed", "TaskWaiting"]);
  assert_eq!(status(&agent, task), Status::Waiting(WaitReason::UnknownEffect));
  agent.when(tasks::pause(task));
  report(&mut agent, task, 0, Outcome::Returned).then_types(&["CallReturned"]);
  assert_eq!(status(&agent, task), Status::Paused(PauseReason::Asked));
  agent.when(tasks::resume(task)).then_types(&["TaskResumed", "TaskQueued", "TaskRunRequested"]);
}

/// Proves RUN-4: an ended task that goes on still waits for the unknown effect of its last run.
#[test]
fn an_unknown_effect_outlasts_the_end_of_a_run() {
  let (mut agent, task) = with_external();
  agent.when(tasks::stop(task));
  report(&mut agent, task, 0, Outcome::Unknown).then_types(&["CallUnknown", "NoticePosted"]);
  agent.when(tasks::instruct(task, "go on")).then_types(&["TaskInstructed", "TaskWaiting"]);
  agent.when(inputs::reconcile(task.into(), call(task, 0), false)).then_types(&["CallReconciled", "TaskQueued", "TaskRunRequested"]);
}

/// Proves RUN-24: a model that repeats itself pauses the task, with a notice; an instruction lets it go on.
#[test]
fn a_model_that_repeats_itself_pauses_the_task_with_an_explanation() {
  let (mut agent, task) = running();
  agent.when(tasks::looped(task, 9)).then_unchanged(reason::STALE_EXECUTION);
  let decided = agent.when(tasks::looped(task, 1)).then_types(&["ExecutionSuspended", "TaskPaused", "NoticePosted"]);
  assert_eq!(notice_of(&decided).code, notice::TASK_LOOPED);
  assert_eq!(status(&agent, task), Status::Paused(PauseReason::OutputLooped));
  agent.when(tasks::looped(task, 1)).then_unchanged(reason::STALE_EXECUTION);
  agent.when(tasks::instruct(task, "use the other source")).then_types(&["TaskInstructed", "TaskQueued", "TaskRunRequested"]);
}

/// Proves the rules' side of SID-16 and SID-17: a busy desktop is waited for, durably, and the task is queued again when it is free.
#[test]
fn a_busy_desktop_is_waited_for() {
  let (mut agent, task) = with_step(&["read"]);
  agent.when(tasks::desktop_free(task)).then_unchanged(reason::NOT_SET);
  ask(&mut agent, task, 0, Class::Repeatable);
  agent.when(tasks::desktop_busy(task, 1)).then_unchanged(reason::CALL_STARTED);
  report(&mut agent, task, 0, Outcome::Failed);
  agent.when(tasks::desktop_busy(task, 1)).then_types(&["ExecutionSuspended", "TaskWaiting"]);
  assert_eq!(status(&agent, task), Status::Waiting(WaitReason::Desktop));
  agent.when(tasks::ask(task)).then_refused(reason::WAITING);
  agent.when(tasks::desktop_free(task)).then_types(&["TaskQueued", "TaskRunRequested"]);
}

/// Proves the rules' side of PR-23 for tasks: a yield while a contained call runs doesn't block the next execution for ever.
#[test]
fn pr_23_a_contained_call_of_a_yielded_execution_is_settled_by_its_class() {
  let (mut agent, task) = with_step(&["shell"]);
  ask(&mut agent, task, 0, Class::Contained);
  agent.when(inputs::give_back(task.into(), 1)).then_types(&["ExecutionYielded"]);
  agent.when(tasks::ask(task)).then_types(&["ExecutionStarted"]);
  ask(&mut agent, task, 0, Class::Contained).then_refused(reason::CALL_OPEN);
  super::finish(&mut agent, task, "done").then_types(&["StepRecorded", "InputSettled"]);
  agent.when(inputs::outcome(task.into(), 1, call(task, 0), Outcome::Unknown)).then_types(&["CallUnknown"]);
  let asked = inputs::finish(task.into(), 2, 2, agent.ordinal(), "done");
  agent.when(asked).then_types(&["ExecutionFinished", "TaskCompleted"]);
}

#[test]
fn a_settled_effect_does_not_let_a_task_return_once_too_often() {
  let (mut agent, task) = with_external();
  report(&mut agent, task, 0, Outcome::Returned);
  for execution in 2..=3 {
    agent.when(inputs::loss(task.into(), execution)).then_types(&["ExecutionLost"]);
    agent.when(tasks::ask(task));
  }
  agent.when(inputs::step(task.into(), 4, 2, &["send"]));
  let asked = tasks::external(task, 4, (2, 0), "{}", tasks::email("grace@example.org: hello"));
  agent.when(asked.clone());
  let card = agent.task(task).work.calls[&asked.call].card.as_ref().unwrap().id;
  agent.when(tasks::decide(task, card, Decision::ApproveOnce));
  agent.when(tasks::ask(task));
  agent.when(CallAsked { execution: 5, ..asked.clone() }).then_types(&["CallStarted"]);
  agent.when(inputs::loss(task.into(), 5)).then_types(&["ExecutionLost", "TaskWaiting"]);
  let decided = agent.when(inputs::outcome(task.into(), 5, asked.call, Outcome::Returned));
  decided.then_types(&["CallReturned", "NoticePosted", "TaskWaiting"]);
  assert_eq!(status(&agent, task), Status::Waiting(WaitReason::Notice));
}
