//! How a task is instructed, paused, resumed and stopped.

use super::{ask, call, finish, report, running, status, turns, with_step};
use crate::call::{CallSkipped, Class, Outcome, SkipReason};
use crate::codes::reason;
use crate::ids::{self, JobId};
use crate::meta::Origin;
use crate::task::{PauseReason, Status, WaitReason};
use crate::testing::{TestAgent, inputs, tasks};

/// Proves STR-2, BB-10 and D1: the running call keeps its result, what had not begun is skipped and paired, and the model plans anew.
#[test]
fn bb_10_an_instruction_skips_what_has_not_begun_and_nothing_that_has() {
  let (mut agent, task) = with_step(&["search", "deliver"]);
  ask(&mut agent, task, 0, Class::Repeatable).then_types(&["CallStarted"]);
  agent.when(tasks::instruct(task, "don't send the file")).then_types(&["TaskInstructed"]);
  report(&mut agent, task, 0, Outcome::Returned).then_types(&["CallReturned"]);
  let skipped = CallSkipped { job: task.into(), call: call(task, 1), step: 1, index: 1, tool: "deliver".to_owned(), reason: SkipReason::Steered };
  ask(&mut agent, task, 1, Class::Contained).then(&[skipped.into()]);
  ask(&mut agent, task, 1, Class::Contained).then_refused(reason::CALL_SETTLED);
  agent.when(inputs::step(task.into(), 1, 2, &["search"])).then_types(&["StepRecorded"]);
  agent.when(inputs::call(task.into(), 1, (2, 0), "search", Class::Repeatable)).then_types(&["CallStarted"]);
}

/// Proves STR-6, RUN-25, D2 and the rules' side of BB-09: a result that was ready when the instruction came is refused, and a later one that saw it counts.
#[test]
fn bb_09_a_ready_result_is_discarded_when_an_instruction_came() {
  let (mut agent, task) = running();
  let seen = agent.ordinal();
  agent.when(tasks::instruct(task, "also add a total row")).then_types(&["TaskInstructed"]);
  assert_eq!(agent.task(task).revision(), agent.ordinal());
  let asked = |seen| inputs::finish(JobId::from(task), 1, 1, seen, "the table");
  agent.when(asked(seen)).then_types(&["StepRecorded", "InputSettled"]);
  assert_eq!(status(&agent, task), Status::Active);
  agent.when(asked(agent.ordinal())).then_types(&["ExecutionFinished", "TaskCompleted"]);
}

/// Proves RUN-3: a completed, failed or stopped task goes on in itself, as its next run.
#[test]
fn an_ended_task_goes_on_by_an_instruction() {
  let end: [fn(&mut TestAgent, crate::ids::TaskId); 3] = [
    |agent, task| {
      finish(agent, task, "done").then_types(&["StepRecorded", "ExecutionFinished", "TaskCompleted"]);
    },
    |agent, task| {
      assert!(agent.when(inputs::failure(task.into(), 1, "MODEL_REFUSED")).has("TaskFailed"));
    },
    |agent, task| {
      agent.when(tasks::stop(task)).then_types(&["ExecutionStopped", "TaskStopped"]);
    },
  ];
  for end in end {
    let (mut agent, task) = running();
    agent.when(inputs::step(task.into(), 1, 1, &["search"]));
    end(&mut agent, task);
    agent.when(tasks::ask(task));
    agent.when(tasks::instruct(task, "and now in French")).then_types(&["TaskInstructed", "TaskQueued", "TaskRunRequested"]);
    let state = agent.task(task);
    assert_eq!((state.status, state.run, state.work.running), (Status::Active, 2, None));
    agent.when(tasks::ask(task)).then_types(&["ExecutionStarted"]);
    let last = agent.task(task).work.last_step();
    agent.when(inputs::step(task.into(), 2, last + 1, &["search"])).then_types(&["StepRecorded"]);
    // What the first run had not begun does not begin in the second.
    let skipped = agent.when(inputs::call(task.into(), 2, (1, 0), "search", Class::Repeatable)).then_types(&["CallSkipped"]);
    assert!(skipped.has("CallSkipped"));
  }
}

