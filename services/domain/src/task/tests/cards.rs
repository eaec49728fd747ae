//! Cards: what is held, what approves, what does not.

use super::{ask, call, card, finish, report, running, status, with_step};
use crate::call::{CallAsked, CallHeld, CallSkipped, Class, Gate, Outcome, SkipReason};
use crate::codes::reason;
use crate::event::Event;
use crate::ids::{ActionId, Timestamp, derived};
use crate::meta::Origin;
use crate::task::{ActionApproved, ActionWithdrawn, Decision, Status, WaitReason, WithdrawReason};
use crate::testing::{Decided, TestAgent, inputs, tasks};

const HELD: [&str; 3] = ["CallHeld", "ExecutionSuspended", "TaskWaiting"];

/// The execution asks for the outside call number `index` of the first step.
fn act(agent: &mut TestAgent, index: i32, action: &str, gate: Gate) -> Decided {
  let task = tasks::task(1);
  let execution = agent.task(task).work.executions;
  agent.when(tasks::external(task, execution, (1, index), action, gate))
}

fn decide(agent: &mut TestAgent, index: i32, decision: Decision) -> Decided {
  let card = card(agent, tasks::task(1), index);
  agent.when(tasks::decide(tasks::task(1), card, decision))
}

fn next_execution(agent: &mut TestAgent) {
  agent.when(tasks::ask(tasks::task(1))).then_types(&["ExecutionStarted"]);
}

fn skipped(decided: &Decided) -> Option<SkipReason> {
  let skip = |event: &Event| if let Event::Call(crate::call::Event::CallSkipped(CallSkipped { reason, .. })) = event { Some(*reason) } else { None };
  decided.events.iter().find_map(skip)
}

