//! Whose turn it is.

use super::{finish, running, turns};
use crate::codes::reason;
use crate::execution::{ExecutionStarted, JobKind};
use crate::ids::{MessageId, Timestamp, conversation_of};
use crate::limits::TASKS_OPEN_MAX;
use crate::meta::Origin;
use crate::settings::SettingsGiven;
use crate::testing::{TestAgent, inputs, tasks};

/// Proves the rules' side of RUN-2: a task has its own id, its own conversation and its own executions.
#[test]
fn a_task_starts_with_a_conversation_and_executions_of_its_own() {
  let mut agent = TestAgent::alive();
  let task = tasks::task(1);
  agent.when(tasks::start(task, "Write the report")).then_types(&["ConversationOpened", "TaskStarted", "TaskRunRequested"]);
  let state = agent.task(task);
  assert_eq!((state.conversation, Some(state.asked_in), state.run), (conversation_of(task), agent.root.main, 1));
  assert_eq!(state.revision(), agent.ordinal() - 1, "the start is the first revision");
  let (job, conversation) = (task.into(), state.conversation);
  let started = ExecutionStarted { job, kind: JobKind::Task, execution: 1, conversation, reply: MessageId(task.0), limit_ms: Timestamp(0) };
  agent.when(tasks::ask(task)).then(&[started.into()]);
  agent.when(tasks::ask(task)).then_refused(reason::ALREADY_RUNNING);
}

/// Proves RUN-19: a task's execution has no limit and so no timer.
#[test]
fn a_task_has_no_deadline() {
  let (agent, task) = running();
  assert_eq!(agent.task(task).work.running.unwrap().limit_ms, Timestamp(0));
  assert!(agent.root.timers.is_empty());
}

/// Proves RUN-12: three tasks run at once when nobody chose otherwise; the others wait in their order.
#[test]
fn three_tasks_have_their_turn_and_the_fourth_waits() {
  let mut agent = TestAgent::alive();
  for number in 1..=3 {
    assert_eq!(turns(&agent.when(tasks::start(tasks::task(number), "go"))), [tasks::task(number)]);
  }
  for number in [9, 4] {
    assert_eq!(turns(&agent.when(tasks::start(tasks::task(number), "go"))), []);
    agent.when(tasks::ask(tasks::task(number))).then_refused(reason::NOT_QUEUED);
  }
  agent.when(tasks::ask(tasks::task(2)));
  assert_eq!(turns(&finish(&mut agent, tasks::task(2), "done")), [tasks::task(9)], "the one that waited longest, whatever its id");
  assert_eq!(turns(&agent.when(tasks::stop(tasks::task(1)))), [tasks::task(4)]);
  assert_eq!(turns(&agent.when(tasks::stop(tasks::task(3)))), []);
}

/// Proves the rules' side of RUN-13: a higher setting gives turns at once, a lower one takes none away.
#[test]
fn the_setting_says_how_many_run_at_once() {
  let mut agent = TestAgent::alive();
  for number in 1..=9 {
    agent.when(tasks::start(tasks::task(number), "go"));
  }
  let raised = agent.when(SettingsGiven { version: 1, concurrency: Some(8), ..SettingsGiven::default() });
  assert_eq!(turns(&raised), [4, 5, 6, 7, 8].map(tasks::task));
  let lowered = agent.when(SettingsGiven { version: 2, concurrency: Some(1), ..SettingsGiven::default() });
  assert_eq!(turns(&lowered), []);
  for number in 1..=7 {
    assert_eq!(turns(&agent.when(tasks::stop(tasks::task(number)))), [], "eight ran, and one may");
  }
  assert_eq!(turns(&agent.when(tasks::stop(tasks::task(8)))), [tasks::task(9)]);
}

#[test]
fn a_task_that_is_stopped_in_the_queue_frees_no_turn() {
  let mut agent = TestAgent::alive();
  for number in 1..=5 {
    agent.when(tasks::start(tasks::task(number), "go"));
  }
  assert_eq!(turns(&agent.when(tasks::stop(tasks::task(4)))), []);
  assert_eq!(turns(&agent.when(tasks::stop(tasks::task(1)))), [tasks::task(5)]);
}

#[test]
fn the_same_start_again_starts_nothing() {
  let (mut agent, task) = running();
  agent.when(tasks::start(task, "Write the report")).then_unchanged(reason::ALREADY_DONE);
  agent.when(tasks::start(task, "Write another report")).then_refused(reason::REQUEST_KEY_CONFLICT);
}

#[test]
fn a_goal_has_its_limits() {
  let mut agent = TestAgent::alive();
  agent.when(tasks::start(tasks::task(1), " \n")).then_refused(reason::TEXT_EMPTY);
  agent.when(tasks::start(tasks::task(1), &"x".repeat(crate::limits::MESSAGE_TEXT_BYTES_MAX + 1))).then_refused(reason::TEXT_TOO_LONG);
  for origin in [Origin::Agent, Origin::Tool, Origin::ThirdParty] {
    agent.when_from(origin, tasks::start(tasks::task(1), "go")).then_refused(reason::NOT_ALLOWED);
  }
  let untitled = crate::task::TaskStartAsked { title: " ".to_owned(), ..tasks::start(tasks::task(1), " Buy\nmilk") };
  agent.when(untitled);
  assert_eq!(agent.task(tasks::task(1)).title, "Buy");
}

#[test]
fn too_many_open_tasks_are_refused() {
  let mut agent = TestAgent::alive();
  for number in 1..=u64::try_from(TASKS_OPEN_MAX).unwrap() {
    agent.when(tasks::start(tasks::task(number), "go"));
  }
  agent.when(tasks::start(tasks::task(999), "go")).then_refused(reason::QUEUE_FULL);
  agent.when(tasks::stop(tasks::task(1)));
  assert!(agent.when(tasks::start(tasks::task(999), "go")).has("TaskStarted"));
  agent.when(tasks::instruct(tasks::task(1), "more")).then_refused(reason::QUEUE_FULL);
}

/// Proves RUN-6: nobody writes in a task's conversation; a task is instructed.
#[test]
fn a_tasks_conversation_takes_no_messages() {
  let (mut agent, task) = running();
  agent.when(inputs::message_in(conversation_of(task), "hello")).then_refused(reason::NOT_FOUND);
}
