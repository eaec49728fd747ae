//! What must hold of any log, told from the events alone and in other words than the rules: the oracle of the random runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::call::{self, Class};
use crate::conversation::{self, ConversationKind};
use crate::event::Event;
use crate::execution;
use crate::ids::{CallId, ConversationId, JobId, TimerId};
use crate::limits::{CHANNEL_REPLIES_MAX, DECISION_EVENTS_MAX, REPLY_LOSSES_MAX};
use crate::log;
use crate::settings;
use crate::task;
use crate::timer;

use super::task_oracle::Tasks;

/// What a job is for; a task has its turn and its end in another way than a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Kind {
  #[default]
  Reply,
  Task,
}

#[derive(Debug, Default)]
pub(super) struct Job {
  kind: Kind,
  conversation: Option<ConversationId>,
  /// Grows with every admission and retry: the order of answers.
  place: usize,
  open: bool,
  has_turn: bool,
  pub(super) running: Option<i32>,
  executions: i32,
  pub(super) losses: i32,
  finished: bool,
  endings: u32,
  retries: u32,
  interruptions: u32,
  steps: BTreeMap<i32, usize>,
}

#[derive(Debug)]
pub(super) struct Call {
  pub(super) class: Class,
  starts: Vec<i32>,
  outcomes: u32,
  unknown: bool,
  reconciled: Option<bool>,
  skipped: bool,
  notes: u32,
}

#[derive(Debug, Default)]
pub(super) struct Oracle {
  kinds: BTreeMap<ConversationId, ConversationKind>,
  jobs: BTreeMap<JobId, Job>,
  calls: BTreeMap<CallId, (JobId, Call)>,
  skipped: BTreeSet<CallId>,
  timers: BTreeSet<TimerId>,
  tasks: Tasks,
  places: usize,
}

impl Oracle {
  /// Takes in a whole decision, and checks it and what it leaves.
  pub(super) fn decision(&mut self, events: &[Event]) {
    assert!((1..=DECISION_EVENTS_MAX).contains(&events.len()));
    for event in events {
      match event {
        Event::Conversation(event) => self.conversation(event),
        Event::Execution(event) => self.execution(event),
        Event::Call(event) => self.call(event),
        Event::Timer(event) => self.timer(event),
        Event::Log(log::Event::InputSettled(_)) => assert!(events.len() <= 2, "settled beside other facts: {events:?}"),
        Event::Task(event) => {
          if let task::Event::TaskStarted(started) = event {
            let job = Job { kind: Kind::Task, ..Job::default() };
            assert!(self.jobs.insert(started.task.into(), job).is_none(), "started twice");
          }
          self.tasks.take(event, &mut self.jobs);
        }
        Event::Settings(settings::Event::SettingsChanged(changed)) => self.tasks.concurrency(changed.concurrency),
        Event::Log(_) | Event::Account(_) | Event::Agent(_) => {}
      }
    }
    self.between_decisions();
  }

  /// Each message ended exactly once for every time it was asked for, or is still open.
  pub(super) fn end(&self) {
    for (id, job) in self.jobs.iter().filter(|(_, job)| !job.is_task()) {
      assert_eq!(job.endings + u32::from(job.open), 1 + job.retries, "{id}: {job:?}");
    }
  }

  fn job(&mut self, id: JobId) -> &mut Job {
    self.jobs.get_mut(&id).expect("nothing happens to a job before its message is admitted")
  }

