//! The only wiring between things: what follows elsewhere from an event, as an input of its own.

use crate::agent::AgentCreateAsked;
use crate::conversation::ResultReported;
use crate::event::{Event, Input};
use crate::ids::{AgentId, TaskId};
use crate::meta::Meta;
use crate::task::{self, Order};
use crate::{account, task::TaskCompleted};

/// An input that an event leads to. The decider process appends it after read-back with producer `decider` and the event's id as key, so that a repetition after a crash is a repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed {
  pub agent: AgentId,
  pub input: Input,
}

/// What follows from `event` for another thing or agent.
pub fn route(meta: &Meta, event: &Event) -> Option<Routed> {
  match event {
    Event::Account(account::Event::AccountAdded(added)) => {
      Some(Routed { agent: added.account, input: AgentCreateAsked { owner_name: added.name.clone() }.into() })
    }
    Event::Task(event) => of_task(event).map(|input| Routed { agent: meta.agent, input }),
    Event::Agent(_) | Event::Settings(_) | Event::Log(_) | Event::Timer(_) | Event::Conversation(_) | Event::Execution(_) | Event::Call(_) => None,
  }
}

/// A turn's order goes to its task, what became of it back to the turn's call, and a result to the conversation that asked for it.
fn of_task(event: &task::Event) -> Option<Input> {
  let done = |task: TaskId, order: Option<Order>, result: &str| order.map(|order| task::outcome_of(task, order, Ok(result)));
  match event {
    task::Event::TaskOrdered(ordered) => Some(task::to_task(ordered)),
    task::Event::TaskStarted(started) => done(started.task, started.order, "STARTED"),
    task::Event::TaskInstructed(instructed) => done(instructed.task, instructed.order, "INSTRUCTED"),
    task::Event::TaskPaused(paused) => done(paused.task, paused.order, "PAUSED"),
    task::Event::TaskResumed(resumed) => done(resumed.task, resumed.order, "RESUMED"),
    task::Event::TaskStopped(stopped) => done(stopped.task, stopped.order, "STOPPED"),
    task::Event::OrderRepeated(repeated) => done(repeated.task, Some(repeated.order), "REPEATED"),
    task::Event::OrderRefused(refused) => Some(task::outcome_of(refused.task, refused.order, Err(refused.reason.as_str()))),
    task::Event::TaskCompleted(completed) => Some(result_of(completed)),
    task::Event::TaskLookedUp(_)
    | task::Event::TaskQueued(_)
    | task::Event::TaskRunRequested(_)
    | task::Event::TaskWaiting(_)
    | task::Event::TaskFailed(_)
    | task::Event::CheckpointRecorded(_)
    | task::Event::OutputDelivered(_)
    | task::Event::ActionApproved(_)
    | task::Event::ActionRejected(_)
    | task::Event::ActionWithdrawn(_) => None,
  }
}

fn result_of(completed: &TaskCompleted) -> Input {
  ResultReported {
    task: completed.task,
    conversation: completed.asked_in,
    author: completed.author,
    title: completed.title.clone(),
    revision: completed.revision,
    text: completed.text.clone(),
  }
  .into()
}
