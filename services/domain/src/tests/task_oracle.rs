//! What must hold of tasks in any log, in other words than the rules: turns, cards, results.

use std::collections::{BTreeMap, BTreeSet};

use super::oracle::{Call, Job};
use crate::call::{CallHeld, CallStarted, Class};
use crate::conversation::{ReplyPosted, ReportAdmitted, ReportSuperseded};
use crate::ids::{ActionId, CallId, JobId, TaskId};
use crate::limits::TASK_RETURNS_MAX;
use crate::task::{Event, PauseReason, WaitReason};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
  /// In the queue, since this place.
  Queued(usize),
  Turn,
  Waiting(WaitReason),
  Paused,
  Ended,
}

#[derive(Debug)]
struct Card {
  task: TaskId,
  call: CallId,
  /// The action that it showed, and its target.
  shown: (String, String),
  at: (i32, i32),
  scope: Option<String>,
  state: CardState,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum CardState {
  Open,
  Approved,
  /// Used, rejected or withdrawn.
  Over,
}

#[derive(Debug, Default)]
pub(super) struct Tasks {
  tasks: BTreeMap<TaskId, Standing>,
  concurrency: usize,
  places: usize,
  cards: BTreeMap<ActionId, Card>,
  /// What the owner allowed for a task that isn't over.
  allowed: BTreeSet<(TaskId, String)>,
  /// Orders that were carried out.
  orders: BTreeSet<CallId>,
  /// Grows with every instruction.
  instructions: BTreeMap<TaskId, usize>,
  /// Results that wait to be told: the instruction they answer, and their text.
  results: BTreeMap<JobId, (TaskId, usize, String)>,
  completed: BTreeMap<(TaskId, i64), usize>,
}

impl Tasks {
  pub(super) fn concurrency(&mut self, concurrency: i32) {
    self.concurrency = usize::try_from(concurrency).unwrap();
  }

  pub(super) fn take(&mut self, event: &Event, jobs: &mut BTreeMap<JobId, Job>) {
    match event {
      Event::TaskStarted(started) => {
        self.carried_out(started.order.map(|order| order.call));
        self.instructions.insert(started.task, 0);
        self.queue(started.task);
      }
      Event::TaskInstructed(instructed) => {
        self.carried_out(instructed.order.map(|order| order.call));
        *self.instructions.get_mut(&instructed.task).expect("only a task is instructed") += 1;
        assert!(self.cards_of(instructed.task).next().is_none(), "a card outlasts an instruction");
        jobs.get_mut(&instructed.task.into()).expect("only a task is instructed").losses = 0;
      }
      Event::TaskQueued(queued) => self.queue(queued.task),
      Event::TaskRunRequested(requested) => self.turn(requested.task),
      Event::TaskWaiting(waiting) => self.stand(waiting.task, Standing::Waiting(waiting.reason)),
      Event::TaskPaused(paused) => {
        self.carried_out(paused.order.map(|order| order.call));
        assert!(paused.reason == PauseReason::Asked || !paused.detail.is_empty(), "paused without an explanation");
        self.stand(paused.task, Standing::Paused);
      }
      Event::TaskResumed(resumed) => {
        self.carried_out(resumed.order.map(|order| order.call));
        jobs.get_mut(&resumed.task.into()).expect("only a task is resumed").losses = 0;
      }
      Event::TaskStopped(stopped) => {
        self.carried_out(stopped.order.map(|order| order.call));
        self.end(stopped.task);
      }
      Event::TaskCompleted(completed) => {
        self.completed.insert((completed.task, completed.revision), self.instructions[&completed.task]);
        self.end(completed.task);
      }
      Event::TaskFailed(failed) => self.end(failed.task),
      Event::ActionApproved(approved) => {
        let card = self.cards.get_mut(&approved.card).expect("only what was held is approved");
        assert_eq!((card.state, card.task, card.call), (CardState::Open, approved.task, approved.call), "decided twice");
        card.state = CardState::Approved;
        if let Some(scope) = &approved.scope {
          assert_eq!(card.scope.as_ref(), Some(scope), "wider than shown");
          self.allowed.insert((approved.task, scope.clone()));
        }
      }
      Event::ActionRejected(rejected) => self.over(rejected.card, &[CardState::Open]),
      Event::ActionWithdrawn(withdrawn) => self.over(withdrawn.card, &[CardState::Open, CardState::Approved]),
      Event::OutputDelivered(delivered) => {
        assert!(jobs[&delivered.task.into()].running == Some(delivered.execution), "delivered by an execution that doesn't run");
      }
      Event::TaskOrdered(_) | Event::TaskLookedUp(_) | Event::OrderRefused(_) | Event::OrderRepeated(_) | Event::CheckpointRecorded(_) => {}
    }
  }

  /// Whether a task may have an execution now.
  pub(super) fn may_start(&self, job: JobId) -> bool {
    self.tasks.get(&job.into()) == Some(&Standing::Turn)
  }

  pub(super) fn call_held(&mut self, held: &CallHeld) {
    assert_eq!(held.class, Class::External);
    assert!(self.cards.values().all(|card| card.call != held.call || card.state == CardState::Over), "two cards for one call");
    let shown = (held.action.clone(), held.gate.target.clone());
    let (task, scope) = (held.job.into(), held.gate.scope.clone());
    let card = Card { task, call: held.call, shown, at: (held.step, held.index), scope, state: CardState::Open };
    assert!(self.cards.insert(held.card, card).is_none());
  }