  fn conversation(&mut self, event: &conversation::Event) {
    match event {
      conversation::Event::ConversationOpened(opened) => assert!(self.kinds.insert(opened.conversation, opened.kind).is_none()),
      conversation::Event::MessageAdmitted(admitted) => {
        assert!(self.kinds.contains_key(&admitted.conversation));
        self.places += 1;
        let job = Job { conversation: Some(admitted.conversation), place: self.places, open: true, ..Job::default() };
        assert!(self.jobs.insert(admitted.message.into(), job).is_none(), "admitted twice");
      }
      conversation::Event::ReportAdmitted(admitted) => {
        self.places += 1;
        let job = Job { conversation: Some(admitted.conversation), place: self.places, open: true, ..Job::default() };
        assert!(self.jobs.insert(admitted.message.into(), job).is_none(), "admitted twice");
        self.tasks.reported(admitted);
      }
      conversation::Event::ReportSuperseded(superseded) => {
        self.tasks.superseded(superseded);
        self.close(superseded.job);
      }
      conversation::Event::MessageRetried(retried) => {
        self.places += 1;
        let place = self.places;
        let job = self.job(retried.message.into());
        assert!(!job.open && !job.finished);
        *job = Job { place, open: true, has_turn: false, losses: 0, retries: job.retries + 1, interruptions: 0, ..std::mem::take(job) };
      }
      conversation::Event::ReplyRequested(requested) => {
        let job = self.job(requested.job);
        assert!(job.open && !job.has_turn, "{job:?}");
        job.has_turn = true;
      }
      conversation::Event::ReplyPosted(posted) => {
        let open = self.calls.values().any(|(job, call)| *job == posted.job && call.is_open());
        let without_finish = self.tasks.tells(posted.job) && !self.job(posted.job).finished;
        assert!(!open || without_finish, "finished over an open call");
        assert!(self.job(posted.job).finished || self.tasks.tells(posted.job), "posted without a finish");
        self.tasks.told(posted);
        self.close(posted.job);
      }
      conversation::Event::ReplyStopped(stopped) => self.close(stopped.job),
      conversation::Event::ReplyFailed(failed) => self.close(failed.job),
      conversation::Event::NoticePosted(posted) => {
        if posted.code == "REPLY_INTERRUPTED" {
          let job = self.job(posted.reply_to.expect("it is about a message").into());
          job.interruptions += 1;
          assert_eq!((job.interruptions, job.losses, job.open), (1, REPLY_LOSSES_MAX, false));
        }
      }
    }
  }

  fn close(&mut self, id: JobId) {
    let job = self.job(id);
    assert!(job.open && job.running.is_none(), "{job:?}");
    job.open = false;
    job.has_turn = false;
    job.endings += 1;
  }

  fn execution(&mut self, event: &execution::Event) {
    let waits = self.calls.values().any(|(job, call)| *job == event.job() && call.class == Class::External && call.is_open());
    let task_may_start = self.tasks.may_start(event.job());
    let job = self.job(event.job());
    match event {
      execution::Event::ExecutionStarted(started) => {
        let may = if job.is_task() { task_may_start } else { job.open && job.has_turn };
        assert!(may && job.running.is_none() && !waits, "{job:?}");
        assert_eq!(started.execution, job.executions + 1);
        job.executions = started.execution;
        job.running = Some(started.execution);
      }
      execution::Event::ExecutionLost(lost) => {
        assert_eq!(job.running.take(), Some(lost.execution));
        job.losses += 1;
        assert!(job.losses == lost.losses && (job.is_task() || job.losses <= REPLY_LOSSES_MAX));
      }
      execution::Event::ExecutionYielded(yielded) => assert_eq!(job.running.take(), Some(yielded.execution)),
      execution::Event::ExecutionFailed(failed) => assert_eq!(job.running.take(), Some(failed.execution)),
      execution::Event::ExecutionStopped(stopped) => assert_eq!(job.running.take(), Some(stopped.execution)),
      execution::Event::ExecutionSuspended(suspended) => {
        assert!(job.is_task());
        assert_eq!(job.running.take(), Some(suspended.execution));
      }
      execution::Event::ExecutionFinished(finished) => {
        assert_eq!(job.running.take(), Some(finished.execution));
        job.finished = !job.is_task();
      }
      execution::Event::StepRecorded(recorded) => {
        assert_eq!(job.running, Some(recorded.execution));
        assert_eq!(i32::try_from(job.steps.len()).unwrap() + 1, recorded.step);
        job.steps.insert(recorded.step, recorded.calls.len());
      }
    }
  }

