//! The executions that run in this process, and what the log says about their jobs meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use pa_domain::{AgentId, Event, JobId, call, execution, task};
use pa_eventlog::reader::Decision;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What reaches a running execution from outside.
pub(super) struct Signals {
  pub(super) agent: AgentId,
  pub(super) job: JobId,
  /// The highest execution of the job that has ended in any way.
  ended: watch::Sender<i32>,
  /// The ordinal of the last event about a call of the job.
  calls: watch::Sender<i64>,
  /// The ordinal of the job's last instruction that was heard here.
  instructed: watch::Sender<i64>,
  /// The lease row is no longer this process's own.
  pub(super) lease_lost: CancellationToken,
  /// The execution and the ordinal of its start, once it is known.
  started: Mutex<Option<(i32, i64)>>,
}

impl Signals {
  /// Returns when execution number `execution` has ended.
  pub(super) async fn ended(&self, execution: i32) {
    let mut ended = self.ended.subscribe();
    if ended.wait_for(|ended| *ended >= execution).await.is_err() {
      std::future::pending::<()>().await;
    }
  }

  /// Says that an execution has ended.
  pub(super) fn end(&self, execution: i32) {
    self.ended.send_if_modified(|ended| execution > std::mem::replace(ended, execution.max(*ended)));
  }

  /// Events about calls of the job, from now on.
  pub(super) fn calls(&self) -> watch::Receiver<i64> {
    let mut calls = self.calls.subscribe();
    calls.mark_unchanged();
    calls
  }

  /// The ordinal of the last instruction that was heard; 0 for none.
  pub(super) fn instructed(&self) -> i64 {
    *self.instructed.borrow()
  }

  pub(super) fn start(&self, execution: i32, ordinal: i64) {
    *self.started.lock() = Some((execution, ordinal));
  }

  /// The execution with the ordinal of its start.
  pub(super) fn started(&self) -> Option<(i32, i64)> {
    *self.started.lock()
  }
}

/// All that run here, by job and in its order: what concerns several of them reaches them in the same order every time.
#[derive(Default)]
pub(super) struct Running {
  jobs: Mutex<BTreeMap<JobId, Arc<Signals>>>,
}

impl Running {
  /// Registers a claimed job; `None` when this process works on it already.
  pub(super) fn register(self: &Arc<Self>, agent: AgentId, job: JobId) -> Option<Registered> {
    let mut jobs = self.jobs.lock();
    if jobs.contains_key(&job) {
      return None;
    }
    let signals = Arc::new(Signals {
      agent,
      job,
      ended: watch::Sender::new(0),
      calls: watch::Sender::new(0),
      instructed: watch::Sender::new(0),
      lease_lost: CancellationToken::new(),
      started: Mutex::new(None),
    });
    jobs.insert(job, Arc::clone(&signals));
    Some(Registered { running: Arc::clone(self), signals })
  }

  /// The jobs.
  pub(super) fn jobs(&self) -> Vec<JobId> {
    self.jobs.lock().keys().copied().collect()
  }

  /// What reaches each of them.
  pub(super) fn signals(&self) -> Vec<Arc<Signals>> {
    self.jobs.lock().values().cloned().collect()
  }

  /// Tells the jobs that a decision is about.
  pub(super) fn heed(&self, decision: &Decision) {
    for recorded in decision.events.iter() {
      match &recorded.event {
        Event::Execution(event) => self.heed_execution(event),
        Event::Call(event) => {
          let about_outcome = !matches!(event, call::Event::CallStarted(_));
          if about_outcome && let Some(signals) = self.get(event.job()) {
            signals.calls.send_replace(recorded.core().ordinal);
          }
        }
        Event::Task(task::Event::TaskInstructed(instructed)) => {
          if let Some(signals) = self.get(instructed.task.into()) {
            signals.instructed.send_replace(recorded.core().ordinal);
          }
        }
        Event::Account(_) | Event::Agent(_) | Event::Conversation(_) | Event::Log(_) | Event::Settings(_) | Event::Task(_) | Event::Timer(_) => {}
      }
    }
  }

  fn heed_execution(&self, event: &execution::Event) {
    use execution::Event as E;
    let (job, execution) = match event {
      E::ExecutionLost(event) => (event.job, event.execution),
      E::ExecutionYielded(event) => (event.job, event.execution),
      E::ExecutionFailed(event) => (event.job, event.execution),
      E::ExecutionStopped(event) => (event.job, event.execution),
      E::ExecutionSuspended(event) => (event.job, event.execution),
      E::ExecutionFinished(event) => (event.job, event.execution),
      E::ExecutionStarted(_) | E::StepRecorded(_) => return,
    };
    if let Some(signals) = self.get(job) {
      signals.end(execution);
    }
  }

  fn get(&self, job: JobId) -> Option<Arc<Signals>> {
    self.jobs.lock().get(&job).cloned()
  }
}

/// A job that runs here until this is dropped.
pub(super) struct Registered {
  running: Arc<Running>,
  pub(super) signals: Arc<Signals>,
}

impl Drop for Registered {
  fn drop(&mut self) {
    self.running.jobs.lock().remove(&self.signals.job);
  }
}