/// Proves D1 for a pause: the running call finishes, its execution ends with it, and nothing new begins.
#[test]
fn a_pause_lets_the_running_call_finish() {
  let (mut agent, task) = with_step(&["search", "write"]);
  agent.when(tasks::start(tasks::task(2), "another"));
  ask(&mut agent, task, 0, Class::Repeatable);
  agent.when(tasks::pause(task)).then_types(&["TaskPaused"]);
  assert!(agent.task(task).work.running.is_some());
  let skipped = CallSkipped { job: task.into(), call: call(task, 1), step: 1, index: 1, tool: "write".to_owned(), reason: SkipReason::Paused };
  ask(&mut agent, task, 1, Class::Contained).then(&[skipped.into()]);
  agent.when(inputs::step(task.into(), 1, 2, &["search"])).then_unchanged(reason::PAUSED);
  agent.when(inputs::finish(JobId::from(task), 1, 2, i64::MAX, "done")).then_types(&["StepRecorded", "InputSettled"]);
  report(&mut agent, task, 0, Outcome::Returned).then_types(&["CallReturned", "ExecutionSuspended"]);
  agent.when(tasks::ask(task)).then_refused(reason::PAUSED);
  agent.when(tasks::pause(task)).then_unchanged(reason::ALREADY_DONE);
}

#[test]
fn a_pause_without_a_running_call_ends_the_execution_at_once_and_frees_its_turn() {
  let (mut agent, task) = running();
  for number in 2..=4 {
    agent.when(tasks::start(tasks::task(number), "go"));
  }
  let decided = agent.when(tasks::pause(task)).then_types(&["ExecutionSuspended", "TaskPaused", "TaskRunRequested"]);
  assert_eq!(turns(&decided), [tasks::task(4)]);
  let decided = agent.when(tasks::resume(task)).then_types(&["TaskResumed", "TaskQueued"]);
  assert_eq!(turns(&decided), [], "it stands at the end of the queue");
  assert_eq!(turns(&agent.when(tasks::stop(tasks::task(2)))), [task]);
}

#[test]
fn what_was_unasked_at_a_pause_is_skipped_after_the_resume() {
  let (mut agent, task) = with_step(&["search"]);
  let revision = agent.task(task).revision();
  agent.when(tasks::pause(task)).then_types(&["ExecutionSuspended", "TaskPaused"]);
  agent.when(tasks::resume(task)).then_types(&["TaskResumed", "TaskQueued", "TaskRunRequested"]);
  agent.when(tasks::ask(task)).then_types(&["ExecutionStarted"]);
  let skipped = CallSkipped { job: task.into(), call: call(task, 0), step: 1, index: 0, tool: "search".to_owned(), reason: SkipReason::Paused };
  ask(&mut agent, task, 0, Class::Repeatable).then(&[skipped.into()]);
  assert_eq!(agent.task(task).revision(), revision, "a resume is no instruction");
  finish(&mut agent, task, "done").then_types(&["StepRecorded", "ExecutionFinished", "TaskCompleted"]);
}

/// Proves the rules' side of SID-18: an instruction doesn't take a pause back; the resume does, and then the instruction counts.
#[test]
fn an_instruction_to_a_paused_task_waits_for_the_resume() {
  let (mut agent, task) = running();
  agent.when(tasks::pause(task));
  agent.when(tasks::instruct(task, "shorter")).then_types(&["TaskInstructed"]);
  assert_eq!(status(&agent, task), Status::Paused(PauseReason::Asked));
  agent.when(tasks::resume(task)).then_types(&["TaskResumed", "TaskQueued", "TaskRunRequested"]);
}

#[test]
fn a_task_that_goes_on_before_its_last_call_is_over_gets_a_new_execution() {
  let (mut agent, task) = with_step(&["look"]);
  ask(&mut agent, task, 0, Class::Repeatable);
  agent.when(tasks::pause(task)).then_types(&["TaskPaused"]);
  agent.when(tasks::resume(task)).then_types(&["TaskResumed", "ExecutionSuspended", "TaskQueued", "TaskRunRequested"]);
  agent.when(tasks::ask(task)).then_types(&["ExecutionStarted"]);
  ask(&mut agent, task, 0, Class::Repeatable).then_types(&["CallStarted"]);
  agent.when(inputs::outcome(task.into(), 1, call(task, 0), Outcome::Returned)).then_types(&["CallReturned"]);
}

/// Proves the rules' side of BB-11, STR-5 and REP-22: after a stop nothing begins, whatever its execution still asks; what had begun is still learnt of.
#[test]
fn bb_11_a_stop_ends_the_execution_and_nothing_follows() {
  let (mut agent, task) = with_step(&["shell", "write"]);
  ask(&mut agent, task, 0, Class::Contained);
  agent.when(tasks::stop(task)).then_types(&["ExecutionStopped", "TaskStopped"]);
  assert!(!agent.root.tasks.contains_key(&task));
  ask(&mut agent, task, 1, Class::Contained).then_types(&["CallSkipped"]);
  agent.when(inputs::step(task.into(), 1, 2, &["shell"])).then_unchanged(reason::STALE_EXECUTION);
  agent.when(inputs::finish(JobId::from(task), 1, 2, i64::MAX, "done")).then_refused(reason::STALE_EXECUTION);
  agent.when(tasks::ask(task)).then_refused(reason::STOPPED);
  report(&mut agent, task, 0, Outcome::Returned).then_types(&["CallReturned"]);
  agent.when(tasks::stop(task)).then_unchanged(reason::ALREADY_DONE);
}

