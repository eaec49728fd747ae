//! What the log has recorded of a job's work so far: steps of the model and their calls, over all executions. Pure.
//!
//! The next execution goes on from here, and a running one folds its own decisions into it, so both see the same. What others decide about the job meanwhile (a
//! task's instructions) comes in by reading the record anew: so the newest instruction that is known is always one that stands here.

use pa_domain::call::{self, Class, ResultPart, SkipReason};
use pa_domain::{CallId, Event, JobId, execution, ids, task};

use super::told::Told;

/// How a prompt's record names the newest instruction that it had: the ordinal follows.
pub(super) const REVISION: &str = "revision:";

/// How a call stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CallState {
  /// Nobody has asked for it.
  Unasked,
  /// It waits for the owner's decision, or was approved and may be asked for again.
  Held,
  /// It has begun, by this execution the last time, and is not settled.
  Started {
    execution: i32,
    class: Class,
  },
  Skipped(SkipReason),
  Returned(Vec<ResultPart>),
  Failed {
    code: String,
    parts: Vec<ResultPart>,
  },
  Unknown {
    class: Class,
  },
  Reconciled {
    executed: bool,
    parts: Vec<ResultPart>,
  },
}

/// A call of a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
  pub(super) id: CallId,
  pub(super) index: i32,
  pub(super) tool: String,
  pub(super) arguments: String,
  pub(super) state: CallState,
}

impl Call {
  /// Whether it needs no more.
  pub(super) fn is_settled(&self) -> bool {
    match self.state {
      CallState::Unasked | CallState::Held | CallState::Started { .. } | CallState::Unknown { class: Class::External } => false,
      CallState::Skipped(_)
      | CallState::Returned(_)
      | CallState::Failed { .. }
      | CallState::Unknown { class: Class::Repeatable | Class::Contained }
      | CallState::Reconciled { .. } => true,
    }
  }
}

/// A recorded answer of the model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
  pub(super) step: i32,
  pub(super) ordinal: i64,
  /// The ordinal of the newest instruction that its prompt had; 0 in a conversation's turn, which has only one.
  pub(super) knew: i64,
  pub(super) text: String,
  pub(super) calls: Vec<Call>,
}

/// The record of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Progress {
  job: JobId,
  pub(super) steps: Vec<Step>,
  /// The ordinal of the last event about the job.
  pub(super) seen: i64,
  /// What it was told, if the job is a task.
  pub(super) told: Option<Told>,
}

impl Progress {
  pub(super) fn new(job: JobId) -> Self {
    Self { job, steps: Vec::new(), seen: 0, told: None }
  }

  /// The number of the next step.
  pub(super) fn next_step(&self) -> i32 {
    self.steps.last().map_or(0, |step| step.step) + 1
  }

  /// The first step that has a call which is not settled.
  pub(super) fn unsettled(&self) -> Option<&Step> {
    self.steps.iter().find(|step| step.calls.iter().any(|call| !call.is_settled()))
  }

  /// Folds an event of the agent; those about other things change nothing. An event that was folded before is left out.
  pub(super) fn fold(&mut self, ordinal: i64, event: &Event) {
    if ordinal <= self.seen || event.thing() != Some(self.job.into()) {
      return;
    }
    self.seen = ordinal;
    match event {
      Event::Execution(execution::Event::StepRecorded(recorded)) => {
        let call = |(index, call): (i32, &execution::ToolCall)| Call {
          id: ids::call(self.job, recorded.step, index),
          index,
          tool: call.tool.clone(),
          arguments: call.arguments.clone(),
          state: CallState::Unasked,
        };
        let calls = (0..).zip(&recorded.calls).map(call).collect();
        let knew = recorded.model_call.parts.iter().filter_map(|part| part.name.strip_prefix(REVISION)?.parse().ok()).max().unwrap_or_default();
        self.steps.push(Step { step: recorded.step, ordinal, knew, text: recorded.text.clone(), calls });
      }
      Event::Call(event) => self.fold_call(event),
      Event::Task(task::Event::TaskStarted(started)) => self.told = Some(Told::started(ordinal, started)),
      Event::Task(event) => {
        if let Some(told) = &mut self.told {
          told.fold(ordinal, event);
        }
      }
      Event::Execution(_) | Event::Conversation(_) | Event::Account(_) | Event::Agent(_) | Event::Log(_) | Event::Settings(_) | Event::Timer(_) => {}
    }
  }

  fn fold_call(&mut self, event: &call::Event) {
    use call::Event as E;
    let (id, state) = match event {
      E::CallStarted(started) => (started.call, CallState::Started { execution: started.execution, class: started.class }),
      E::CallSkipped(skipped) => (skipped.call, CallState::Skipped(skipped.reason)),
      E::CallReturned(returned) => (returned.call, CallState::Returned(returned.parts.clone())),
      E::CallFailed(failed) => (failed.call, CallState::Failed { code: failed.code.clone(), parts: failed.parts.clone() }),
      E::CallUnknown(unknown) => (unknown.call, CallState::Unknown { class: self.class_of(unknown.call) }),
      E::CallReconciled(reconciled) => (reconciled.call, CallState::Reconciled { executed: reconciled.executed, parts: reconciled.parts.clone() }),
      E::CallHeld(held) => (held.call, CallState::Held),
      E::CallOutcomeNoted(_) => return,
    };
    if let Some(call) = self.steps.iter_mut().flat_map(|step| &mut step.calls).find(|call| call.id == id) {
      call.state = state;
    }
  }

  fn class_of(&self, id: CallId) -> Class {
    let call = self.steps.iter().flat_map(|step| &step.calls).find(|call| call.id == id);
    match call.map(|call| &call.state) {
      Some(CallState::Started { class, .. } | CallState::Unknown { class }) => *class,
      // A call that nobody saw begin: the most careful class.
      Some(_) | None => Class::External,
    }
  }
}
