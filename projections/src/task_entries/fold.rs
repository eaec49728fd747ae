//! From a fact to changes of a task's entries. Pure.

use pa_domain::call::{self, Outcome, ResultPart};
use pa_domain::execution::{self, StepRecorded};
use pa_domain::task::{self, PauseReason, WaitReason};
use pa_domain::{CallId, Event, JobId, Meta, Origin, TaskId, Timestamp};
use uuid::Uuid;

use super::{Kind, Status};
use crate::code::Code as _;

/// A change of an entry's row.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
  /// The task exists from now on: what else it does is its own.
  Begun(Box<NewEntry>),
  /// A row appears; one that is there already keeps its place and takes the rest.
  Entered(Box<NewEntry>),
  Patched(Box<Patch>),
}

/// A whole row.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
  pub id: Uuid,
  /// The job that did it, which may also be a reply: then there is no row.
  pub task: TaskId,
  pub place: i64,
  pub changed: i64,
  pub kind: Kind,
  pub origin: Origin,
  pub status: Status,
  pub body: String,
  pub code: String,
  pub action: String,
  pub reason: String,
  pub cut: bool,
  pub attachments: i32,
  pub created: Timestamp,
}

/// What changes in a row that stands already; what is `None` stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
  pub id: Uuid,
  pub changed: i64,
  pub status: Status,
  pub body: Option<String>,
  pub reason: String,
  pub cut: Option<bool>,
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<Change> {
  match event {
    Event::Task(event) => of_task(meta, event),
    Event::Call(event) => Some(of_call(meta, event)),
    Event::Execution(event) => of_execution(meta, event),
    Event::Account(_) | Event::Agent(_) | Event::Conversation(_) | Event::Log(_) | Event::Settings(_) | Event::Timer(_) => None,
  }
}

fn of_task(meta: &Meta, event: &task::Event) -> Option<Change> {
  use task::Event as E;
  let row = |id: Uuid, task, kind| row(meta, id, task, kind);
  let entry = match event {
    E::TaskStarted(event) => {
      let attachments = count(event.attachments.len());
      let goal = NewEntry { body: event.goal.clone(), origin: event.by, attachments, ..row(event.task.0, event.task, Kind::Goal) };
      return Some(Change::Begun(Box::new(goal)));
    }
    E::TaskInstructed(event) => NewEntry {
      body: event.text.clone(),
      origin: event.by,
      attachments: count(event.attachments.len()),
      ..row(event.instruction.0, event.task, Kind::Instruction)
    },
    E::CheckpointRecorded(event) => NewEntry { body: event.text.clone(), origin: Origin::Agent, ..row(meta.id, event.task, Kind::Checkpoint) },
    E::OutputDelivered(event) => {
      NewEntry { body: event.caption.clone(), origin: Origin::Agent, attachments: 1, ..row(event.output.0, event.task, Kind::Output) }
    }
    E::TaskCompleted(event) => NewEntry { body: event.text.clone(), origin: Origin::Agent, ..row(meta.id, event.task, Kind::Result) },
    E::TaskFailed(event) => NewEntry { body: event.text.clone(), origin: Origin::Agent, code: event.code.clone(), ..row(meta.id, event.task, Kind::Failure) },
    E::TaskPaused(event) => {
      let code = match event.reason {
        PauseReason::Asked => "PAUSED",
        PauseReason::OutputLooped => "LOOPED",
      };
      NewEntry { code: code.to_owned(), body: event.detail.clone(), origin: event.by, ..row(meta.id, event.task, Kind::Event) }
    }
    E::TaskResumed(event) => NewEntry { code: "RESUMED".to_owned(), origin: event.by, ..row(meta.id, event.task, Kind::Event) },
    E::TaskStopped(event) => NewEntry { code: "STOPPED".to_owned(), origin: event.by, ..row(meta.id, event.task, Kind::Event) },
    E::TaskWaiting(event) if event.reason == WaitReason::Notice => {
      NewEntry { code: "INTERRUPTED".to_owned(), origin: Origin::Platform, ..row(meta.id, event.task, Kind::Event) }
    }
    // Cards and unknown effects stand on their calls, a desktop that is in use asks for nothing, and a place in the queue is the task's state.
    E::TaskWaiting(_)
    | E::TaskQueued(_)
    | E::TaskRunRequested(_)
    | E::TaskOrdered(_)
    | E::TaskLookedUp(_)
    | E::OrderRefused(_)
    | E::OrderRepeated(_)
    | E::ActionApproved(_)
    | E::ActionRejected(_)
    | E::ActionWithdrawn(_) => return None,
  };
  Some(Change::Entered(Box::new(entry)))
}

