//! How a task is steered: instructed at any time, paused, resumed, stopped (STR, D1).
//!
//! An instruction or a stop takes effect at the next boundary: what runs finishes and keeps its result, what has not begun is skipped and paired, a result that is
//! ready and not yet published is refused.

use super::decide::{declined, is_repeated};
use super::state::{Moves, turns};
use super::{
  ActionWithdrawn, InstructionGiven, Order, OrderRepeated, PauseReason, Status, Task, TaskInstructed, TaskPaused, TaskResumed, TaskStopped, WaitReason,
  WithdrawReason, run, start,
};
use crate::call::{CallSkipped, SkipReason};
use crate::codes::reason;
use crate::conversation::kept_file;
use crate::event::Event;
use crate::execution::{ExecutionStopped, ExecutionSuspended};
use crate::ids::{MessageId, TaskId, derived};
use crate::limits::TASKS_OPEN_MAX;
use crate::meta::{Meta, Origin};
use crate::settle::{no_change, refused};
use crate::state::{Root, Thing};
use crate::text;

/// A command about a task that exists, of the owner or of a turn of theirs.
pub(super) struct Steering<'a> {
  root: &'a Root,
  meta: &'a Meta,
  id: TaskId,
  task: &'a Task,
  order: Option<Order>,
  by: Origin,
}

impl<'a> Steering<'a> {
  /// The command, or what is decided when it isn't to be carried out.
  pub(super) fn of(root: &'a Root, thing: &'a Thing, meta: &'a Meta, of: (TaskId, Option<Order>)) -> Result<Self, Vec<Event>> {
    let (id, order) = of;
    let by = match (meta.origin, order) {
      (Origin::Owner, None) => Origin::Owner,
      (Origin::Platform, Some(_)) => Origin::Agent,
      (Origin::Owner | Origin::Platform | Origin::Agent | Origin::Tool | Origin::ThirdParty, _) => return Err(vec![refused(reason::NOT_ALLOWED)]),
    };
    let task = thing.task().ok_or_else(|| declined(id, order.as_ref(), reason::NOT_FOUND))?;
    if let Some(order) = order.filter(|order| is_repeated(task, Some(order))) {
      return Err(vec![OrderRepeated { task: id, order }.into()]);
    }
    Ok(Self { root, meta, id, task, order, by })
  }

  fn declined(&self, reason: &str) -> Vec<Event> {
    declined(self.id, self.order.as_ref(), reason)
  }

  /// It is so already.
  fn is_so(&self) -> Vec<Event> {
    match self.order {
      Some(order) => vec![OrderRepeated { task: self.id, order }.into()],
      None => vec![no_change(reason::ALREADY_DONE)],
    }
  }

  /// Whether an ended task can't go on because too many are open.
  fn has_no_room(&self) -> bool {
    self.task.status.is_ended() && self.root.tasks.len() >= TASKS_OPEN_MAX
  }

  /// A turn's instruction counts only if it had read the task since the last instruction of someone else and the last result (REP-3).
  fn is_unread(&self) -> bool {
    let newest = if self.task.instructed_by.is_some() && self.task.instructed_by == self.order.map(|order| order.job) {
      self.task.completed
    } else {
      self.task.revision().max(self.task.completed)
    };
    self.order.is_some_and(|order| order.read < newest)
  }

  fn run_after(&self) -> i32 {
    self.task.run + i32::from(self.task.status.is_ended())
  }
}

pub(super) fn instruct(steering: &Steering<'_>, given: &InstructionGiven) -> Vec<Event> {
  let Steering { root, meta, id, task, order, by } = *steering;
  let instruction = text::clean(&given.text);
  let full = || steering.has_no_room().then_some(reason::QUEUE_FULL);
  let unread = || steering.is_unread().then_some(reason::TASK_NOT_READ);
  if let Some(reason) = start::unfit(&instruction, &given.attachments).or_else(unread).or_else(full) {
    return steering.declined(reason);
  }
  let mut events = withdrawn(task, id, WithdrawReason::Instructed, SkipReason::Steered);
  let instructed = TaskInstructed {
    task: id,
    conversation: task.conversation,
    instruction: MessageId(derived(meta.id, u32::try_from(events.len()).expect("a decision has at most 64 events"))),
    by,
    text: instruction,
    attachments: given.attachments.iter().map(kept_file).collect(),
    order,
  };
  events.push(instructed.into());
  // The cards are gone with the instruction, so only an external call can be in the way.
  let waits_for_call = task.work.waits_for_call();
  match task.status {
    // A pause that someone asked for isn't taken back by an instruction (SID-18).
    Status::Active | Status::Waiting(WaitReason::UnknownEffect) | Status::Paused(PauseReason::Asked) => {}
    Status::Waiting(WaitReason::Approval | WaitReason::Desktop | WaitReason::Notice)
    | Status::Paused(PauseReason::OutputLooped)
    | Status::Completed
    | Status::Failed
    | Status::Stopped => {
      events.extend(still_running(task, id));
      if waits_for_call {
        events.extend(run::waits(root, id, WaitReason::UnknownEffect));
      } else {
        events.extend(run::queued(root, id, steering.run_after()));
      }
    }
  }
  events
}