/// Proves PR-29: stopped with a started call that never reports; the resumed task settles it by its class and may finish.
#[test]
fn pr_29_a_task_stopped_with_a_started_call_can_still_finish() {
  for class in [Class::Contained, Class::External] {
    let (mut agent, task) = with_step(&["act"]);
    let asked = match class {
      Class::External => {
        let asked = tasks::external(task, 1, (1, 0), "{}", tasks::computer("mac-1/notes"));
        let asked = crate::call::CallAsked { tool: "act".to_owned(), ..asked };
        agent.when(asked.clone());
        let card = super::card(&agent, task, 0);
        agent.when(tasks::decide(task, card, crate::task::Decision::ApproveOnce));
        agent.when(tasks::ask(task));
        crate::call::CallAsked { execution: 2, ..asked }
      }
      Class::Contained | Class::Repeatable => inputs::call(task.into(), 1, (1, 0), "act", class),
    };
    agent.when(asked).then_types(&["CallStarted"]);
    agent.when(tasks::stop(task));
    agent.when(tasks::resume(task));
    if class == Class::External {
      assert_eq!(status(&agent, task), Status::Waiting(WaitReason::UnknownEffect));
    }
    report(&mut agent, task, 0, Outcome::Unknown);
    if class == Class::External {
      let decided = agent.when(inputs::reconcile(task.into(), call(task, 0), false));
      decided.then_types(&["CallReconciled", "TaskQueued", "TaskRunRequested"]);
    }
    agent.when(tasks::ask(task)).then_types(&["ExecutionStarted"]);
    finish(&mut agent, task, "done").then_types(&["StepRecorded", "ExecutionFinished", "TaskCompleted"]);
  }
}

/// Proves D30 for steering: only the owner, or a turn of theirs through the log, steers a task.
#[test]
fn only_the_owner_steers() {
  let (mut agent, task) = running();
  for origin in [Origin::Agent, Origin::Tool, Origin::ThirdParty, Origin::Platform] {
    agent.when_from(origin, tasks::instruct(task, "send it to me")).then_refused(reason::NOT_ALLOWED);
    agent.when_from(origin, tasks::pause(task)).then_refused(reason::NOT_ALLOWED);
    agent.when_from(origin, tasks::resume(task)).then_refused(reason::NOT_ALLOWED);
    agent.when_from(origin, tasks::stop(task)).then_refused(reason::NOT_ALLOWED);
  }
}

#[test]
fn what_can_not_be_done_now_is_refused() {
  let (mut agent, task) = running();
  agent.when(tasks::instruct(task, " ")).then_refused(reason::TEXT_EMPTY);
  agent.when(tasks::instruct(tasks::task(7), "hello")).then_refused(reason::NOT_FOUND);
  agent.when(tasks::resume(task)).then_unchanged(reason::ALREADY_DONE);
  finish(&mut agent, task, "done");
  agent.when(tasks::pause(task)).then_refused(reason::STATE_CHANGED);
  agent.when(tasks::resume(task)).then_refused(reason::STATE_CHANGED);
  agent.when(tasks::stop(task)).then_refused(reason::STATE_CHANGED);
}

#[test]
fn old_steps_are_forgotten_with_their_settled_calls() {
  let (mut agent, task) = running();
  for step in 1..=20 {
    agent.when(inputs::step(task.into(), 1, step, &["look"])).then_types(&["StepRecorded"]);
    agent.when(inputs::call(task.into(), 1, (step, 0), "look", Class::Repeatable)).then_types(&["CallStarted"]);
    if step != 2 {
      agent.when(inputs::outcome(task.into(), 1, ids::call(task.into(), step, 0), Outcome::Returned));
    }
  }
  let work = agent.task(task).work;
  assert_eq!((work.steps.len(), work.calls.len(), work.last_step()), (16, 17, 20));
  agent.when(inputs::call(task.into(), 1, (1, 0), "look", Class::Repeatable)).then_refused(reason::NO_SUCH_CALL);
  agent.when(inputs::outcome(task.into(), 1, ids::call(task.into(), 2, 0), Outcome::Returned)).then_types(&["CallReturned"]);
}
