//! What a conversation's turn asks of tasks, and how it learns what became of it.

use crate::call::{CallAsked, CallStatus, Class, Outcome};
use crate::codes::reason;
use crate::conversation::{Author, MessageGiven, MessageReceived};
use crate::ids::{self, JobId, TaskId};
use crate::meta::Origin;
use crate::task::{Status, Task};
use crate::testing::{Decided, TestAgent, inputs, tasks};

/// A turn of the owner's message that recorded a step with calls of these tools.
fn turn(tools: &[&str]) -> (TestAgent, JobId) {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("please")).message();
  agent.when(inputs::ask(job));
  agent.when(inputs::step(job, 1, 1, tools));
  (agent, job)
}

/// The turn asks for the call `index` of its first step with these arguments.
fn order(agent: &mut TestAgent, job: JobId, index: usize, action: &str) -> Decided {
  let work = agent.reply(job).work;
  let asked = inputs::call(job, work.executions, (1, i32::try_from(index).unwrap()), &work.steps[&1].tools[index], Class::Repeatable);
  agent.when(CallAsked { action: action.to_owned(), ..asked })
}

fn status_of(agent: &TestAgent, job: JobId, index: i32) -> CallStatus {
  agent.reply(job).work.calls[&ids::call(job, 1, index)].status
}

const START: &str = r#"{"goal":"Write the report","request_key":"r1","title":"Report"}"#;

fn started(agent: &mut TestAgent, job: JobId) -> (TaskId, Task) {
  let task = ids::task(job, "r1");
  agent.carry_on();
  (task, agent.task(task))
}

/// The turn reads the task by its first call.
fn read(agent: &mut TestAgent, job: JobId, task: TaskId) {
  order(agent, job, 0, &named(task)).then_types(&["CallStarted", "TaskLookedUp"]);
  let execution = agent.reply(job).work.executions;
  agent.when(inputs::outcome(job, execution, ids::call(job, 1, 0), Outcome::Returned)).then_types(&["CallReturned"]);
}

