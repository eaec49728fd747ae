//! The observers: executions whose worker is gone are reported lost.
//!
//! A report is only an observation. It is made when a lease has run out while this process was itself connected for a whole lease time, or at once for what earlier
//! processes of this node left behind; and only for the execution that was seen, so a report that is out of date changes nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::execution::{ExecutionLossReported, LossReason};
use pa_domain::{AgentId, JobId};
use pa_projections::queue::Job;
use pa_store::lease::LEASE;
use pa_store::lease::work::WorkLease;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::super::Worker;
use super::super::ports::PortError;
use super::unknown::OpenCalls;

/// Between two looks: a loss is noticed soon after its lease has run out.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A look that takes longer is broken off: the observer counts as not connected.
const LOOK_MAX: Duration = Duration::from_secs(8);

/// How long after its start a process looks for what its node's earlier life left behind: by then those leases have run out. Later it does not, so that a process
/// that slept can't report a newer life of its node lost (PR-15).
const STARTING: Duration = Duration::from_secs(2 * LEASE.as_secs());

/// What one observer has seen so far.
#[derive(Default)]
struct Seen {
  /// Since when every look has succeeded.
  connected: Option<Instant>,
  /// Running executions without a lease, since when.
  abandoned: HashMap<(JobId, i32), Instant>,
  calls: OpenCalls,
}

/// Looks around until it is dropped.
pub(in crate::agent) async fn observe(worker: Arc<Worker>) {
  let mut seen = Seen::default();
  let began = Instant::now();
  let mut tick = interval(LOOK_EVERY);
  tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
  loop {
    tick.tick().await;
    let begun = Instant::now();
    match timeout(LOOK_MAX, look(&worker, began.elapsed() < STARTING, &mut seen)).await {
      Ok(Ok(())) => {
        seen.connected.get_or_insert(begun);
      }
      Ok(Err(error)) => {
        tracing::debug!(error = &error as &dyn std::error::Error, "an observer can't look now");
        seen = Seen::default();
      }
      Err(_) => seen = Seen::default(),
    }
  }
}

async fn look(worker: &Worker, starting: bool, seen: &mut Seen) -> Result<(), PortError> {
  if starting {
    left_behind(worker, &mut seen.calls).await?;
  }
  abandoned(worker, &mut seen.abandoned).await?;
  seen.calls.look(worker).await?;
  if seen.connected.is_some_and(|since| since.elapsed() >= LEASE) {
    run_out(worker).await?;
  }
  Ok(())
}

/// This node's earlier processes are gone for certain: this one holds its data folder.
async fn left_behind(worker: &Worker, calls: &mut OpenCalls) -> Result<(), PortError> {
  let leases = worker.queue.left_behind().await?;
  if leases.is_empty() {
    return Ok(());
  }
  let running = worker.queue.running(&jobs_of(&leases)).await?;
  for lease in leases {
    // Without either, its ask may still be on its way into the read model: the row stands until it shows, or has run out.
    let execution = lease.execution.or_else(|| running.iter().find(|job| job.id == lease.job).map(|job| job.execution));
    if let Some(execution) = execution {
      report(worker, lease.agent, lease.job, execution, LossReason::NodeRestarted).await;
      calls.ended_here(lease.job, execution);
      worker.queue.forget(&lease).await?;
    }
  }
  Ok(())
}

async fn run_out(worker: &Worker) -> Result<(), PortError> {
  let leases = worker.queue.run_out().await?;
  if leases.is_empty() {
    return Ok(());
  }
  let running = worker.queue.running(&jobs_of(&leases)).await?;
  // Between the two reads somebody may have claimed one anew: then what runs is theirs.
  for lease in worker.queue.still_run_out(leases).await? {
    let seen = running.iter().find(|job| job.id == lease.job).map(|job| job.execution);
    if let Some(execution) = seen.filter(|seen| lease.execution.is_none_or(|own| own == *seen)) {
      report(worker, lease.agent, lease.job, execution, LossReason::LeaseExpired).await;
    }
    worker.queue.forget(&lease).await?;
  }
  Ok(())
}

/// Running executions that no lease row stands for: the row went together with its worker, or with the database's last seconds.
async fn abandoned(worker: &Worker, seen: &mut HashMap<(JobId, i32), Instant>) -> Result<(), PortError> {
  let own = worker.running.jobs();
  let found: Vec<Job> = worker.queue.abandoned().await?.into_iter().filter(|job| !own.contains(&job.id)).collect();
  seen.retain(|key, _| found.iter().any(|job| (job.id, job.execution) == *key));
  for job in found {
    let since = *seen.entry((job.id, job.execution)).or_insert_with(Instant::now);
    if since.elapsed() >= LEASE {
      report(worker, job.agent, job.id, job.execution, LossReason::LeaseExpired).await;
    }
  }
  Ok(())
}

async fn report(worker: &Worker, agent: AgentId, job: JobId, execution: i32, reason: LossReason) {
  tracing::info!(agent.id = %agent, job.id = %job, execution, reason = ?reason, "an execution was lost");
  metrics::counter!("pa_executions_lost").increment(1);
  let lost = ExecutionLossReported { job, execution, reason };
  if let Err(error) = worker.asks.report(agent, &format!("loss/{job}/{execution}"), lost).await {
    tracing::warn!(job.id = %job, error = &error as &dyn std::error::Error, "a loss could not be reported");
  }
}

fn jobs_of(leases: &[WorkLease]) -> Vec<(AgentId, JobId)> {
  leases.iter().map(|lease| (lease.agent, lease.job)).collect()
}