fn of_execution(meta: &Meta, event: &execution::Event) -> Option<Change> {
  use execution::Event as E;
  match event {
    E::StepRecorded(step) if !step.text.trim().is_empty() => Some(Change::Entered(Box::new(words(meta, step)))),
    E::StepRecorded(_)
    | E::ExecutionStarted(_)
    | E::ExecutionLost(_)
    | E::ExecutionYielded(_)
    | E::ExecutionFailed(_)
    | E::ExecutionStopped(_)
    | E::ExecutionSuspended(_)
    | E::ExecutionFinished(_) => None,
  }
}

fn words(meta: &Meta, step: &StepRecorded) -> NewEntry {
  NewEntry { body: step.text.clone(), origin: Origin::Agent, ..row(meta, meta.id, step.job.into(), Kind::Words) }
}

fn of_call(meta: &Meta, event: &call::Event) -> Change {
  use call::Event as E;
  let entered = |entry: NewEntry| Change::Entered(Box::new(entry));
  match event {
    E::CallHeld(held) => entered(NewEntry { action: held.action.clone(), ..tool(meta, (held.job, held.call), &held.tool, Status::Held) }),
    E::CallStarted(started) => entered(NewEntry { action: started.action.clone(), ..tool(meta, (started.job, started.call), &started.tool, Status::Started) }),
    E::CallSkipped(skipped) => {
      entered(NewEntry { reason: skipped.reason.code().to_owned(), ..tool(meta, (skipped.job, skipped.call), &skipped.tool, Status::Skipped) })
    }
    E::CallReturned(event) => patched(meta, event.call, Status::Returned, "", Some(&event.parts)),
    E::CallFailed(event) => patched(meta, event.call, Status::Failed, &event.code, Some(&event.parts)),
    E::CallUnknown(event) => patched(meta, event.call, Status::Unknown, "", None),
    E::CallReconciled(event) => {
      let reason = if event.executed { "EXECUTED" } else { "NOT_EXECUTED" };
      patched(meta, event.call, Status::Reconciled, reason, Some(&event.parts).filter(|parts| !parts.is_empty()))
    }
    // The owner's word stands; what a late report said is told beside it.
    E::CallOutcomeNoted(event) => {
      let reason = match event.outcome {
        Outcome::Returned => "EXECUTED",
        Outcome::Failed | Outcome::Unknown => "NOT_EXECUTED",
      };
      patched(meta, event.call, Status::Reconciled, reason, Some(&event.parts))
    }
  }
}

fn patched(meta: &Meta, call: CallId, status: Status, reason: &str, parts: Option<&Vec<ResultPart>>) -> Change {
  let body = parts.map(|parts| parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n"));
  let cut = parts.map(|parts| parts.iter().any(|part| part.blob.is_some()));
  Change::Patched(Box::new(Patch { id: call.0, changed: meta.ordinal, status, body, reason: reason.to_owned(), cut }))
}

fn tool(meta: &Meta, of: (JobId, CallId), tool: &str, status: Status) -> NewEntry {
  let (job, call) = of;
  NewEntry { code: tool.to_owned(), status, origin: Origin::Agent, ..row(meta, call.0, job.into(), Kind::Tool) }
}

fn count(files: usize) -> i32 {
  i32::try_from(files).unwrap_or(i32::MAX)
}

/// A row with nothing in it but what every row has.
fn row(meta: &Meta, id: Uuid, task: TaskId, kind: Kind) -> NewEntry {
  NewEntry {
    id,
    task,
    place: meta.ordinal,
    changed: meta.ordinal,
    kind,
    origin: meta.origin,
    status: Status::Posted,
    body: String::new(),
    code: String::new(),
    action: String::new(),
    reason: String::new(),
    cut: false,
    attachments: 0,
    created: meta.at,
  }
}
