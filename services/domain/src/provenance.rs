//! Where the content of an event comes from (D30).

use crate::event::Event;
use crate::meta::{Meta, Origin};
use crate::{call, conversation, execution, log, task};

/// The origin that an event carries which was decided on an input with metadata `input`.
///
/// One decision can hold content of several origins: a reply is the agent's and the notice beside it the product's, whoever caused them.
pub fn origin_of(input: &Meta, event: &Event) -> Origin {
  match event {
    Event::Account(_) | Event::Agent(_) | Event::Settings(_) => input.origin,
    Event::Timer(_) => Origin::Platform,
    Event::Conversation(event) => match event {
      conversation::Event::ConversationOpened(_) | conversation::Event::MessageAdmitted(_) | conversation::Event::MessageRetried(_) => input.origin,
      // A result, too, is what the agent wrote of what tools and others said.
      conversation::Event::ReplyPosted(_) | conversation::Event::ReplyStopped(_) | conversation::Event::ReportAdmitted(_) => Origin::Agent,
      conversation::Event::ReplyRequested(_)
      | conversation::Event::ReportSuperseded(_)
      | conversation::Event::ReplyFailed(_)
      | conversation::Event::NoticePosted(_) => Origin::Platform,
    },
    Event::Execution(event) => match event {
      execution::Event::StepRecorded(_) => Origin::Agent,
      execution::Event::ExecutionStarted(_)
      | execution::Event::ExecutionLost(_)
      | execution::Event::ExecutionYielded(_)
      | execution::Event::ExecutionFailed(_)
      | execution::Event::ExecutionStopped(_)
      | execution::Event::ExecutionSuspended(_)
      | execution::Event::ExecutionFinished(_) => Origin::Platform,
    },
    Event::Call(event) => match event {
      call::Event::CallStarted(_) | call::Event::CallHeld(_) => Origin::Agent,
      call::Event::CallSkipped(_) | call::Event::CallUnknown(_) => Origin::Platform,
      call::Event::CallReturned(_) | call::Event::CallFailed(_) | call::Event::CallOutcomeNoted(_) => Origin::Tool,
      call::Event::CallReconciled(reconciled) => {
        if reconciled.by_owner {
          Origin::Owner
        } else {
          Origin::Tool
        }
      }
    },
    Event::Task(event) => of_task(event),
    Event::Log(event) => match event {
      log::Event::QuarantineReleased(_) => input.origin,
      log::Event::EpochAnnounced(_) | log::Event::InputSettled(_) | log::Event::InputQuarantined(_) | log::Event::InputHeld(_) => Origin::Platform,
    },
  }
}

fn of_task(event: &task::Event) -> Origin {
  match event {
    task::Event::TaskStarted(started) => started.by,
    task::Event::TaskInstructed(instructed) => instructed.by,
    task::Event::TaskPaused(paused) => paused.by,
    task::Event::TaskResumed(resumed) => resumed.by,
    task::Event::TaskStopped(stopped) => stopped.by,
    task::Event::TaskOrdered(_)
    | task::Event::TaskLookedUp(_)
    | task::Event::TaskCompleted(_)
    | task::Event::CheckpointRecorded(_)
    | task::Event::OutputDelivered(_) => Origin::Agent,
    task::Event::ActionApproved(_) | task::Event::ActionRejected(_) => Origin::Owner,
    task::Event::TaskQueued(_)
    | task::Event::TaskRunRequested(_)
    | task::Event::TaskWaiting(_)
    | task::Event::TaskFailed(_)
    | task::Event::OrderRefused(_)
    | task::Event::OrderRepeated(_)
    | task::Event::ActionWithdrawn(_) => Origin::Platform,
  }
}