fn named(task: TaskId) -> String {
  format!(r#"{{"task":"{task}"}}"#)
}

/// Proves the rules' side of REP-9, REP-10 and REP-11: the turn's call starts the task with its whole goal and the message's files, and learns that it did.
#[test]
fn a_turn_starts_a_task_with_its_goal_and_the_files_of_its_message() {
  let mut agent = TestAgent::alive();
  let files = vec![inputs::file("one.pdf")];
  let job = agent.when(MessageGiven { conversation: None, text: "read it".to_owned(), attachments: files.clone() }).message();
  agent.when(inputs::ask(job));
  agent.when(inputs::step(job, 1, 1, &["pa_task_start"]));
  order(&mut agent, job, 0, START).then_types(&["CallStarted", "TaskOrdered"]);
  assert_eq!(status_of(&agent, job, 0), CallStatus::Started);
  let (task, state) = started(&mut agent, job);
  assert_eq!((state.title.as_str(), state.author, Some(state.asked_in)), ("Report", Author::Owner, agent.root.main));
  let (_, event) = agent.log.iter().find(|(_, event)| event.type_name() == "pa.task.TaskStarted").unwrap();
  let crate::Event::Task(crate::task::Event::TaskStarted(event)) = event else { panic!("started") };
  assert_eq!((event.task, event.goal.as_str(), event.by, &event.attachments), (task, "Write the report", Origin::Agent, &files));
  assert_eq!(status_of(&agent, job, 0), CallStatus::Settled(Outcome::Returned));
}

/// Proves REP-34: a repeated attempt, and a repeated call of it, never starts the same task twice.
#[test]
fn a_repeated_attempt_never_starts_the_same_task_twice() {
  let (mut agent, job) = turn(&["pa_task_start", "pa_task_start"]);
  order(&mut agent, job, 0, START).then_types(&["CallStarted", "TaskOrdered"]);
  agent.when(inputs::loss(job, 1));
  agent.when(inputs::ask(job));
  order(&mut agent, job, 0, START).then_types(&["CallStarted", "TaskOrdered"]);
  let decided: Vec<bool> = agent.carry_on().iter().map(|decided| decided.has("TaskStarted")).collect();
  assert_eq!(decided.iter().filter(|started| **started).count(), 1);
  assert_eq!(agent.root.tasks.len(), 1);
  assert_eq!(status_of(&agent, job, 0), CallStatus::Settled(Outcome::Returned));
  order(&mut agent, job, 1, START);
  agent.carry_on();
  assert_eq!((agent.root.tasks.len(), status_of(&agent, job, 1)), (1, CallStatus::Settled(Outcome::Returned)));
}

#[test]
fn a_request_key_with_another_goal_is_refused_and_the_call_says_so() {
  let (mut agent, job) = turn(&["pa_task_start", "pa_task_start"]);
  order(&mut agent, job, 0, START);
  agent.carry_on();
  order(&mut agent, job, 1, r#"{"goal":"Something else","request_key":"r1","title":"Report"}"#);
  let refused = agent.carry_on();
  assert!(refused[0].has("OrderRefused") && refused[1].has("CallFailed"), "{refused:?}");
  assert_eq!(status_of(&agent, job, 1), CallStatus::Settled(Outcome::Failed));
}

/// Proves REP-3: a turn that has not read a task changes nothing of it.
#[test]
fn a_task_is_read_before_a_turn_may_change_it() {
  let mut agent = TestAgent::alive();
  let task = tasks::task(1);
  agent.when(tasks::start(task, "Travel plan"));
  let job = agent.when(inputs::message("pause it")).message();
  agent.when(inputs::ask(job));
  agent.when(inputs::step(job, 1, 1, &["pa_task_read", "pa_task_pause", "pa_task_stop", "pa_task_resume", "pa_task_instruct"]));
  order(&mut agent, job, 0, &named(tasks::task(2)));
  order(&mut agent, job, 1, &named(task)).then_failed(reason::TASK_NOT_READ);
  order(&mut agent, job, 3, &named(task)).then_refused(reason::CALL_OUT_OF_ORDER);
  agent.when(inputs::outcome(job, 1, ids::call(job, 1, 0), Outcome::Returned));
  // It has read another one, and the turn goes on after each.
  for index in [2, 3] {
    order(&mut agent, job, index, &named(task)).then_failed(reason::TASK_NOT_READ);
  }
  order(&mut agent, job, 4, &format!(r#"{{"instruction":"x","task":"{task}"}}"#)).then_failed(reason::TASK_NOT_READ);
  assert_eq!(agent.task(task).status, Status::Active);
}

/// Proves REP-12: a turn that has read a task instructs, pauses, resumes and stops it, and learns each time what became of it.
#[test]
fn a_turn_changes_a_task_that_it_has_read() {
  let mut agent = TestAgent::alive();
  let task = tasks::task(1);
  agent.when(tasks::start(task, "Deployment"));
  let job = agent.when(inputs::message("use the branch, and pause it")).message();
  agent.when(inputs::ask(job));
  agent.when(inputs::step(job, 1, 1, &["pa_task_read", "pa_task_instruct", "pa_task_pause", "pa_task_resume", "pa_task_stop", "pa_task_stop"]));
  read(&mut agent, job, task);
  order(&mut agent, job, 1, &format!(r#"{{"instruction":"Use feature/demo","task":"{task}"}}"#)).then_types(&["CallStarted", "TaskOrdered"]);
  agent.carry_on();
  assert_eq!(agent.task(task).instructed_by, Some(job));
  let expected = [Status::Paused(crate::task::PauseReason::Asked), Status::Active, Status::Stopped, Status::Stopped];
  for (index, expected) in (2..).zip(expected) {
    order(&mut agent, job, usize::try_from(index).unwrap(), &named(task)).then_types(&["CallStarted", "TaskOrdered"]);
    agent.carry_on();
    assert_eq!((agent.task(task).status, status_of(&agent, job, index)), (expected, CallStatus::Settled(Outcome::Returned)));
  }
}

/// Proves REP-3 and REP-13 for what changed meanwhile: an instruction that someone else gave after the reading has to be read; the turn's own needn't.
#[test]
fn an_instruction_counts_on_the_task_as_it_is() {
  let mut agent = TestAgent::alive();
  let task = tasks::task(1);
  agent.when(tasks::start(task, "Deployment"));
  let job = agent.when(inputs::message("add to it")).message();
  agent.when(inputs::ask(job));
  agent.when(inputs::step(job, 1, 1, &["pa_task_read", "pa_task_instruct", "pa_task_instruct"]));
  read(&mut agent, job, task);
  let instruct = |text: &str| format!(r#"{{"instruction":"{text}","task":"{task}"}}"#);
  order(&mut agent, job, 1, &instruct("first"));
  agent.carry_on();
  order(&mut agent, job, 2, &instruct("second"));
  agent.carry_on();
  assert_eq!(status_of(&agent, job, 2), CallStatus::Settled(Outcome::Returned));
  agent.when(inputs::step(job, 1, 2, &["pa_task_instruct"]));
  agent.when(tasks::instruct(task, "by hand on the page"));
  let asked = inputs::call(job, 1, (2, 0), "pa_task_instruct", Class::Repeatable);
  agent.when(CallAsked { action: instruct("third"), ..asked }).then_types(&["CallStarted", "TaskOrdered"]);
  assert!(agent.carry_on().iter().any(|decided| decided.has("OrderRefused")));
  assert_eq!(agent.reply(job).work.calls[&ids::call(job, 2, 0)].status, CallStatus::Settled(Outcome::Failed));
}

/// Proves D35 for turns: what someone else than the owner writes may start a task, and reads or changes none.
#[test]
fn a_persons_turn_starts_a_task_and_changes_none() {
  let mut agent = TestAgent::alive();
  let task = tasks::task(1);
  agent.when(tasks::start(task, "Travel plan"));
  let job = agent.when(inputs::received(inputs::channel(1), "stop the travel plan")).message();
  agent.when(inputs::ask(job));
  let tools = ["pa_task_read", "pa_task_stop", "pa_task_pause", "pa_task_resume", "pa_task_instruct", "pa_task_start"];
  agent.when(inputs::step(job, 1, 1, &tools));
  for (index, tool) in tools.iter().enumerate().take(5) {
    let asked = inputs::call(job, 1, (1, i32::try_from(index).unwrap()), tool, Class::Repeatable);
    let action = if *tool == "pa_task_instruct" { format!(r#"{{"instruction":"x","task":"{task}"}}"#) } else { named(task) };
    agent.when(CallAsked { action, ..asked }).then_failed(reason::NOT_ALLOWED);
  }
  agent.when(inputs::step(job, 1, 2, &["pa_task_start"]));
  let asked = inputs::call(job, 1, (2, 0), "pa_task_start", Class::Repeatable);
  agent.when(CallAsked { action: START.to_owned(), ..asked }).then_types(&["CallStarted", "TaskOrdered"]);
  let (_, state) = started(&mut agent, job);
  assert_eq!((state.author, state.asked_in), (Author::Person, inputs::channel(1)));
}

#[test]
fn arguments_that_do_not_fit_start_nothing() {
  let (mut agent, job) = turn(&["pa_task_start"; 7]);
  let wrong = [
    ("not json", reason::VALUE_INVALID),
    ("{}", reason::VALUE_INVALID),
    (r#"{"goal":"x","request_key":" "}"#, reason::VALUE_INVALID),
    (r#"{"goal":"x","request_key":"r","more":1}"#, reason::VALUE_INVALID),
    (r#"{"goal":"x","request_key":"r","attachments":["nobody's"]}"#, reason::NOT_FOUND),
    (r#"{"goal":" ","request_key":"r"}"#, reason::TEXT_EMPTY),
  ];
  for (index, (action, reason)) in wrong.into_iter().enumerate() {
    order(&mut agent, job, index, action).then_failed(reason);
  }
  let asked = inputs::call(job, 1, (1, 6), "pa_task_start", Class::External);
  agent.when(CallAsked { action: START.to_owned(), ..asked }).then_failed(reason::VALUE_INVALID);
}

#[test]
fn a_turn_does_not_end_before_its_order_is_carried_out() {
  let (mut agent, job) = turn(&["pa_task_start"]);
  order(&mut agent, job, 0, START);
  agent.when(inputs::finish(job, 1, 2, agent.ordinal(), "started")).then_types(&["StepRecorded", "InputSettled"]);
  agent.carry_on();
  agent.when(inputs::finish(job, 1, 2, agent.ordinal(), "started")).then_types(&["ExecutionFinished", "TimerCancelled", "ReplyPosted"]);
}

/// Proves REP-5 and REP-6: a message that comes while tasks run waits for the agent like any other, and changes none by itself.
#[test]
fn a_message_changes_no_task_by_itself() {
  let mut agent = TestAgent::alive();
  agent.when(tasks::start(tasks::task(1), "Travel plan"));
  let before = agent.task(tasks::task(1));
  agent.when(inputs::message("stop the travel plan")).then_types(&["MessageAdmitted", "ReplyRequested"]);
  agent.when(MessageReceived { author: Author::Owner, ..inputs::received(inputs::channel(1), "stop it") });
  assert_eq!(agent.task(tasks::task(1)), before);
}
