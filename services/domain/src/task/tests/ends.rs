//! How a task ends.

use super::{ask, finish, report, running, status, with_step};
use crate::call::{Class, Outcome};
use crate::codes::reason;
use crate::conversation::Author;
use crate::execution::FinishAsked;
use crate::ids::JobId;
use crate::limits::MESSAGE_TEXT_BYTES_MAX;
use crate::task::{Status, TaskCompleted, TaskFailed};
use crate::testing::{inputs, tasks};

/// Proves the rules' side of RUN-29: the result that the worker finishes with is the task's, whole.
#[test]
fn a_finish_completes_the_task_with_its_result_whole() {
  let (mut agent, task) = running();
  let (revision, asked_in) = (agent.task(task).revision(), agent.root.main.unwrap());
  let text = "é".repeat(MESSAGE_TEXT_BYTES_MAX / 2);
  let decided = finish(&mut agent, task, &text);
  let completed = TaskCompleted { task, asked_in, author: Author::Owner, title: "Report".to_owned(), revision, text };
  assert_eq!(decided.events[2], completed.into());
  assert_eq!(status(&agent, task), Status::Completed);
  assert!(!agent.root.tasks.contains_key(&task));
  agent.when(tasks::ask(task)).then_refused(reason::ENDED);
}

#[test]
fn a_result_that_does_not_fit_is_refused_and_not_cut() {
  let (mut agent, task) = running();
  finish(&mut agent, task, &"x".repeat(MESSAGE_TEXT_BYTES_MAX + 1)).then_types(&["StepRecorded", "InputSettled"]);
  finish(&mut agent, task, " ").then_types(&["StepRecorded", "InputSettled"]);
  assert_eq!(status(&agent, task), Status::Active);
}

/// Proves the rules' side of PR-24 for tasks: a finish over an open call is refused, and asked again it counts.
#[test]
fn a_task_does_not_finish_over_a_started_call() {
  for class in [Class::Repeatable, Class::Contained] {
    let (mut agent, task) = with_step(&["tool"]);
    ask(&mut agent, task, 0, class);
    let asked = |agent: &crate::testing::TestAgent| inputs::finish(JobId::from(task), 1, 2, agent.ordinal(), "done");
    agent.when(asked(&agent)).then_types(&["StepRecorded", "InputSettled"]);
    agent.when(asked(&agent)).then_refused(reason::FINISH_TOO_EARLY);
    report(&mut agent, task, 0, Outcome::Returned);
    agent.when(asked(&agent)).then_types(&["ExecutionFinished", "TaskCompleted"]);
  }
}

/// Proves the rules' side of RUN-31 and BB-16: what is no result does not complete the task; it stays on it as the last progress.
#[test]
fn bb_16_progress_is_never_a_result() {
  let (mut agent, task) = running();
  let text = "250 of 486 done, continuing".to_owned();
  let asked = FinishAsked { incomplete: true, ..inputs::finish(JobId::from(task), 1, 1, agent.ordinal(), &text) };
  let revision = agent.task(task).revision();
  let decided = agent.when(asked).then_types(&["StepRecorded", "ExecutionFinished", "TaskFailed", "NoticePosted"]);
  let failed = TaskFailed { task, revision, code: reason::INCOMPLETE.to_owned(), detail: String::new(), text };
  assert_eq!(decided.events[2], failed.into());
  assert_eq!(status(&agent, task), Status::Failed);
  assert_eq!(agent.carry_on(), [], "no result is reported");
  agent.when(tasks::resume(task)).then_types(&["TaskResumed", "TaskQueued", "TaskRunRequested"]);
}

#[test]
fn a_failure_ends_the_task_with_one_notice() {
  let (mut agent, task) = running();
  agent.when(inputs::failure(task.into(), 1, "MODEL_REFUSED")).then_types(&["ExecutionFailed", "TaskFailed", "NoticePosted"]);
  assert_eq!(status(&agent, task), Status::Failed);
  agent.when(inputs::failure(task.into(), 1, "MODEL_REFUSED")).then_unchanged(reason::STALE_EXECUTION);
}

#[test]
fn the_work_of_a_task_is_no_turn_of_a_conversation() {
  let (mut agent, task) = running();
  agent.when(inputs::ask(task.into())).then_refused(reason::NOT_QUEUED);
  let message = agent.when(inputs::message("hello")).message();
  agent.when(tasks::ask(message.into())).then_refused(reason::NOT_QUEUED);
  assert_eq!(agent.root.open_messages(), 1, "tasks and conversations do not wait for each other");
}
