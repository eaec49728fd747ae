//! Where the content of an event comes from (D30).

use crate::event::Event;
use crate::meta::{Meta, Origin};
use crate::{call, conversation, execution, log};

/// The origin that an event carries which was decided on an input with metadata `input`.
///
/// One decision can hold content of several origins: a reply is the agent's and the notice beside it the product's, whoever caused them.
pub fn origin_of(input: &Meta, event: &Event) -> Origin {
  match event {
    Event::Account(_) | Event::Agent(_) | Event::Settings(_) => input.origin,
    Event::Timer(_) => Origin::Platform,
    Event::Conversation(event) => match event {
      conversation::Event::ConversationOpened(_) | conversation::Event::MessageAdmitted(_) | conversation::Event::MessageRetried(_) => input.origin,
      conversation::Event::ReplyPosted(_) | conversation::Event::ReplyStopped(_) => Origin::Agent,
      conversation::Event::ReplyRequested(_) | conversation::Event::ReplyFailed(_) | conversation::Event::NoticePosted(_) => Origin::Platform,
    },
    Event::Execution(event) => match event {
      execution::Event::StepRecorded(_) => Origin::Agent,
      execution::Event::ExecutionStarted(_)
      | execution::Event::ExecutionLost(_)
      | execution::Event::ExecutionYielded(_)
      | execution::Event::ExecutionFailed(_)
      | execution::Event::ExecutionStopped(_)
      | execution::Event::ExecutionFinished(_) => Origin::Platform,
    },
    Event::Call(event) => match event {
      call::Event::CallStarted(_) => Origin::Agent,
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
    Event::Log(event) => match event {
      log::Event::QuarantineReleased(_) => input.origin,
      log::Event::EpochAnnounced(_) | log::Event::InputSettled(_) | log::Event::InputQuarantined(_) | log::Event::InputHeld(_) => Origin::Platform,
    },
  }
}
