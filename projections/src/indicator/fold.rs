//! From a fact to the indicator. Pure.

use pa_domain::{Event, MessageId, Meta, call, conversation, execution};

/// A change of an agent's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
  /// Executions that began minus executions that are over.
  pub running: i32,
  pub failed: Option<Failed>,
  pub changed: i64,
}

/// A message that was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
  pub message: MessageId,
  pub ordinal: i64,
  pub code: String,
}

impl Change {
  /// One change for two.
  pub(crate) fn merge(&mut self, later: Self) {
    self.running += later.running;
    self.failed = later.failed.or_else(|| self.failed.take());
    self.changed = later.changed;
  }
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<Change> {
  match event {
    Event::Execution(event) => of_execution(event).map(|running| Change { running, failed: None, changed: meta.ordinal }),
    Event::Conversation(conversation::Event::ReplyFailed(failed)) => {
      let failed = Failed { message: failed.job.into(), ordinal: meta.ordinal, code: failed.code.clone() };
      Some(Change { running: 0, failed: Some(failed), changed: meta.ordinal })
    }
    // A call whose outcome nobody knows waits for the owner.
    Event::Call(call::Event::CallUnknown(_) | call::Event::CallReconciled(_)) => Some(Change { running: 0, failed: None, changed: meta.ordinal }),
    Event::Call(
      call::Event::CallStarted(_) | call::Event::CallSkipped(_) | call::Event::CallReturned(_) | call::Event::CallFailed(_) | call::Event::CallHeld(_) | call::Event::CallOutcomeNoted(_),
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
    // Cards, waiting tasks, failures and results of tasks count here with the projection of tasks.
    | Event::Task(_)
    | Event::Account(_)
    | Event::Agent(_)
    | Event::Log(_)
    | Event::Settings(_)
    | Event::Timer(_) => None,
  }
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
