//! Claims: who asks for which job, that they live, and who notices when they don't.

mod lease;
mod observe;
mod unknown;

use std::sync::Arc;
use std::time::Duration;

use pa_domain::execution::ExecutionAsked;
use pa_eventlog::appender::Prepared;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tracing::Instrument as _;

use super::asks::Chain;
use super::ports::{Claimed, PortError};
use super::running::Registered;
use super::{Worker, turn};

pub(super) use lease::{LeaseNotes, keep_alive, lease_notes, look_up};
pub(super) use observe::observe;

/// Pause after a failed claim.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Jobs of one claim: enough to share its statements, few enough that other processes find some too.
const CLAIM_MAX: usize = 16;

/// A claimed job that is ready to be asked for.
struct Ready {
  ask: Prepared,
  registered: Registered,
}

/// Claims and starts turns until the stage stops.
pub(super) async fn work(worker: &Arc<Worker>) {
  let slots = Arc::new(Semaphore::new(worker.at_once().max(1)));
  loop {
    let permits = tokio::select! {
      biased;
      () = worker.stop.cancelled() => return,
      permits = free_slots(&slots) => permits,
    };
    // Not cancelled on the way: a claim that was written is either worked on or given up.
    let more = match claim(worker, permits).await {
      Ok(more) => more,
      Err(error) => {
        tracing::warn!(error = &error as &dyn std::error::Error, "work can't be claimed now");
        tokio::select! {
          biased;
          () = worker.stop.cancelled() => return,
          () = sleep(AGAIN_AFTER) => {}
        }
        continue;
      }
    };
    if !more {
      tokio::select! {
        biased;
        () = worker.stop.cancelled() => return,
        () = worker.queue.changed() => {}
      }
    }
  }
}

/// Waits for a free slot and takes what is free, up to the size of one claim.
async fn free_slots(slots: &Arc<Semaphore>) -> Vec<OwnedSemaphorePermit> {
  let mut permits = Vec::with_capacity(CLAIM_MAX);
  if let Ok(permit) = Arc::clone(slots).acquire_owned().await {
    permits.push(permit);
  }
  while permits.len() < CLAIM_MAX
    && let Ok(permit) = Arc::clone(slots).try_acquire_owned()
  {
    permits.push(permit);
  }
  permits
}

/// Claims as many jobs as there are permits and starts a turn for each; whether there may be more at once.
async fn claim(worker: &Arc<Worker>, mut permits: Vec<OwnedSemaphorePermit>) -> Result<bool, PortError> {
  let wanted = permits.len();
  let claimed = worker.queue.claim(&worker.asks.new_ids(wanted)).await?;
  let full = claimed.len() == wanted;
  for claimed in claimed {
    let Some(permit) = permits.pop() else { break };
    let Some(Ready { ask, registered }) = prepare(worker, claimed).await else {
      worker.leases.released(claimed.job);
      continue;
    };
    let span = tracing::info_span!("turn", stage = "agent", agent.id = %registered.signals.agent, entity.id = %registered.signals.job, event.id = %ask.id);
    let turn = turn::run(Arc::clone(worker), ask, registered);
    let held = async move {
      turn.await;
      drop(permit);
    };
    worker.tasks.spawn(held.instrument(span));
  }
  Ok(full)
}

async fn prepare(worker: &Arc<Worker>, claimed: Claimed) -> Option<Ready> {
  // Its end is on the way to the read model: another turn of it would only disturb this one.
  let registered = worker.running.register(claimed.agent, claimed.job)?;
  let input = ExecutionAsked { job: claimed.job, kind: worker.queue.kind() };
  match worker.asks.prepare_as(claimed.ask, claimed.agent, Chain::default(), input.into()).await {
    Ok(ask) => Some(Ready { ask, registered }),
    Err(error) => {
      tracing::warn!(agent.id = %claimed.agent, job.id = %claimed.job, error = &error as &dyn std::error::Error, "a job can't be asked for");
      None
    }
  }
}
