//! Executions of a task: when one may start, what its end leads to, and how the task finishes.

use super::state::{Moves, turns};
use super::steer::withdrawn;
use super::{Status, Task, TaskCompleted, TaskFailed, TaskQueued, TaskWaiting, WaitReason, WithdrawReason};
use crate::call::{Call, SkipReason};
use crate::codes::{notice as code, reason};
use crate::conversation::{NoticeParam, NoticePosted};
use crate::event::Event;
use crate::execution::{
  Ending, ExecutionAsked, ExecutionFailed, ExecutionFinished, ExecutionLost, ExecutionStarted, ExecutionSuspended, ExecutionYielded, FinishAsked, JobKind,
  StepOf, named_code, recorded_finish,
};
use crate::ids::{CallId, MessageId, TaskId, Timestamp, derived};
use crate::limits::{DETAIL_CHARS_MAX, MESSAGE_TEXT_BYTES_MAX, TASK_RETURNS_MAX};
use crate::meta::Meta;
use crate::settle::refused;
use crate::state::{Root, Thing};
use crate::text;

/// A task has no deadline (RUN-19).
const NO_LIMIT: Timestamp = Timestamp(0);

pub(crate) fn start(root: &Root, thing: &Thing, asked: &ExecutionAsked) -> Vec<Event> {
  match startable(root, thing, asked) {
    Err(reason) => vec![refused(reason)],
    Ok(task) => {
      let (job, conversation) = (asked.job, task.conversation);
      let execution = task.work.executions + 1;
      vec![ExecutionStarted { job, kind: JobKind::Task, execution, conversation, reply: MessageId(job.0), limit_ms: NO_LIMIT }.into()]
    }
  }
}

fn startable<'a>(root: &Root, thing: &'a Thing, asked: &ExecutionAsked) -> Result<&'a Task, &'static str> {
  let task = thing.task().ok_or(reason::NOT_QUEUED)?;
  match task.status {
    Status::Active => {}
    Status::Paused(_) => return Err(reason::PAUSED),
    Status::Waiting(WaitReason::UnknownEffect) => return Err(reason::WAITING_FOR_CALL),
    Status::Waiting(WaitReason::Approval | WaitReason::Desktop | WaitReason::Notice) => return Err(reason::WAITING),
    Status::Stopped => return Err(reason::STOPPED),
    Status::Completed | Status::Failed => return Err(reason::ENDED),
  }
  if task.work.running.is_some() {
    Err(reason::ALREADY_RUNNING)
  } else if !root.task_has_turn(asked.job.into()) {
    Err(reason::NOT_QUEUED)
  } else if task.work.waits_for_call() {
    Err(reason::WAITING_FOR_CALL)
  } else {
    Ok(task)
  }
}

/// The running execution is over without a result. A task that is paused meanwhile stays so.
pub(crate) fn lost(root: &Root, meta: &Meta, of: (TaskId, &Task), execution: i32, ending: &Ending<'_>) -> Vec<Event> {
  let (id, task) = of;
  let (job, goes_on) = (id.into(), task.status == Status::Active);
  match ending {
    Ending::Yielded => {
      let mut events = vec![ExecutionYielded { job, execution }.into()];
      if let Some(reason) = task.blocked(None, &[]).filter(|_| goes_on) {
        events.extend(waits(root, id, reason));
      }
      events
    }
    Ending::Lost(reason) => {
      let losses = task.work.losses + 1;
      let mut events = vec![ExecutionLost { job, execution, reason: *reason, losses }.into()];
      if let Some(reason) = task.blocked(None, &[]).filter(|_| goes_on) {
        events.extend(waits(root, id, reason));
      } else if goes_on && losses > TASK_RETURNS_MAX {
        events.push(notice(meta, events.len(), of, (code::TASK_INTERRUPTED, vec![NoticeParam::new("losses", losses.to_string())])));
        events.extend(waits(root, id, WaitReason::Notice));
      }
      events
    }
    Ending::Failed { code, detail } => {
      let (code, detail) = (named_code(code), text::first_chars(detail, DETAIL_CHARS_MAX));
      let mut events = vec![ExecutionFailed { job, execution, code: code.to_owned(), detail: detail.clone() }.into()];
      if goes_on {
        events.extend(withdrawn(task, id, WithdrawReason::Failed, SkipReason::Lost));
        events.push(TaskFailed { task: id, revision: task.revision(), code: code.to_owned(), detail, text: String::new() }.into());
        events.push(notice(meta, events.len(), of, (code::TASK_FAILED, vec![NoticeParam::new("reason", code)])));
        events.extend(turns(root, Moves::leaves(id)));
      }
      events
    }
  }
}

