//! What is decided on commands and reports about tasks.

use super::{DesktopBusyReported, Input, OutputLoopReported, PauseReason, Task, TaskPaused, WaitReason, actions, orders, outputs, run, start, steer};
use crate::codes::{notice, reason};
use crate::event::Event;
use crate::execution::ExecutionSuspended;
use crate::ids::{TaskId, Timestamp};
use crate::limits::DETAIL_CHARS_MAX;
use crate::meta::{Meta, Origin};
use crate::settle::no_change;
use crate::state::{Root, Thing};
use crate::task::state::{Moves, turns};
use crate::task::{Status, steer::Steering};
use crate::text;

pub(crate) fn decide(root: &Root, thing: &Thing, meta: &Meta, input: &Input, at: Timestamp) -> Vec<Event> {
  let steering = |order| Steering::of(root, thing, meta, (input.task(), order));
  match input {
    Input::TaskStartAsked(asked) => start::start(root, thing, meta, asked),
    Input::InstructionGiven(given) => steering(given.order).map_or_else(|declined| declined, |steering| steer::instruct(&steering, given)),
    Input::TaskPauseAsked(asked) => steering(asked.order).map_or_else(|declined| declined, |steering| steer::pause(&steering)),
    Input::TaskResumeAsked(asked) => steering(asked.order).map_or_else(|declined| declined, |steering| steer::resume(&steering)),
    Input::TaskStopAsked(asked) => steering(asked.order).map_or_else(|declined| declined, |steering| steer::stop(&steering)),
    Input::ActionDecisionGiven(given) => actions::decide(root, thing, meta, given, at),
    Input::CheckpointAsked(asked) => outputs::checkpoint(thing, asked),
    Input::DeliveryAsked(asked) => outputs::deliver(thing, asked),
    Input::OutputLoopReported(reported) => at_work(thing, reported.execution).map_or_else(stale, |task| looped(root, task, meta, reported)),
    Input::DesktopBusyReported(reported) => at_work(thing, reported.execution).map_or_else(stale, |task| busy(root, task, reported)),
    Input::DesktopFreedReported(reported) => freed(root, thing, reported.task),
  }
}

/// The task, if this execution of it runs and nobody paused it.
fn at_work(thing: &Thing, execution: i32) -> Option<&Task> {
  thing.task().filter(|task| task.status == Status::Active && task.work.running.as_ref().is_some_and(|running| running.execution == execution))
}

fn stale() -> Vec<Event> {
  vec![no_change(reason::STALE_EXECUTION)]
}

/// A model that repeats itself or writes without end is stopped at the next boundary, and the conversation says why (RUN-24).
fn looped(root: &Root, task: &Task, meta: &Meta, reported: &OutputLoopReported) -> Vec<Event> {
  let detail = text::first_chars(&reported.detail, DETAIL_CHARS_MAX);
  let mut events = run::suspended(task, reported.task, None);
  events.push(TaskPaused { task: reported.task, reason: PauseReason::OutputLooped, by: Origin::Platform, detail, order: None }.into());
  events.push(run::notice(meta, events.len(), (reported.task, task), (notice::TASK_LOOPED, Vec::new())));
  events.extend(turns(root, Moves::leaves(reported.task)));
  events
}

fn busy(root: &Root, task: &Task, reported: &DesktopBusyReported) -> Vec<Event> {
  if task.runs_another(None) {
    return vec![no_change(reason::CALL_STARTED)];
  }
  let mut events = vec![ExecutionSuspended { job: reported.task.into(), execution: reported.execution }.into()];
  let reason = task.blocked(None, &[]).unwrap_or(WaitReason::Desktop);
  events.extend(run::waits(root, reported.task, reason));
  events
}

fn freed(root: &Root, thing: &Thing, id: TaskId) -> Vec<Event> {
  match thing.task() {
    Some(task) if task.status == Status::Waiting(WaitReason::Desktop) => run::queued(root, id, task.run),
    Some(_) | None => vec![no_change(reason::NOT_SET)],
  }
}

/// Whether what a turn asked for was done before.
pub(super) fn is_repeated(task: &Task, order: Option<&super::Order>) -> bool {
  order.is_some_and(|order| task.orders.contains(&order.call))
}

pub(super) use orders::declined;