/// Proves USE-13 and USE-15: an outside call is held with everything that it would do, and one approval makes exactly this call start.
#[test]
fn an_outside_call_is_held_and_one_approval_starts_it_once() {
  let (mut agent, task) = with_step(&["send", "send"]);
  let gate = tasks::email("ada@example.org: Report");
  let decided = act(&mut agent, 0, r#"{"body":"hello"}"#, gate.clone());
  let id = ActionId(derived(decided.input, 0));
  let held = CallHeld {
    job: task.into(),
    execution: 1,
    step: 1,
    index: 0,
    call: call(task, 0),
    card: id,
    tool: "send".to_owned(),
    class: Class::External,
    gate: gate.clone(),
    action: r#"{"body":"hello"}"#.to_owned(),
    limit_millis: 10_000,
  };
  assert_eq!(decided.events[0], held.into());
  decided.then_types(&HELD);
  assert_eq!(status(&agent, task), Status::Waiting(WaitReason::Approval));
  let approved = agent.when(tasks::decide(task, id, Decision::ApproveOnce)).then_types(&["ActionApproved", "TaskQueued", "TaskRunRequested"]);
  assert_eq!(approved.events[0], ActionApproved { task, card: id, call: call(task, 0), scope: None }.into());
  next_execution(&mut agent);
  let started = act(&mut agent, 0, r#"{"body":"hello"}"#, gate.clone()).then_types(&["CallStarted"]);
  let Event::Call(crate::call::Event::CallStarted(started)) = &started.events[0] else { panic!("started") };
  assert_eq!(started.card, Some(id), "the log says who allowed it");
  report(&mut agent, task, 0, Outcome::Returned);
  act(&mut agent, 0, r#"{"body":"hello"}"#, gate.clone()).then_refused(reason::CALL_SETTLED);
  act(&mut agent, 1, r#"{"body":"hello"}"#, gate).then_types(&HELD);
}

/// Proves the rules' side of BB-42: nothing of a card is lost when its execution is, or when the state is folded anew.
#[test]
fn bb_42_a_card_outlasts_every_restart() {
  let (mut agent, task) = with_step(&["send"]);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report"));
  let mut agent = agent.replayed();
  decide(&mut agent, 0, Decision::ApproveOnce).then_types(&["ActionApproved", "TaskQueued", "TaskRunRequested"]);
  let mut agent = agent.replayed();
  next_execution(&mut agent);
  agent.when(inputs::loss(task.into(), 2)).then_types(&["ExecutionLost"]);
  next_execution(&mut agent);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report")).then_types(&["CallStarted"]);
}

/// Proves the rules' side of BB-46: the second of two decisions changes nothing.
#[test]
fn bb_46_a_card_is_decided_once() {
  for (first, second) in [(Decision::ApproveOnce, Decision::Reject), (Decision::Reject, Decision::ApproveOnce), (Decision::ApproveOnce, Decision::ApproveOnce)]
  {
    let (mut agent, task) = with_step(&["send"]);
    act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report"));
    let card = card(&agent, task, 0);
    agent.when(tasks::decide(task, card, first));
    agent.when(tasks::decide(task, card, second)).then_refused(reason::STATE_CHANGED);
  }
}

/// Proves the rules' side of BB-44 and D12: what changed after the approval does not start; a new card shows it.
#[test]
fn bb_44_an_approval_is_void_for_other_content() {
  let (mut agent, task) = with_step(&["send"]);
  let gate = || tasks::email("ada@example.org: Report");
  act(&mut agent, 0, r#"{"body":"hello"}"#, gate());
  let first = card(&agent, task, 0);
  decide(&mut agent, 0, Decision::ApproveOnce);
  next_execution(&mut agent);
  let decided = act(&mut agent, 0, r#"{"body":"hullo"}"#, gate()).then_types(&["ActionWithdrawn", "CallHeld", "ExecutionSuspended", "TaskWaiting"]);
  let withdrawn = ActionWithdrawn { task, card: first, call: call(task, 0), reason: WithdrawReason::Changed };
  assert_eq!(decided.events[0], withdrawn.into());
  assert_ne!(card(&agent, task, 0), first);
  agent.when(tasks::decide(task, first, Decision::ApproveOnce)).then_refused(reason::STATE_CHANGED);
  decide(&mut agent, 0, Decision::ApproveOnce);
  next_execution(&mut agent);
  let other_target = tasks::email("eve@example.org: Report");
  act(&mut agent, 0, r#"{"body":"hullo"}"#, other_target).then_types(&["ActionWithdrawn", "CallHeld", "ExecutionSuspended", "TaskWaiting"]);
}

/// Proves USE-20, USE-21 and the rules' side of BB-43: the task goes on without what was rejected, which isn't asked for again, until the owner's next instruction.
#[test]
fn bb_43_a_rejected_action_is_not_asked_again() {
  let (mut agent, task) = with_step(&["send"]);
  act(&mut agent, 0, r#"{"body":"hello"}"#, tasks::email("ada@example.org: Report"));
  decide(&mut agent, 0, Decision::Reject).then_types(&["ActionRejected", "CallSkipped", "TaskQueued", "TaskRunRequested"]);
  next_execution(&mut agent);
  agent.when(inputs::step(task.into(), 2, 2, &["send", "send"]));
  let again =
    |agent: &mut TestAgent, execution, at, target| agent.when(tasks::external(task, execution, at, r#"{"body":"other words"}"#, tasks::email(target)));
  assert_eq!(skipped(&again(&mut agent, 2, (2, 0), "ADA@example.org:   report")), Some(SkipReason::Rejected));
  agent.when(tasks::instruct(task, "send it after all")).then_types(&["TaskInstructed"]);
  agent.when(inputs::step(task.into(), 2, 3, &["send"]));
  again(&mut agent, 2, (3, 0), "ada@example.org: Report").then_types(&HELD);
}

#[test]
fn another_recipient_is_another_wish() {
  let (mut agent, task) = with_step(&["send"]);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report"));
  decide(&mut agent, 0, Decision::Reject);
  next_execution(&mut agent);
  agent.when(inputs::step(task.into(), 2, 2, &["send"]));
  agent.when(tasks::external(task, 2, (2, 0), "{}", tasks::email("grace@example.org: Report"))).then_types(&HELD);
}

#[test]
fn a_rejected_click_is_remembered_without_what_changes_with_every_try() {
  let (mut agent, task) = with_step(&["send"]);
  act(&mut agent, 0, r#"{"snapshot_id":"s1","text":"Delete"}"#, tasks::computer("mac-1/notes"));
  decide(&mut agent, 0, Decision::Reject);
  next_execution(&mut agent);
  agent.when(inputs::step(task.into(), 2, 2, &["send", "send"]));
  let same = agent.when(tasks::external(task, 2, (2, 0), r#"{"snapshot_id":"s2","text":"delete "}"#, tasks::computer("mac-1/notes")));
  assert_eq!(skipped(&same), Some(SkipReason::Rejected));
  agent.when(tasks::external(task, 2, (2, 1), r#"{"snapshot_id":"s2","text":"open"}"#, tasks::computer("mac-1/notes"))).then_types(&HELD);
}

/// Proves USE-16, USE-17, D11 and the rules' side of BB-45 and BB-47: one application of one computer is asked for once in a task; everything else asks again.
#[test]
fn bb_45_what_is_allowed_for_a_task_is_no_wider_than_shown() {
  let (mut agent, task) = with_step(&["send", "send", "send", "send", "send"]);
  act(&mut agent, 0, r#"{"n":1}"#, tasks::computer("mac-1/notes"));
  let decided = decide(&mut agent, 0, Decision::AllowForTask).then_types(&["ActionApproved", "TaskQueued", "TaskRunRequested"]);
  let Event::Task(crate::task::Event::ActionApproved(approved)) = &decided.events[0] else { panic!("approved") };
  assert_eq!(approved.scope.as_deref(), Some("mac-1/notes"));
  next_execution(&mut agent);
  for (index, action) in [(0, r#"{"n":1}"#), (1, r#"{"n":2}"#)] {
    act(&mut agent, index, action, tasks::computer("mac-1/notes")).then_types(&["CallStarted"]);
    report(&mut agent, task, index, Outcome::Returned);
  }
  act(&mut agent, 2, "{}", tasks::computer("mac-1/mail")).then_types(&HELD);
  decide(&mut agent, 2, Decision::Reject);
  next_execution(&mut agent);
  act(&mut agent, 3, "{}", tasks::computer("mac-2/notes")).then_types(&HELD);
  decide(&mut agent, 3, Decision::Reject);
  next_execution(&mut agent);
  act(&mut agent, 4, "{}", tasks::email("ada@example.org: Report")).then_types(&HELD);
  decide(&mut agent, 4, Decision::AllowForTask).then_refused(reason::NOT_ALLOWED);
  agent.when(tasks::start(tasks::task(2), "another task"));
  agent.when(tasks::ask(tasks::task(2)));
  agent.when(inputs::step(tasks::task(2).into(), 1, 1, &["send"]));
  agent.when(tasks::external(tasks::task(2), 1, (1, 0), r#"{"n":1}"#, tasks::computer("mac-1/notes"))).then_types(&HELD);
}

#[test]
fn an_email_is_never_allowed_for_a_task_whatever_its_tool_says() {
  let (mut agent, _) = with_step(&["send"]);
  act(&mut agent, 0, "{}", Gate { scope: Some("all mail".to_owned()), ..tasks::email("ada@example.org: Report") });
  decide(&mut agent, 0, Decision::AllowForTask).then_refused(reason::NOT_ALLOWED);
}

#[test]
fn what_is_allowed_for_a_task_ends_with_it() {
  let (mut agent, task) = with_step(&["send"]);
  act(&mut agent, 0, "{}", tasks::computer("mac-1/notes"));
  decide(&mut agent, 0, Decision::AllowForTask);
  next_execution(&mut agent);
  act(&mut agent, 0, "{}", tasks::computer("mac-1/notes")).then_types(&["CallStarted"]);
  report(&mut agent, task, 0, Outcome::Returned);
  finish(&mut agent, task, "done").then_types(&["StepRecorded", "ExecutionFinished", "TaskCompleted"]);
  agent.when(tasks::instruct(task, "once more"));
  next_execution(&mut agent);
  let step = agent.task(task).work.last_step() + 1;
  agent.when(inputs::step(task.into(), 3, step, &["send"]));
  agent.when(tasks::external(task, 3, (step, 0), "{}", tasks::computer("mac-1/notes"))).then_types(&HELD);
}

/// Proves D34 for several cards: each held call has its own, and allowing a scope settles all of it at once.
#[test]
fn allowing_a_scope_settles_all_of_its_open_cards() {
  let (mut agent, task) = with_step(&["read", "send", "send", "send"]);
  ask(&mut agent, task, 0, Class::Repeatable).then_types(&["CallStarted"]);
  act(&mut agent, 1, r#"{"n":1}"#, tasks::computer("mac-1/notes")).then_types(&["CallHeld"]);
  act(&mut agent, 2, r#"{"n":2}"#, tasks::computer("mac-1/mail")).then_types(&["CallHeld"]);
  act(&mut agent, 3, r#"{"n":3}"#, tasks::computer("mac-1/notes")).then_types(&["CallHeld"]);
  act(&mut agent, 3, r#"{"n":3}"#, tasks::computer("mac-1/notes")).then_refused(reason::CALL_HELD);
  report(&mut agent, task, 0, Outcome::Returned).then_types(&["CallReturned", "ExecutionSuspended", "TaskWaiting"]);
  decide(&mut agent, 3, Decision::AllowForTask).then_types(&["ActionApproved", "ActionApproved", "TaskQueued", "TaskRunRequested"]);
  next_execution(&mut agent);
  act(&mut agent, 1, r#"{"n":1}"#, tasks::computer("mac-1/notes")).then_types(&["CallStarted"]);
  report(&mut agent, task, 1, Outcome::Returned).then_types(&["CallReturned", "ExecutionSuspended", "TaskWaiting"]);
  decide(&mut agent, 2, Decision::ApproveOnce).then_types(&["ActionApproved", "TaskQueued", "TaskRunRequested"]);
}

/// Proves D34 for instructions: a newer one withdraws open cards, and their calls are paired.
#[test]
fn an_instruction_withdraws_open_cards() {
  let (mut agent, task) = with_step(&["send"]);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report"));
  let card = card(&agent, task, 0);
  let decided = agent.when(tasks::instruct(task, "to Grace instead"));
  assert_eq!(skipped(&decided), Some(SkipReason::Steered));
  decided.then_types(&["ActionWithdrawn", "CallSkipped", "TaskInstructed", "TaskQueued", "TaskRunRequested"]);
  agent.when(tasks::decide(task, card, Decision::ApproveOnce)).then_refused(reason::STATE_CHANGED);
}

#[test]
fn an_instruction_withdraws_an_approval_that_was_not_used() {
  let (mut agent, task) = with_step(&["send"]);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report"));
  decide(&mut agent, 0, Decision::ApproveOnce);
  agent.when(tasks::instruct(task, "wait")).then_types(&["ActionWithdrawn", "CallSkipped", "TaskInstructed"]);
  next_execution(&mut agent);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report")).then_refused(reason::CALL_SETTLED);
}

#[test]
fn a_stop_withdraws_open_cards() {
  let (mut agent, task) = with_step(&["send"]);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report"));
  agent.when(tasks::stop(task)).then_types(&["ActionWithdrawn", "CallSkipped", "TaskStopped"]);
}

/// Proves SID-18: a pause keeps cards and approvals; what is decided meanwhile counts after the resume.
#[test]
fn a_pause_keeps_cards_and_approvals() {
  let (mut agent, task) = with_step(&["send", "send"]);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report"));
  agent.when(tasks::pause(task)).then_types(&["TaskPaused"]);
  agent.when(tasks::resume(task)).then_types(&["TaskResumed", "TaskWaiting"]);
  agent.when(tasks::pause(task)).then_types(&["TaskPaused"]);
  decide(&mut agent, 0, Decision::ApproveOnce).then_types(&["ActionApproved"]);
  agent.when(tasks::resume(task)).then_types(&["TaskResumed", "TaskQueued", "TaskRunRequested"]);
  next_execution(&mut agent);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report")).then_types(&["CallStarted"]);
}

#[test]
fn what_it_is_based_on_has_an_end() {
  let until = Timestamp(TestAgent::alive().now.0 + 600_000);
  let gate = || Gate { valid_until_ms: Some(until), ..tasks::computer("mac-1/notes") };
  for approved_in_time in [true, false] {
    let (mut agent, task) = with_step(&["send"]);
    act(&mut agent, 0, "{}", gate()).then_types(&HELD);
    if approved_in_time {
      decide(&mut agent, 0, Decision::ApproveOnce);
    }
    agent.now = until.plus_millis(1);
    let decided = if approved_in_time {
      next_execution(&mut agent);
      act(&mut agent, 0, "{}", gate()).then_types(&["ActionWithdrawn", "CallSkipped"])
    } else {
      decide(&mut agent, 0, Decision::ApproveOnce).then_types(&["ActionWithdrawn", "CallSkipped", "TaskQueued", "TaskRunRequested"])
    };
    assert_eq!(skipped(&decided), Some(SkipReason::Expired));
    assert_eq!(status(&agent, task), Status::Active);
  }
}

/// Proves REP-20, REP-21 and D30 for approvals: only the owner's decision on the card approves; no message, result or worker does.
#[test]
fn nothing_but_the_owners_decision_approves() {
  let (mut agent, task) = with_step(&["send"]);
  act(&mut agent, 0, "{}", tasks::email("ada@example.org: Report"));
  let card = card(&agent, task, 0);
  for origin in [Origin::Agent, Origin::Tool, Origin::ThirdParty, Origin::Platform] {
    agent.when_from(origin, tasks::decide(task, card, Decision::ApproveOnce)).then_refused(reason::NOT_ALLOWED);
  }
  agent.when(inputs::message("continue")).message();
  agent.when(inputs::message("yes, approve it")).message();
  assert_eq!(status(&agent, task), Status::Waiting(WaitReason::Approval));
  agent.when(tasks::ask(task)).then_refused(reason::WAITING);
}

#[test]
fn an_outside_call_says_what_it_is_about() {
  let (mut agent, task) = with_step(&["send"]);
  let right = tasks::external(task, 1, (1, 0), "{}", tasks::email("ada@example.org: Report"));
  for wrong in [
    CallAsked { gate: None, ..right.clone() },
    CallAsked { gate: Some(tasks::email(" ")), ..right.clone() },
    CallAsked { action: "{ }".to_owned(), ..right.clone() },
    CallAsked { action: "not json".to_owned(), ..right.clone() },
    CallAsked { action: r#"{"x":1.5}"#.to_owned(), ..right.clone() },
  ] {
    agent.when(wrong).then_refused(reason::VALUE_INVALID);
  }
  agent.when(right).then_types(&HELD);
}

#[test]
fn a_held_call_keeps_the_task_from_finishing() {
  let (mut agent, task) = with_step(&["read", "send"]);
  ask(&mut agent, task, 0, Class::Repeatable);
  act(&mut agent, 1, "{}", tasks::email("ada@example.org: Report")).then_types(&["CallHeld"]);
  finish(&mut agent, task, "done").then_types(&["StepRecorded", "InputSettled"]);
}

/// Proves D35 for tasks: what someone else than the owner caused uses the web and what is its own, and nothing more.
#[test]
fn a_persons_task_reads_the_web_and_nothing_else() {
  let mut agent = TestAgent::alive();
  let task = tasks::task(1);
  agent.when(crate::task::TaskStartAsked { author: crate::conversation::Author::Person, ..tasks::start(task, "look it up") });
  agent.when(tasks::ask(task));
  agent.when(inputs::step(task.into(), 1, 1, &["pa_web_search", "pa_memory_read", "pa_read_file", "send"]));
  ask(&mut agent, task, 0, Class::Repeatable).then_types(&["CallStarted"]);
  report(&mut agent, task, 0, Outcome::Returned);
  for index in [1, 2] {
    assert_eq!(skipped(&ask(&mut agent, task, index, Class::Repeatable)), Some(SkipReason::Rejected));
  }
  assert_eq!(skipped(&act(&mut agent, 3, "{}", tasks::email("ada@example.org: Report"))), Some(SkipReason::Rejected));
}

#[test]
fn a_task_gives_no_orders() {
  let (mut agent, task) = running();
  agent.when(inputs::step(task.into(), 1, 1, &["pa_task_stop"]));
  assert_eq!(skipped(&ask(&mut agent, task, 0, Class::Repeatable)), Some(SkipReason::Rejected));
}