/// The worker has the result. It counts only if it answers the last instruction and nothing is open.
pub(crate) fn finish(root: &Root, meta: &Meta, of: (TaskId, &Task), asked: &FinishAsked) -> Vec<Event> {
  let (id, task) = of;
  let step = match StepOf::finish(&task.work, asked) {
    Ok(step) => step,
    Err(reason) => return vec![refused(reason)],
  };
  let result = text::clean(&asked.text);
  if let Some(reason) = too_early(task, asked, &result) {
    let (kept, _) = text::bounded(&result, MESSAGE_TEXT_BYTES_MAX);
    return recorded_finish(step, asked, &kept).into_iter().chain([refused(reason)]).collect();
  }
  let mut events: Vec<Event> = recorded_finish(step, asked, "").into_iter().collect();
  events.push(ExecutionFinished { job: asked.job, execution: asked.execution }.into());
  let (revision, title) = (task.revision(), task.title.clone());
  if asked.incomplete {
    // Progress is never a result: it stays on the task, and the conversation says that there is none.
    events.push(TaskFailed { task: id, revision, code: reason::INCOMPLETE.to_owned(), detail: String::new(), text: result }.into());
    events.push(notice(meta, events.len(), of, (code::TASK_FAILED, vec![NoticeParam::new("reason", reason::INCOMPLETE)])));
  } else {
    events.push(TaskCompleted { task: id, asked_in: task.asked_in, author: task.author, title, revision, text: result }.into());
  }
  events.extend(turns(root, Moves::leaves(id)));
  events
}

fn too_early(task: &Task, asked: &FinishAsked, result: &str) -> Option<&'static str> {
  if task.status != Status::Active {
    Some(reason::PAUSED)
  } else if asked.seen < task.revision() || task.work.has_open_call() {
    Some(reason::FINISH_TOO_EARLY)
  } else if result.trim().is_empty() {
    Some(reason::TEXT_EMPTY)
  } else if result.len() > MESSAGE_TEXT_BYTES_MAX {
    // A result is never cut: what is longer is handed over as a file.
    Some(reason::TEXT_TOO_LONG)
  } else {
    None
  }
}

/// What became of a call, as far as its task is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
  Settled,
  /// External, and nobody knows its outcome.
  Unknown,
}

/// What follows for the task from what became of a call: an execution that only waited for it is over, and a task that waited for its outcome goes on.
pub(crate) fn after_call(root: &Root, meta: &Meta, of: (TaskId, &Task), before: &[Event], what: (CallId, Left)) -> Vec<Event> {
  let ((id, task), (call, left)) = (of, what);
  let blocked = match left {
    Left::Settled => task.blocked(Some(call), &[]),
    Left::Unknown => Some(WaitReason::UnknownEffect),
  };
  match (task.status, blocked) {
    (Status::Active, Some(reason)) => {
      let over = suspended(task, id, Some(call));
      if over.is_empty() { over } else { over.into_iter().chain(waits(root, id, reason)).collect() }
    }
    (Status::Paused(_), _) => suspended(task, id, Some(call)),
    (Status::Waiting(WaitReason::UnknownEffect), None) => returned(root, meta, of, before.len()),
    (Status::Waiting(WaitReason::UnknownEffect), Some(WaitReason::Approval)) => waits(root, id, WaitReason::Approval),
    (Status::Active | Status::Waiting(_) | Status::Completed | Status::Failed | Status::Stopped, _) => Vec::new(),
  }
}

/// The task has nothing to wait for any more and returns to the queue, unless it was interrupted too often by then. `index` events stand before in the decision.
pub(super) fn returned(root: &Root, meta: &Meta, of: (TaskId, &Task), index: usize) -> Vec<Event> {
  let (id, task) = of;
  let losses = task.work.losses;
  if losses > TASK_RETURNS_MAX {
    let params = vec![NoticeParam::new("losses", losses.to_string())];
    let interrupted = notice(meta, index, of, (code::TASK_INTERRUPTED, params));
    [interrupted].into_iter().chain(waits(root, id, WaitReason::Notice)).collect()
  } else {
    queued(root, id, task.run)
  }
}

/// The running execution is over, if there is one and no call of it runs, `besides` apart.
pub(super) fn suspended(task: &Task, id: TaskId, besides: Option<CallId>) -> Vec<Event> {
  match &task.work.running {
    Some(running) if !task.runs_another(besides) => vec![ExecutionSuspended { job: id.into(), execution: running.execution }.into()],
    Some(_) | None => Vec::new(),
  }
}

/// The task gives its turn up and waits.
pub(super) fn waits(root: &Root, id: TaskId, reason: WaitReason) -> Vec<Event> {
  let mut events = vec![TaskWaiting { task: id, reason }.into()];
  events.extend(turns(root, Moves::leaves(id)));
  events
}

/// The task stands at the end of the queue.
pub(super) fn queued(root: &Root, id: TaskId, run: i32) -> Vec<Event> {
  let mut events = vec![TaskQueued { task: id, run }.into()];
  events.extend(turns(root, Moves::joins(id)));
  events
}

/// A notice about a task in the conversation that asked for it, as event number `index` of the decision.
pub(super) fn notice(meta: &Meta, index: usize, about: (TaskId, &Task), what: (&str, Vec<NoticeParam>)) -> Event {
  let ((id, task), (code, more)) = (about, what);
  let index = u32::try_from(index).expect("a decision has at most 64 events");
  let mut params = vec![NoticeParam::new("task", id.to_string()), NoticeParam::new("title", task.title.as_str())];
  params.extend(more);
  NoticePosted { notice: MessageId(derived(meta.id, index)), conversation: task.asked_in, reply_to: None, code: code.to_owned(), params }.into()
}

/// The owner is asked about an external call whose outcome nobody knows (RUN-18).
pub(crate) fn unknown_notice(meta: &Meta, index: usize, of: (TaskId, &Task), call: (CallId, &Call)) -> Event {
  let params = vec![NoticeParam::new("tool", call.1.tool.as_str()), NoticeParam::new("call", call.0.to_string())];
  notice(meta, index, of, (code::CALL_UNKNOWN, params))
}
