//! From a fact to the indicator. Pure.

use pa_domain::{Event, JobId, MessageId, Meta, TaskId, call, conversation, execution, task};

/// A change of an agent's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
  /// Executions that began minus executions that are over.
  pub running: i32,
  pub failed: Option<Failed>,
  pub result: Option<Completed>,
  pub changed: i64,
}

/// What failed last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
  pub what: Failing,
  pub ordinal: i64,
  pub code: String,
}

/// A message that was not answered, or a task that could not be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
  Message(MessageId),
  Task(TaskId),
}

/// A task that was completed, and where in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
  pub task: TaskId,
  pub ordinal: i64,
}

impl Change {
  /// One change for two.
  pub(crate) fn merge(&mut self, later: Self) {
    self.running += later.running;
    self.failed = later.failed.or_else(|| self.failed.take());
    self.result = later.result.or(self.result);
    self.changed = later.changed;
  }
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<Change> {
  let moved = || Change { running: 0, failed: None, result: None, changed: meta.ordinal };
  let failed = |what, code: &str| Some(Failed { what, ordinal: meta.ordinal, code: code.to_owned() });
  match event {
    Event::Execution(event) => of_execution(event).map(|running| Change { running, ..moved() }),
    Event::Conversation(conversation::Event::ReplyFailed(event)) => {
      Some(Change { failed: failed(Failing::Message(message(event.job)), &event.code), ..moved() })
    }
    Event::Task(task::Event::TaskFailed(event)) => Some(Change { failed: failed(Failing::Task(event.task), &event.code), ..moved() }),
    Event::Task(task::Event::TaskCompleted(event)) => Some(Change { result: Some(Completed { task: event.task, ordinal: meta.ordinal }), ..moved() }),
    Event::Task(event) => waits(event).then(moved),
    // A card, or a call whose outcome nobody knows, waits for the owner.
    Event::Call(call::Event::CallHeld(_) | call::Event::CallUnknown(_) | call::Event::CallReconciled(_)) => Some(moved()),
    Event::Call(
      call::Event::CallStarted(_) | call::Event::CallSkipped(_) | call::Event::CallReturned(_) | call::Event::CallFailed(_) | call::Event::CallOutcomeNoted(_),
    )
    | Event::Conversation(
      conversation::Event::ConversationOpened(_)
      | conversation::Event::MessageAdmitted(_)
      | conversation::Event::MessageRetried(_)
      | conversation::Event::ReportAdmitted(_)
      | conversation::Event::ReportSuperseded(_)
      | conversation::Event::ReplyRequested(_)
      | conversation::Event::ReplyPosted(_)
      | conversation::Event::ReplyStopped(_)
      | conversation::Event::NoticePosted(_),
    )
    | Event::Account(_)
    | Event::Agent(_)
    | Event::Log(_)
    | Event::Settings(_)
    | Event::Timer(_) => None,
  }
}

/// Whether a task's event can change what waits for the owner, what failed or what was completed.
fn waits(event: &task::Event) -> bool {
  use task::Event as E;
  match event {
    E::TaskQueued(_)
    | E::TaskWaiting(_)
    | E::TaskPaused(_)
    | E::TaskStopped(_)
    | E::TaskCompleted(_)
    | E::TaskFailed(_)
    | E::ActionApproved(_)
    | E::ActionRejected(_)
    | E::ActionWithdrawn(_) => true,
    E::TaskOrdered(_)
    | E::TaskLookedUp(_)
    | E::TaskStarted(_)
    | E::TaskInstructed(_)
    | E::TaskRunRequested(_)
    | E::TaskResumed(_)
    | E::OrderRefused(_)
    | E::OrderRepeated(_)
    | E::CheckpointRecorded(_)
    | E::OutputDelivered(_) => false,
  }
}

fn message(job: JobId) -> MessageId {
  job.into()
}

fn of_execution(event: &execution::Event) -> Option<i32> {
  use execution::Event as E;
  match event {
    E::ExecutionStarted(_) => Some(1),
    E::ExecutionLost(_) | E::ExecutionYielded(_) | E::ExecutionFailed(_) | E::ExecutionStopped(_) | E::ExecutionSuspended(_) | E::ExecutionFinished(_) => {
      Some(-1)
    }
    E::StepRecorded(_) => None,
  }
}
