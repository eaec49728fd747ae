//! From a fact to changes of tasks. Pure; no rules: each event says what happened.

use pa_domain::execution::{self, JobKind};
use pa_domain::task::{self, PauseReason, TaskStarted, WaitReason};
use pa_domain::{ConversationId, Event, MessageId, Meta, Origin, TaskId, Timestamp, conversation};
use uuid::Uuid;

use super::State;
use crate::code::Code as _;

/// A change of a task's row.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
  Started(Box<TaskRow>),
  Patched(Box<Patch>),
}

/// A whole row.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
  pub id: TaskId,
  pub conversation: ConversationId,
  pub asked_in: ConversationId,
  pub title: String,
  pub goal: String,
  pub started_by: Origin,
  pub place: i64,
  pub changed: i64,
  pub moved: Moved,
  pub running: bool,
  pub run: i32,
  pub execution: i32,
  pub revision: i64,
  pub instructions: i32,
  pub outputs: i32,
  pub created: Timestamp,
  pub changed_at: Timestamp,
  pub result: Option<(Uuid, i64)>,
  pub report: Option<MessageId>,
}

/// Where a task stands from now on; these are set together.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
  pub state: State,
  pub reason: String,
  pub detail: String,
  /// Nothing goes on without the owner, and no card says so.
  pub needs_owner: bool,
  pub ended: Option<Timestamp>,
}

/// What changes in a row that stands already; what is `None` stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
  pub id: TaskId,
  pub changed: i64,
  pub at: Timestamp,
  pub moved: Option<Moved>,
  pub running: Option<bool>,
  pub run: Option<i32>,
  pub execution: Option<i32>,
  pub revision: Option<i64>,
  /// How many more.
  pub instructions: i32,
  pub outputs: i32,
  /// The entry and the ordinal of a new result, which nobody has told yet.
  pub result: Option<(Uuid, i64)>,
  pub report: Option<MessageId>,
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<Change> {
  match event {
    Event::Task(event) => of_task(meta, event),
    Event::Execution(event) => of_execution(meta, event).map(patched),
    Event::Conversation(event) => of_conversation(meta, event).map(patched),
    Event::Account(_) | Event::Agent(_) | Event::Call(_) | Event::Log(_) | Event::Settings(_) | Event::Timer(_) => None,
  }
}

fn patched(patch: Patch) -> Change {
  Change::Patched(Box::new(patch))
}

fn of_task(meta: &Meta, event: &task::Event) -> Option<Change> {
  use task::Event as E;
  let patch = match event {
    E::TaskStarted(started) => return Some(Change::Started(Box::new(begun(meta, started)))),
    E::TaskInstructed(event) => Patch { revision: Some(meta.ordinal), instructions: 1, ..patch(meta, event.task) },
    E::TaskQueued(event) => Patch { moved: Some(moved(State::Active, "")), run: Some(event.run), ..patch(meta, event.task) },
    E::TaskWaiting(event) => {
      // A card or an unknown effect asks by itself.
      let needs_owner = event.reason == WaitReason::Notice;
      Patch { moved: Some(Moved { needs_owner, ..moved(State::Waiting, event.reason.code()) }), ..patch(meta, event.task) }
    }
    E::TaskPaused(event) => {
      let needs_owner = event.reason == PauseReason::OutputLooped;
      let moved = Moved { needs_owner, detail: event.detail.clone(), ..moved(State::Paused, event.reason.code()) };
      Patch { moved: Some(moved), ..patch(meta, event.task) }
    }
    E::TaskStopped(event) => Patch { moved: Some(ended(meta, State::Stopped, "")), running: Some(false), ..patch(meta, event.task) },
    E::TaskCompleted(event) => {
      Patch { moved: Some(ended(meta, State::Completed, "")), running: Some(false), result: Some((meta.id, meta.ordinal)), ..patch(meta, event.task) }
    }
    E::TaskFailed(event) => Patch { moved: Some(ended(meta, State::Failed, &event.code)), running: Some(false), ..patch(meta, event.task) },
    E::OutputDelivered(event) => Patch { outputs: 1, ..patch(meta, event.task) },
    // What follows from these is said by the events beside them; a turn in the queue shows when its execution starts.
    E::TaskResumed(_)
    | E::TaskRunRequested(_)
    | E::TaskOrdered(_)
    | E::TaskLookedUp(_)
    | E::OrderRefused(_)
    | E::OrderRepeated(_)
    | E::CheckpointRecorded(_)
    | E::ActionApproved(_)
    | E::ActionRejected(_)
    | E::ActionWithdrawn(_) => return None,
  };
  Some(patched(patch))
}

/// For an execution of a reply there is no row to change.
fn of_execution(meta: &Meta, event: &execution::Event) -> Option<Patch> {
  use execution::Event as E;
  let over = |job: pa_domain::JobId| Some(Patch { running: Some(false), ..patch(meta, job.into()) });
  match event {
    E::ExecutionStarted(started) if started.kind == JobKind::Task => {
      Some(Patch { running: Some(true), execution: Some(started.execution), ..patch(meta, started.job.into()) })
    }
    E::ExecutionLost(event) => over(event.job),
    E::ExecutionYielded(event) => over(event.job),
    E::ExecutionFailed(event) => over(event.job),
    E::ExecutionStopped(event) => over(event.job),
    E::ExecutionSuspended(event) => over(event.job),
    // A task that finishes has an end of its own beside this.
    E::ExecutionStarted(_) | E::ExecutionFinished(_) | E::StepRecorded(_) => None,
  }
}

fn of_conversation(meta: &Meta, event: &conversation::Event) -> Option<Patch> {
  use conversation::Event as E;
  match event {
    E::ReportAdmitted(event) => Some(Patch { report: Some(event.reply), ..patch(meta, event.task) }),
    E::ConversationOpened(_)
    | E::MessageAdmitted(_)
    | E::MessageRetried(_)
    | E::ReportSuperseded(_)
    | E::ReplyRequested(_)
    | E::ReplyPosted(_)
    | E::ReplyStopped(_)
    | E::ReplyFailed(_)
    | E::NoticePosted(_) => None,
  }
}

fn begun(meta: &Meta, started: &TaskStarted) -> TaskRow {
  TaskRow {
    id: started.task,
    conversation: started.conversation,
    asked_in: started.asked_in,
    title: started.title.clone(),
    goal: started.goal.clone(),
    started_by: started.by,
    place: meta.ordinal,
    changed: meta.ordinal,
    moved: moved(State::Active, ""),
    running: false,
    run: 1,
    execution: 0,
    revision: meta.ordinal,
    instructions: 0,
    outputs: 0,
    created: meta.at,
    changed_at: meta.at,
    result: None,
    report: None,
  }
}

fn moved(state: State, reason: &str) -> Moved {
  Moved { state, reason: reason.to_owned(), detail: String::new(), needs_owner: false, ended: None }
}

fn ended(meta: &Meta, state: State, reason: &str) -> Moved {
  Moved { ended: Some(meta.at), ..moved(state, reason) }
}

fn patch(meta: &Meta, id: TaskId) -> Patch {
  Patch {
    id,
    changed: meta.ordinal,
    at: meta.at,
    moved: None,
    running: None,
    run: None,
    execution: None,
    revision: None,
    instructions: 0,
    outputs: 0,
    result: None,
    report: None,
  }
}
