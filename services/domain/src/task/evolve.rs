//! What is remembered of tasks.

use super::{Event, OpenTask, OutputDelivered, Place, Status, Task, TaskInstructed, TaskStarted};
use crate::call::{CallStatus, SkipReason};
use crate::execution::Work;
use crate::ids::{TaskId, named};
use crate::limits::{ORDERS_MAX, REJECTIONS_MAX, STEPS_REMEMBERED};
use crate::meta::Meta;
use crate::state::{Root, State, Thing};
use crate::task::start::content_of;

pub(crate) fn evolve(state: &mut State, meta: &Meta, event: &Event) {
  let State { root, thing } = state;
  match event {
    Event::TaskStarted(started) => {
      *thing = Thing::Task(Box::new(begun(started, meta)));
      root.tasks.insert(started.task, OpenTask { place: Place::Queued, since: meta.ordinal });
    }
    Event::TaskRunRequested(requested) => place(root, requested.task, Place::Turn),
    Event::TaskLookedUp(looked_up) => {
      if let Some(reply) = thing.reply_mut() {
        reply.looking_up.insert(looked_up.call, looked_up.task);
      }
    }
    Event::TaskOrdered(_) | Event::OrderRefused(_) | Event::OrderRepeated(_) | Event::CheckpointRecorded(_) => {}
    Event::TaskInstructed(_)
    | Event::TaskQueued(_)
    | Event::TaskWaiting(_)
    | Event::TaskPaused(_)
    | Event::TaskResumed(_)
    | Event::TaskStopped(_)
    | Event::TaskCompleted(_)
    | Event::TaskFailed(_)
    | Event::OutputDelivered(_)
    | Event::ActionApproved(_)
    | Event::ActionRejected(_)
    | Event::ActionWithdrawn(_) => {
      if let Some(task) = thing.task_mut() {
        of_task(root, task, meta, event);
      }
    }
  }
}

fn of_task(root: &mut Root, task: &mut Task, meta: &Meta, event: &Event) {
  match event {
    Event::TaskInstructed(instructed) => instruct(root, task, meta, instructed),
    Event::TaskQueued(queued) => {
      task.status = Status::Active;
      task.run = queued.run;
      root.tasks.insert(queued.task, OpenTask { place: Place::Queued, since: meta.ordinal });
    }
    Event::TaskWaiting(waiting) => {
      task.status = Status::Waiting(waiting.reason);
      root.tasks.insert(waiting.task, OpenTask { place: Place::Aside, since: meta.ordinal });
    }
    Event::TaskPaused(paused) => {
      task.status = Status::Paused(paused.reason);
      task.halted = Some((meta.ordinal, SkipReason::Paused));
      remember(task, paused.order.map(|order| order.call));
      place(root, paused.task, Place::Aside);
    }
    Event::TaskResumed(resumed) => {
      task.work.losses = 0;
      remember(task, resumed.order.map(|order| order.call));
    }
    Event::TaskStopped(stopped) => {
      task.halted = Some((meta.ordinal, SkipReason::Stopped));
      remember(task, stopped.order.map(|order| order.call));
      end(root, task, stopped.task, Status::Stopped);
    }
    Event::TaskCompleted(completed) => {
      task.completed = meta.ordinal;
      root.result_sets_out(completed.task, completed.revision);
      end(root, task, completed.task, Status::Completed);
    }
    Event::TaskFailed(failed) => end(root, task, failed.task, Status::Failed),
    Event::OutputDelivered(delivered) => {
      task.outputs.insert(delivered.output, content_of_output(delivered));
    }
    Event::ActionApproved(approved) => {
      if let Some(scope) = &approved.scope {
        task.allowed.entry(scope.clone()).or_insert(approved.card);
      }
      if let Some(call) = task.work.calls.get_mut(&approved.call) {
        call.status = CallStatus::Approved;
      }
    }
    Event::ActionRejected(rejected) => {
      if task.rejected.len() >= REJECTIONS_MAX {
        task.rejected.pop_first();
      }
      task.rejected.insert(rejected.remembered);
    }
    Event::ActionWithdrawn(withdrawn) => {
      // Without its card the call can be held anew, or is skipped by the event that follows.
      if let Some(call) = task.work.calls.get(&withdrawn.call)
        && call.started_by.is_empty()
      {
        task.work.calls.remove(&withdrawn.call);
      }
    }
    Event::TaskOrdered(_)
    | Event::TaskLookedUp(_)
    | Event::TaskStarted(_)
    | Event::TaskRunRequested(_)
    | Event::OrderRefused(_)
    | Event::OrderRepeated(_)
    | Event::CheckpointRecorded(_) => {}
  }
}

fn begun(started: &TaskStarted, meta: &Meta) -> Task {
  Task {
    conversation: started.conversation,
    asked_in: started.asked_in,
    author: started.author,
    title: started.title.clone(),
    correlation: meta.correlation,
    status: Status::Active,
    run: 1,
    work: Work { instructed: meta.ordinal, ..Work::default() },
    started_with: content_of(started.task, &started.title, &started.goal, &started.attachments),
    completed: 0,
    instructed_by: started.order.map(|order| order.job),
    halted: None,
    orders: started.order.iter().map(|order| order.call).collect(),
    allowed: std::collections::BTreeMap::new(),
    rejected: std::collections::BTreeSet::new(),
    outputs: std::collections::BTreeMap::new(),
  }
}

/// The owner gave an instruction: what was rejected, handed over or lost before it no longer counts, and a result that wasn't told yet is superseded.
fn instruct(root: &mut Root, task: &mut Task, meta: &Meta, instructed: &TaskInstructed) {
  task.work.instruct(meta.ordinal);
  task.instructed_by = instructed.order.map(|order| order.job);
  task.rejected.clear();
  task.outputs.clear();
  remember(task, instructed.order.map(|order| order.call));
  if let Some(underway) = root.results.get_mut(&instructed.task) {
    underway.revision = meta.ordinal;
  }
  root.supersede(instructed.task, meta.ordinal);
}

fn remember(task: &mut Task, call: Option<crate::ids::CallId>) {
  let Some(call) = call else { return };
  if task.orders.len() >= ORDERS_MAX {
    task.orders.pop_first();
  }
  task.orders.insert(call);
}

fn place(root: &mut Root, task: TaskId, place: Place) {
  if let Some(open) = root.tasks.get_mut(&task) {
    open.place = place;
  }
}

/// What the owner allowed for the task ends with it (D11).
fn end(root: &mut Root, task: &mut Task, id: TaskId, status: Status) {
  task.status = status;
  task.allowed.clear();
  root.tasks.remove(&id);
}

/// A step was recorded: of old steps only what is still open is remembered.
pub(crate) fn stepped(thing: &mut Thing) {
  if let Some(task) = thing.task_mut() {
    task.work.forget_steps_before(STEPS_REMEMBERED);
  }
}

fn content_of_output(delivered: &OutputDelivered) -> uuid::Uuid {
  content(delivered.output, &delivered.file, &delivered.source, &delivered.caption)
}

/// What a request key stands for, to tell a repetition from another use of it.
pub(super) fn content(output: crate::ids::OutputId, file: &crate::conversation::FileRef, source: &str, caption: &str) -> uuid::Uuid {
  let parts = [file.sha256.as_str(), file.name.as_str(), source, caption];
  named(output.0, &parts.map(|part| format!("{}:{part}", part.len())).concat())
}