  fn call(&mut self, event: &call::Event) {
    match event {
      call::Event::CallStarted(started) => {
        let job = &self.jobs[&started.job];
        assert_eq!(job.running, Some(started.execution), "started outside its execution");
        assert!(job.steps.get(&started.step).is_some_and(|calls| usize::try_from(started.index).unwrap() < *calls), "no recorded step asks for it");
        assert!(!self.skipped.contains(&started.call), "started after it was skipped");
        let call = Call { class: started.class, starts: Vec::new(), outcomes: 0, unknown: false, reconciled: None, skipped: false, notes: 0 };
        let (_, call) = self.calls.entry(started.call).or_insert((started.job, call));
        assert!(call.starts.is_empty() || (call.class == Class::Repeatable && call.outcomes == 0), "repeated: {call:?}");
        assert!(call.starts.last().is_none_or(|last| *last < started.execution), "two permits: {call:?}");
        call.starts.push(started.execution);
        self.tasks.call_started(started);
      }
      call::Event::CallHeld(held) => {
        assert_eq!(self.jobs[&held.job].running, Some(held.execution), "held outside its execution");
        assert!(!self.skipped.contains(&held.call) && !self.calls.contains_key(&held.call), "held after it began");
        self.tasks.call_held(held);
      }
      call::Event::CallSkipped(skipped) => {
        assert!(self.skipped.insert(skipped.call), "skipped twice");
        self.tasks.call_skipped(skipped.call);
        if let Some((_, call)) = self.calls.get_mut(&skipped.call) {
          assert!(call.class == Class::Repeatable && call.outcomes == 0, "skipped after it started: {call:?}");
          call.skipped = true;
        }
      }
      call::Event::CallReturned(returned) => self.outcome(returned.call, returned.execution, false),
      call::Event::CallFailed(failed) => self.outcome(failed.call, failed.execution, false),
      call::Event::CallUnknown(unknown) => self.outcome(unknown.call, unknown.execution, true),
      call::Event::CallReconciled(reconciled) => {
        let (_, call) = self.calls.get_mut(&reconciled.call).expect("only a started call is reconciled");
        assert!(call.unknown && call.reconciled.is_none(), "{call:?}");
        assert!(!reconciled.by_owner || call.class == Class::External);
        call.reconciled = Some(reconciled.by_owner);
      }
      call::Event::CallOutcomeNoted(noted) => {
        let (_, call) = self.calls.get_mut(&noted.call).expect("only a started call has an outcome");
        call.notes += 1;
        assert_eq!((call.reconciled, call.notes), (Some(true), 1));
      }
    }
  }

  fn outcome(&mut self, call: CallId, execution: i32, unknown: bool) {
    let (_, call) = self.calls.get_mut(&call).expect("only a started call has an outcome");
    assert!(call.starts.contains(&execution) && !call.skipped, "{call:?}");
    call.outcomes += 1;
    assert_eq!(call.outcomes, 1, "a second outcome");
    call.unknown = unknown;
  }

  fn timer(&mut self, event: &timer::Event) {
    match event {
      timer::Event::TimerSet(set) => assert!(self.timers.insert(set.timer)),
      timer::Event::TimerCancelled(cancelled) => assert!(self.timers.remove(&cancelled.timer)),
      timer::Event::TimerElapsed(elapsed) => assert!(self.timers.remove(&elapsed.timer)),
    }
  }

  fn between_decisions(&self) {
    let running = self.jobs.values().filter(|job| !job.is_task() && job.running.is_some()).count();
    assert_eq!(self.timers.len(), running, "a timer for each running execution");
    let replies = || self.jobs.values().filter(|job| !job.is_task());
    assert!(replies().all(|job| job.running.is_none() || job.open));
    assert!(replies().all(|job| job.losses < REPLY_LOSSES_MAX || !job.open));
    self.tasks.between_decisions(&self.jobs, &self.calls);
    let (mut busy, mut waiting) = (0, 0);
    for (conversation, kind) in &self.kinds {
      let mut open: Vec<&Job> = self.jobs.values().filter(|job| job.open && job.conversation == Some(*conversation)).collect();
      open.sort_by_key(|job| job.place);
      assert!(open.iter().skip(1).all(|job| !job.has_turn), "only the first has its turn");
      let Some(first) = open.first() else { continue };
      match kind {
        ConversationKind::Main => assert!(first.has_turn, "the main conversation never waits"),
        ConversationKind::Task => panic!("a message in a task's conversation"),
        ConversationKind::Channel => {
          busy += usize::from(first.has_turn);
          waiting += usize::from(!first.has_turn);
        }
      }
    }
    assert!(busy <= CHANNEL_REPLIES_MAX && (waiting == 0 || busy == CHANNEL_REPLIES_MAX), "{busy} busy, {waiting} waiting");
  }
}

impl Job {
  fn is_task(&self) -> bool {
    self.kind == Kind::Task
  }
}

impl Call {
  pub(super) fn is_started(&self) -> bool {
    self.outcomes == 0 && !self.skipped
  }

  /// Started, or external and unknown.
  pub(super) fn is_open(&self) -> bool {
    let is_started = self.is_started();
    is_started || (self.unknown && self.class == Class::External && self.reconciled.is_none())
  }
}
