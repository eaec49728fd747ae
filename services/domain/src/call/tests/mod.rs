//! Calls: when one may begin, how it is settled, and what an interruption leaves behind.

mod asking;
mod interrupted;
mod outcomes;

use crate::call::Class;
use crate::execution::tests::running;
use crate::ids::{CallId, JobId};
use crate::testing::{Decided, TestAgent, inputs};

/// An agent whose running execution recorded a step with calls of these tools.
fn with_step(tools: &[&str]) -> (TestAgent, JobId) {
  let (mut agent, job) = running();
  agent.when(inputs::step(job, 1, 1, tools)).then_types(&["StepRecorded"]);
  (agent, job)
}

/// An agent whose running execution has started one call.
fn with_started(class: Class) -> (TestAgent, JobId, CallId) {
  let (mut agent, job) = with_step(&["tool"]);
  ask(&mut agent, job, 1, class).then_types(&["CallStarted"]);
  (agent, job, crate::ids::call(job, 1, 0))
}

/// The execution asks for the first call of the first step.
fn ask(agent: &mut TestAgent, job: JobId, execution: i32, class: Class) -> Decided {
  agent.when(inputs::call(job, execution, (1, 0), "tool", class))
}
