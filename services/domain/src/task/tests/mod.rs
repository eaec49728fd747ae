//! Tasks: whose turn it is, how they are steered, what they wait for, how they end, and what conversations ask of them.

mod cards;
mod ends;
mod orders;
mod outputs;
mod queue;
mod reports;
mod steering;
mod waiting;

use crate::call::{Class, Outcome};
use crate::event::Event;
use crate::ids::{ActionId, CallId, JobId, TaskId};
use crate::task::{Event as TaskEvent, Status, TaskRunRequested};
use crate::testing::{Decided, TestAgent, inputs, tasks};

const TASK: fn() -> TaskId = || tasks::task(1);

/// An agent with one task whose first execution runs.
fn running() -> (TestAgent, TaskId) {
  let mut agent = TestAgent::alive();
  agent.when(tasks::start(TASK(), "Write the report")).then_types(&["ConversationOpened", "TaskStarted", "TaskRunRequested"]);
  agent.when(tasks::ask(TASK())).then_types(&["ExecutionStarted"]);
  (agent, TASK())
}

/// An agent with one task whose running execution recorded a step with calls of these tools.
fn with_step(tools: &[&str]) -> (TestAgent, TaskId) {
  let (mut agent, task) = running();
  agent.when(inputs::step(task.into(), 1, 1, tools)).then_types(&["StepRecorded"]);
  (agent, task)
}

/// The id of a call of the first step.
fn call(task: TaskId, index: i32) -> CallId {
  crate::ids::call(task.into(), 1, index)
}

/// The execution asks for a call of the first step.
fn ask(agent: &mut TestAgent, task: TaskId, index: i32, class: Class) -> Decided {
  let execution = agent.task(task).work.executions;
  let tool = agent.task(task).work.steps[&1].tools[usize::try_from(index).unwrap()].clone();
  agent.when(inputs::call(task.into(), execution, (1, index), &tool, class))
}

/// The call ended so.
fn report(agent: &mut TestAgent, task: TaskId, index: i32, outcome: Outcome) -> Decided {
  let started = agent.task(task).work.calls[&call(task, index)].started_by.clone();
  agent.when(inputs::outcome(task.into(), started.last().copied().unwrap_or_default(), call(task, index), outcome))
}

/// The worker has the result, having read everything.
fn finish(agent: &mut TestAgent, task: TaskId, text: &str) -> Decided {
  let work = agent.task(task).work;
  let asked = inputs::finish(JobId::from(task), work.executions, work.last_step() + 1, agent.ordinal(), text);
  agent.when(asked)
}

fn status(agent: &TestAgent, task: TaskId) -> Status {
  agent.task(task).status
}

/// The task whose turn a decision made it.
fn turns(decided: &Decided) -> Vec<TaskId> {
  let turn = |event: &Event| if let Event::Task(TaskEvent::TaskRunRequested(TaskRunRequested { task })) = event { Some(*task) } else { None };
  decided.events.iter().filter_map(turn).collect()
}

/// The card of a held call.
fn card(agent: &TestAgent, task: TaskId, index: i32) -> ActionId {
  agent.task(task).work.calls[&call(task, index)].card.as_ref().expect("the call is held").id
}
