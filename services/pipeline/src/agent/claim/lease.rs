//! The lease rows of what runs here: written down together, renewed together, and given up together.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::{AgentId, JobId};
use pa_store::lease::RENEW_EVERY;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};

use super::super::Worker;
use super::super::ports::WorkQueue;

/// Notes of one round of statements.
const NOTES_MAX: usize = 256;
/// Notes that may wait. Nothing waits for a note: beyond this one is left out, and the row runs out by itself.
const NOTES_WAITING_MAX: usize = 4_096;
/// A renewal that takes longer has failed: the next one must come before the lease is over.
const RENEWAL_MAX: Duration = Duration::from_secs(2);

/// An execution is written down when it has run for so long: most are over by then, and their row with them.
const STARTED_AFTER: Duration = Duration::from_millis(100);

/// Leases that are given up wait so long for others: nobody waits for them, since their jobs are over or, rarely, wait for another turn.
const RELEASED_WITHIN: Duration = Duration::from_millis(25);

enum Note {
  Started(JobId, i32),
  Released(JobId),
}

/// Takes notes for the lease rows; no turn waits for them.
pub(in crate::agent) struct LeaseNotes(mpsc::Sender<Note>);

impl LeaseNotes {
  /// The log granted an execution.
  pub(in crate::agent) fn started(&self, job: JobId, execution: i32) {
    self.note(Note::Started(job, execution));
  }

  /// This process no longer works on the job.
  pub(in crate::agent) fn released(&self, job: JobId) {
    self.note(Note::Released(job));
  }

  fn note(&self, note: Note) {
    if self.0.try_send(note).is_err() {
      tracing::debug!("a lease row was not brought up to date; it runs out by itself");
    }
  }
}

/// Where notes go, and the task that writes them until the last sender is gone.
pub(in crate::agent) fn lease_notes(queue: Arc<dyn WorkQueue>) -> (LeaseNotes, impl Future<Output = ()> + Send + 'static) {
  let (sender, receiver) = mpsc::channel(NOTES_WAITING_MAX);
  (LeaseNotes(sender), write(queue, receiver))
}

async fn write(queue: Arc<dyn WorkQueue>, mut notes: mpsc::Receiver<Note>) {
  let mut round = Vec::with_capacity(NOTES_MAX);
  let (mut started, mut due) = (Vec::new(), Instant::now());
  loop {
    let heard =
      if started.is_empty() { Ok(notes.recv_many(&mut round, NOTES_MAX).await) } else { timeout_at(due, notes.recv_many(&mut round, NOTES_MAX)).await };
    if started.is_empty() {
      due = Instant::now() + STARTED_AFTER;
    }
    if round.iter().any(|note| matches!(note, Note::Released(_))) {
      sleep(RELEASED_WITHIN).await;
      while round.len() < NOTES_MAX
        && let Ok(note) = notes.try_recv()
      {
        round.push(note);
      }
    }
    let mut released = Vec::new();
    for note in round.drain(..) {
      match note {
        Note::Started(job, execution) => started.push((job, execution)),
        Note::Released(job) => {
          started.retain(|(other, _)| *other != job);
          released.push(job);
        }
      }
    }
    // Rows only tell others what to expect; the log tells them all the same, later.
    if !released.is_empty()
      && let Err(error) = queue.release(&released).await
    {
      tracing::debug!(error = &error as &dyn std::error::Error, "leases could not be given up; they run out");
    }
    if heard == Ok(0) {
      return;
    }
    if !started.is_empty()
      && Instant::now() >= due
      && let Err(error) = queue.started(&std::mem::take(&mut started)).await
    {
      tracing::debug!(error = &error as &dyn std::error::Error, "executions could not be written down");
    }
  }
}

/// Renews the leases of everything that runs here. What lost its lease stops: others may have been told that it is gone.
pub(in crate::agent) async fn keep_alive(worker: Arc<Worker>) {
  let mut tick = interval(RENEW_EVERY);
  tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
  loop {
    tick.tick().await;
    let running = worker.running.signals();
    let jobs: Vec<JobId> = running.iter().map(|signals| signals.job).collect();
    if jobs.is_empty() {
      continue;
    }
    match timeout(RENEWAL_MAX, worker.queue.renew(&jobs)).await {
      Ok(Ok(own)) => {
        for signals in running.iter().filter(|signals| !own.contains(&signals.job)) {
          tracing::warn!(job.id = %signals.job, "the lease of a running execution is gone");
          signals.lease_lost.cancel();
        }
      }
      // The log decides whether they are lost, not the database that can't be asked.
      Ok(Err(error)) => tracing::warn!(error = &error as &dyn std::error::Error, "leases can't be renewed now"),
      Err(_) => tracing::warn!("leases can't be renewed in time"),
    }
  }
}

/// Ends those turns whose execution no longer runs by a read model that is new enough to know: for when decisions were missed.
pub(in crate::agent) async fn look_up(worker: &Arc<Worker>) {
  let running = worker.running.signals();
  let started: Vec<_> = running.iter().filter_map(|signals| Some((signals, signals.started()?))).collect();
  let mut known = Vec::with_capacity(started.len());
  for (signals, (execution, ordinal)) in started {
    if matches!(worker.history.reached(signals.agent, ordinal, RENEWAL_MAX).await, Ok(true)) {
      known.push((signals, execution));
    }
  }
  let jobs: Vec<(AgentId, JobId)> = known.iter().map(|(signals, _)| (signals.agent, signals.job)).collect();
  let Ok(still) = worker.queue.running(&jobs).await else { return };
  for (signals, execution) in known {
    if !still.iter().any(|job| job.id == signals.job && job.execution == execution) {
      signals.end(execution);
    }
  }
}
