//! Executions: who may work, how an attempt ends, what is recorded, and when it may finish.

mod attempts;
mod finishing;
mod starting;

use crate::ids::JobId;
use crate::testing::{TestAgent, inputs};

/// An agent with one message whose first execution runs.
pub(crate) fn running() -> (TestAgent, JobId) {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("hello")).message();
  agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
  (agent, job)
}
