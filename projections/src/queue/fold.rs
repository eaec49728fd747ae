//! From a fact to changes of jobs and open calls. Pure.

use pa_domain::call::{self, Class};
use pa_domain::conversation;
use pa_domain::execution::{self, JobKind};
use pa_domain::ids::conversation_of;
use pa_domain::task;
use pa_domain::{CallId, ConversationId, Event, JobId, MessageId, Meta, TaskId, Timestamp};

use super::JobState;

/// A change of a job's or a call's row.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
  Requested(JobRow),
  Moved(JobPatch),
  Ended(JobId),
  CallOpened(Box<CallRow>),
  CallUnknown { call: CallId, changed: i64 },
  CallSettled(CallId),
}

/// A job that had its turn and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
  pub id: JobId,
  pub kind: JobKind,
  pub conversation: ConversationId,
  pub reply: MessageId,
  pub state: JobState,
  /// It is the job's turn. A task that waits or is paused has none; its execution may still run until the last tool has ended.
  pub turn: bool,
  pub execution: i32,
  pub since: Timestamp,
  pub limit: Option<Timestamp>,
  pub changed: i64,
}

/// A job's execution began or is over, or it gave its turn up. What is `None` stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPatch {
  pub id: JobId,
  pub state: Option<JobState>,
  pub execution: Option<i32>,
  pub turn: Option<bool>,
  pub since: Option<Timestamp>,
  /// Of the state: it stays with it.
  pub limit: Option<Timestamp>,
  pub changed: i64,
}

/// A call that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRow {
  pub id: CallId,
  pub job: JobId,
  pub execution: i32,
  pub step: i32,
  pub index: i32,
  pub tool: String,
  pub class: Class,
  pub action: String,
  pub limit_millis: i64,
  pub started: Timestamp,
  pub unknown: bool,
  pub changed: i64,
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<Change> {
  match event {
    Event::Conversation(event) => of_conversation(meta, event),
    Event::Execution(event) => of_execution(meta, event),
    Event::Call(event) => of_call(meta, event),
    Event::Task(event) => of_task(meta, event),
    Event::Account(_) | Event::Agent(_) | Event::Log(_) | Event::Settings(_) | Event::Timer(_) => None,
  }
}

fn of_conversation(meta: &Meta, event: &conversation::Event) -> Option<Change> {
  use conversation::Event as E;
  match event {
    E::ReplyRequested(requested) => Some(Change::Requested(JobRow {
      id: requested.job,
      kind: JobKind::Reply,
      conversation: requested.conversation,
      reply: requested.reply,
      state: JobState::Claimable,
      turn: true,
      execution: 0,
      since: meta.at,
      limit: None,
      changed: meta.ordinal,
    })),
    E::ReplyPosted(posted) => Some(Change::Ended(posted.job)),
    E::ReplyStopped(stopped) => Some(Change::Ended(stopped.job)),
    E::ReplyFailed(failed) => Some(Change::Ended(failed.job)),
    E::ReportSuperseded(superseded) => Some(Change::Ended(superseded.job)),
    // A retried message's job comes with its turn.
    E::MessageRetried(_) | E::ConversationOpened(_) | E::MessageAdmitted(_) | E::ReportAdmitted(_) | E::NoticePosted(_) => None,
  }
}

/// A task has a row from its first turn to its end.
fn of_task(meta: &Meta, event: &task::Event) -> Option<Change> {
  use task::Event as E;
  let aside = |task: TaskId| {
    let id = task.into();
    Some(Change::Moved(JobPatch { id, state: None, execution: None, turn: Some(false), since: None, limit: None, changed: meta.ordinal }))
  };
  match event {
    E::TaskRunRequested(requested) => Some(Change::Requested(JobRow {
      id: requested.task.into(),
      kind: JobKind::Task,
      conversation: conversation_of(requested.task),
      reply: MessageId(requested.task.0),
      state: JobState::Claimable,
      turn: true,
      execution: 0,
      since: meta.at,
      limit: None,
      changed: meta.ordinal,
    })),
    E::TaskWaiting(waiting) => aside(waiting.task),
    E::TaskPaused(paused) => aside(paused.task),
    E::TaskCompleted(completed) => Some(Change::Ended(completed.task.into())),
    E::TaskFailed(failed) => Some(Change::Ended(failed.task.into())),
    E::TaskStopped(stopped) => Some(Change::Ended(stopped.task.into())),
    // A queued task has a job when it is its turn.
    E::TaskStarted(_)
    | E::TaskQueued(_)
    | E::TaskResumed(_)
    | E::TaskInstructed(_)
    | E::TaskOrdered(_)
    | E::TaskLookedUp(_)
    | E::OrderRefused(_)
    | E::OrderRepeated(_)
    | E::CheckpointRecorded(_)
    | E::OutputDelivered(_)
    | E::ActionApproved(_)
    | E::ActionRejected(_)
    | E::ActionWithdrawn(_) => None,
  }
}

fn of_execution(meta: &Meta, event: &execution::Event) -> Option<Change> {
  use execution::Event as E;
  let moved = |id, state, execution, limit| {
    Some(Change::Moved(JobPatch { id, state: Some(state), execution, turn: None, since: Some(meta.at), limit, changed: meta.ordinal }))
  };
  let over = |id| moved(id, JobState::Claimable, None, None);
  match event {
    // A task has no limit, which is written as 0.
    E::ExecutionStarted(started) => {
      moved(started.job, JobState::Running, Some(started.execution), Some(started.limit_ms).filter(|limit| *limit > Timestamp(0)))
    }
    E::ExecutionLost(event) => over(event.job),
    E::ExecutionYielded(event) => over(event.job),
    E::ExecutionFailed(event) => over(event.job),
    E::ExecutionStopped(event) => over(event.job),
    E::ExecutionSuspended(event) => over(event.job),
    E::ExecutionFinished(event) => over(event.job),
    E::StepRecorded(_) => None,
  }
}

fn of_call(meta: &Meta, event: &call::Event) -> Option<Change> {
  use call::Event as E;
  match event {
    E::CallStarted(started) => Some(Change::CallOpened(Box::new(CallRow {
      id: started.call,
      job: started.job,
      execution: started.execution,
      step: started.step,
      index: started.index,
      tool: started.tool.clone(),
      class: started.class,
      action: started.action.clone(),
      limit_millis: started.limit_millis,
      started: started.started_ms,
      unknown: false,
      changed: meta.ordinal,
    }))),
    E::CallUnknown(unknown) => Some(Change::CallUnknown { call: unknown.call, changed: meta.ordinal }),
    E::CallReturned(event) => Some(Change::CallSettled(event.call)),
    E::CallFailed(event) => Some(Change::CallSettled(event.call)),
    E::CallReconciled(event) => Some(Change::CallSettled(event.call)),
    E::CallSkipped(event) => Some(Change::CallSettled(event.call)),
    // A held call is no open one: the projection of pending actions shows its card.
    E::CallHeld(_) | E::CallOutcomeNoted(_) => None,
  }
}
