//! What the rules remember of a task, and of all open ones in the root.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{PauseReason, TaskRunRequested, WaitReason};
use crate::call::{Call, CallStatus, SkipReason};
use crate::conversation::Author;
use crate::event::Event;
use crate::execution::Work;
use crate::ids::{ActionId, CallId, ConversationId, JobId, OutputId, RecordId, TaskId};
use crate::limits::CONCURRENCY_DEFAULT;
use crate::state::Root;

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
  pub conversation: ConversationId,
  pub asked_in: ConversationId,
  pub author: Author,
  pub title: String,
  /// The chain of causes that started it.
  pub correlation: Uuid,
  pub status: Status,
  /// 1 at the start, one more each time that it goes on after an end.
  pub run: i32,
  pub work: Work,
  /// The content that it was started with, to tell a repetition from another use of its request key.
  pub started_with: Uuid,
  /// The ordinal of its last result.
  pub completed: i64,
  /// The turn that gave the last instruction, if one did.
  pub instructed_by: Option<JobId>,
  /// The last pause or stop: calls of older steps that weren't asked for by then don't begin.
  pub halted: Option<(i64, SkipReason)>,
  /// Calls of turns that were carried out.
  pub orders: BTreeSet<CallId>,
  /// Scopes that the owner allowed for this task, each with the card that says so.
  pub allowed: BTreeMap<String, ActionId>,
  /// What the owner rejected since the last instruction.
  pub rejected: BTreeSet<RecordId>,
  /// What was handed over since the last instruction, with its content, name and caption.
  pub outputs: BTreeMap<OutputId, Uuid>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
  /// Queued or running.
  Active,
  Waiting(WaitReason),
  Paused(PauseReason),
  Completed,
  Failed,
  Stopped,
}

/// A task that is not over, as the root counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTask {
  pub place: Place,
  /// The ordinal since which it is queued.
  pub since: i64,
}

/// Results of a task that its conversation doesn't know yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Underway {
  /// How many.
  pub count: u32,
  /// The ordinal of the task's last instruction.
  pub revision: i64,
}

/// Where an open task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
  Queued,
  /// It may run.
  Turn,
  /// It waits or is paused.
  Aside,
}

impl Status {
  /// Whether the task is over until someone lets it go on.
  pub fn is_ended(self) -> bool {
    match self {
      Self::Completed | Self::Failed | Self::Stopped => true,
      Self::Active | Self::Waiting(_) | Self::Paused(_) => false,
    }
  }
}

impl Task {
  /// The ordinal of the last instruction.
  pub fn revision(&self) -> i64 {
    self.work.instructed
  }

  /// What the task has to wait for, apart from what is settled just now: `besides` is a call that no longer counts, `decided` are cards that are approved now.
  pub(super) fn blocked(&self, besides: Option<CallId>, decided: &[CallId]) -> Option<WaitReason> {
    let others = || self.work.calls.iter().filter(move |(id, _)| Some(**id) != besides);
    if others().any(|(_, call)| call.is_unconfirmed()) {
      return Some(WaitReason::UnknownEffect);
    }
    let first = others().filter(|(_, call)| call.is_carded()).min_by_key(|(_, call)| (call.step, call.index));
    first.filter(|(id, call)| call.status == CallStatus::Held && !decided.contains(id)).map(|_| WaitReason::Approval)
  }

  /// Whether a call other than `besides` runs.
  pub(super) fn runs_another(&self, besides: Option<CallId>) -> bool {
    self.work.calls.iter().any(|(id, call)| call.status == CallStatus::Started && Some(*id) != besides)
  }

  /// Every call with a card, in their order.
  pub(super) fn carded(&self) -> Vec<(CallId, &Call)> {
    let mut carded: Vec<_> = self.work.calls.iter().filter(|(_, call)| call.is_carded()).map(|(&id, call)| (id, call)).collect();
    carded.sort_by_key(|(_, call)| (call.step, call.index));
    carded
  }
}

/// What one decision does to the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moves {
  /// It gives its turn or its place in the queue up.
  pub(super) leaves: Option<TaskId>,
  /// It stands at the end of the queue from now on.
  pub(super) joins: Option<TaskId>,
}

impl Moves {
  pub(super) fn leaves(task: TaskId) -> Self {
    Self { leaves: Some(task), joins: None }
  }

  pub(super) fn joins(task: TaskId) -> Self {
    Self { leaves: Some(task), joins: Some(task) }
  }
}

/// Whose turn it is after `moves`.
pub(super) fn turns(root: &Root, moves: Moves) -> Vec<Event> {
  let concurrency = root.settings.as_ref().map_or(CONCURRENCY_DEFAULT, |settings| settings.concurrency);
  granted(root, concurrency, moves)
}

/// Whose turn it is when this many tasks may run from now on.
pub(crate) fn turns_at(root: &Root, concurrency: i32) -> Vec<Event> {
  granted(root, concurrency, Moves::default())
}

/// The tasks that waited longest have their turn first.
fn granted(root: &Root, concurrency: i32, moves: Moves) -> Vec<Event> {
  let others = || root.tasks.iter().filter(|(id, _)| Some(**id) != moves.leaves);
  let taken = others().filter(|(_, open)| open.place == Place::Turn).count();
  let free = usize::try_from(concurrency).unwrap_or(0).saturating_sub(taken);
  let mut queue: Vec<(i64, TaskId)> = others().filter(|(_, open)| open.place == Place::Queued).map(|(&id, open)| (open.since, id)).collect();
  queue.sort_unstable();
  queue.into_iter().map(|(_, id)| id).chain(moves.joins).take(free).map(|task| TaskRunRequested { task }.into()).collect()
}

impl Root {
  /// A result of the task sets out for its conversation.
  pub(super) fn result_sets_out(&mut self, task: TaskId, revision: i64) {
    let underway = self.results.entry(task).or_insert(Underway { count: 0, revision });
    underway.count += 1;
  }

  /// A result of the task has reached its conversation.
  pub(crate) fn result_arrived(&mut self, task: TaskId) {
    if let Some(underway) = self.results.get_mut(&task) {
      underway.count = underway.count.saturating_sub(1);
    }
    self.results.retain(|_, underway| underway.count > 0);
  }

  /// Whether it is the task's turn.
  pub fn task_has_turn(&self, task: TaskId) -> bool {
    self.tasks.get(&task).is_some_and(|open| open.place == Place::Turn)
  }
}
