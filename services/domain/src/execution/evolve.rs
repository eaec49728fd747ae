//! What is remembered of executions: which one runs, what was lost, which steps are recorded.

use super::state::attempt_timer;
use super::{Event, ExecutionStarted, Running, Step, StepRecorded, Work};
use crate::meta::Meta;
use crate::state::Thing;
use crate::task;

pub(crate) fn evolve(thing: &mut Thing, meta: &Meta, event: &Event) {
  let Some(work) = thing.work_mut() else { return };
  match event {
    Event::ExecutionStarted(started) => start(work, meta, started),
    Event::ExecutionLost(lost) => {
      work.running = None;
      work.losses = lost.losses;
    }
    Event::ExecutionYielded(_) | Event::ExecutionFailed(_) | Event::ExecutionStopped(_) | Event::ExecutionSuspended(_) | Event::ExecutionFinished(_) => {
      work.running = None;
    }
    Event::StepRecorded(recorded) => {
      record(work, meta, recorded);
      task::stepped(thing);
    }
  }
}

fn start(work: &mut Work, meta: &Meta, started: &ExecutionStarted) {
  work.executions = started.execution;
  work.running = Some(Running { execution: started.execution, ask: meta.cause, limit_ms: started.limit_ms, timer: attempt_timer(meta.cause) });
}

fn record(work: &mut Work, meta: &Meta, recorded: &StepRecorded) {
  let tools = recorded.calls.iter().map(|call| call.tool.clone()).collect();
  work.steps.insert(recorded.step, Step { ordinal: meta.ordinal, tools });
}