/// A running tool finishes; the execution ends with the last of them, or now.
pub(super) fn pause(steering: &Steering<'_>) -> Vec<Event> {
  let Steering { root, id, task, order, by, .. } = *steering;
  match task.status {
    Status::Active | Status::Waiting(_) => {}
    Status::Paused(_) => return steering.is_so(),
    Status::Completed | Status::Failed | Status::Stopped => return steering.declined(reason::STATE_CHANGED),
  }
  let mut events = run::suspended(task, id, None);
  events.push(TaskPaused { task: id, reason: PauseReason::Asked, by, detail: String::new(), order }.into());
  events.extend(turns(root, Moves::leaves(id)));
  events
}

/// What the task waited for before the pause it still waits for: pending approvals and unknown effects are not overridden (SID-18).
pub(super) fn resume(steering: &Steering<'_>) -> Vec<Event> {
  let Steering { root, id, task, order, by, .. } = *steering;
  match task.status {
    Status::Paused(_) | Status::Waiting(WaitReason::Notice) | Status::Failed | Status::Stopped => {}
    Status::Active => return steering.is_so(),
    Status::Waiting(WaitReason::Approval | WaitReason::UnknownEffect | WaitReason::Desktop) | Status::Completed => {
      return steering.declined(reason::STATE_CHANGED);
    }
  }
  if steering.has_no_room() {
    return steering.declined(reason::QUEUE_FULL);
  }
  let mut events = vec![TaskResumed { task: id, by, order }.into()];
  events.extend(still_running(task, id));
  match task.blocked(None, &[]) {
    Some(reason) => events.extend(run::waits(root, id, reason)),
    None => events.extend(run::queued(root, id, steering.run_after())),
  }
  events
}

/// Started calls stay started: what they did is reported later, by their class. Nothing else of the task begins, and its execution is over.
pub(super) fn stop(steering: &Steering<'_>) -> Vec<Event> {
  let Steering { root, id, task, order, by, .. } = *steering;
  match task.status {
    Status::Active | Status::Waiting(_) | Status::Paused(_) => {}
    Status::Stopped => return steering.is_so(),
    Status::Completed | Status::Failed => return steering.declined(reason::STATE_CHANGED),
  }
  let running = task.work.running.as_ref().map(|running| ExecutionStopped { job: id.into(), execution: running.execution }.into());
  let mut events: Vec<Event> = running.into_iter().collect();
  events.extend(withdrawn(task, id, WithdrawReason::Stopped, SkipReason::Stopped));
  events.push(TaskStopped { task: id, by, order }.into());
  events.extend(turns(root, Moves::leaves(id)));
  events
}

/// A paused execution whose last tool still runs is over when the task goes on: the next one takes its place.
fn still_running(task: &Task, id: TaskId) -> Option<Event> {
  let running = task.work.running.as_ref()?;
  Some(ExecutionSuspended { job: id.into(), execution: running.execution }.into())
}

/// Every card is withdrawn, and its call skipped and so paired.
pub(super) fn withdrawn(task: &Task, id: TaskId, reason: WithdrawReason, skip: SkipReason) -> Vec<Event> {
  let both = |(call, known): (_, &crate::call::Call)| {
    let card = known.card.as_ref().map(|card| ActionWithdrawn { task: id, card: card.id, call, reason }.into());
    let skipped = CallSkipped { job: id.into(), call, step: known.step, index: known.index, tool: known.tool.clone(), reason: skip };
    card.into_iter().chain([skipped.into()])
  };
  task.carded().into_iter().flat_map(both).collect()
}