  /// An outside effect of a task has exactly one approval: of just this action, used now for the first time, or of its scope.
  pub(super) fn call_started(&mut self, started: &CallStarted) {
    let is_task = self.tasks.contains_key(&started.job.into());
    if !is_task || started.class != Class::External {
      assert_eq!(started.card, None);
      return;
    }
    let id = started.card.expect("an outside effect that nobody approved");
    let card = self.cards.get_mut(&id).expect("approved by a card that there never was");
    assert_eq!(card.task, started.job.into(), "approved for another task");
    let is_approved = card.call == started.call && card.state == CardState::Approved && card.shown.0 == started.action;
    if !is_approved {
      let scope = card.scope.clone().expect("allowed once and for something else");
      assert!(self.allowed.contains(&(started.job.into(), scope)), "no longer allowed");
    }
    for card in self.cards.values_mut().filter(|card| card.call == started.call) {
      assert_ne!(card.state, CardState::Open, "started with an open card");
      card.state = CardState::Over;
    }
  }

  pub(super) fn call_skipped(&mut self, call: CallId) {
    assert!(self.cards.values().all(|card| card.call != call || card.state == CardState::Over), "skipped with a card");
  }

  pub(super) fn reported(&mut self, admitted: &ReportAdmitted) {
    let answers = self.completed[&(admitted.task, admitted.revision)];
    self.results.insert(admitted.message.into(), (admitted.task, answers, admitted.text.clone()));
  }

  /// Whether the job tells a result, which may be posted without a finish.
  pub(super) fn tells(&self, job: JobId) -> bool {
    self.results.contains_key(&job)
  }

  /// A result is told only while its task has no newer instruction.
  pub(super) fn told(&mut self, posted: &ReplyPosted) {
    if let Some((task, answers, _)) = self.results.remove(&posted.job) {
      assert_eq!(self.instructions[&task], answers, "a superseded result was told");
    }
  }

  pub(super) fn superseded(&mut self, superseded: &ReportSuperseded) {
    let (task, answers, _) = self.results.remove(&superseded.job).expect("only a result is superseded");
    assert!(self.instructions[&task] > answers, "superseded by nothing");
  }

  pub(super) fn between_decisions(&self, jobs: &BTreeMap<JobId, Job>, calls: &BTreeMap<CallId, (JobId, Call)>) {
    let turns = self.tasks.values().filter(|standing| **standing == Standing::Turn).count();
    let queued = self.tasks.values().filter(|standing| matches!(standing, Standing::Queued(_))).count();
    assert!(queued == 0 || turns >= self.concurrency, "{queued} wait while only {turns} have their turn");
    for (&task, &standing) in &self.tasks {
      let job = &jobs[&task.into()];
      let own = || calls.values().filter(|(of, _)| TaskId::from(*of) == task).map(|(_, call)| call);
      let started = own().any(Call::is_started);
      let unconfirmed = own().any(|call| call.class == Class::External && call.is_open());
      let first = self.cards_of(task).min_by_key(|card| card.at).map(|card| card.state);
      let context = || format!("{task}: {standing:?} {job:?} started {started} unconfirmed {unconfirmed} first card {first:?}");
      match standing {
        Standing::Turn | Standing::Queued(_) => {
          assert!(job.losses <= TASK_RETURNS_MAX, "returned too often: {}", context());
          let is_stuck = job.running.is_some() && !started && (unconfirmed || first == Some(CardState::Open));
          assert!(!is_stuck, "runs and has nothing to do: {}", context());
          assert!(job.running.is_some() || !unconfirmed, "would run over an unknown effect: {}", context());
        }
        Standing::Waiting(WaitReason::Approval) => assert!(first == Some(CardState::Open) && !unconfirmed, "{}", context()),
        Standing::Waiting(WaitReason::UnknownEffect) => assert!(unconfirmed, "{}", context()),
        Standing::Waiting(WaitReason::Desktop | WaitReason::Notice) => assert!(!unconfirmed, "{}", context()),
        Standing::Paused => assert!(job.running.is_none() || started, "paused and runs nothing: {}", context()),
        Standing::Ended => assert!(first.is_none(), "a card of an ended task: {}", context()),
      }
      let may_run = matches!(standing, Standing::Turn | Standing::Paused);
      assert!(job.running.is_none() || may_run, "runs without its turn: {}", context());
    }
  }

  fn cards_of(&self, task: TaskId) -> impl Iterator<Item = &Card> {
    self.cards.values().filter(move |card| card.task == task && card.state != CardState::Over)
  }

  fn over(&mut self, card: ActionId, from: &[CardState]) {
    let card = self.cards.get_mut(&card).expect("only what was held is decided");
    assert!(from.contains(&card.state), "decided twice: {card:?}");
    card.state = CardState::Over;
  }

  fn carried_out(&mut self, order: Option<CallId>) {
    if let Some(call) = order {
      assert!(self.orders.insert(call), "an order was carried out twice");
    }
  }

  fn stand(&mut self, task: TaskId, standing: Standing) {
    self.tasks.insert(task, standing);
  }

  fn queue(&mut self, task: TaskId) {
    self.places += 1;
    self.stand(task, Standing::Queued(self.places));
  }

  /// The turn goes to the one that waited longest.
  fn turn(&mut self, task: TaskId) {
    let Some(Standing::Queued(place)) = self.tasks.get(&task) else { panic!("a turn for what isn't queued") };
    let first = self.tasks.values().filter_map(|standing| if let Standing::Queued(place) = standing { Some(place) } else { None }).min();
    assert_eq!(first, Some(place), "another one waited longer");
    self.stand(task, Standing::Turn);
  }

  fn end(&mut self, task: TaskId) {
    assert_ne!(self.tasks[&task], Standing::Ended, "ended twice");
    self.stand(task, Standing::Ended);
    self.allowed.retain(|(of, _)| *of != task);
  }
}
