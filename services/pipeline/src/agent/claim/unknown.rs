//! The observer of calls: a started call of an execution that is over, and whose outcome nobody reports, becomes unknown (D13, PR-22, PR-28).
//!
//! Only after this observer has itself seen it so for the time in which its permit may be used and the tool's own limit: until then its worker may still act, or
//! report. A repeatable call is left to the next execution, as long as there will be one.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use pa_domain::call::{CallOutcomeReported, Class, Outcome};
use pa_domain::limits::PERMIT_MILLIS;
use pa_domain::{CallId, JobId};
use pa_projections::queue::OpenCall;
use tokio::time::Instant;

use super::super::Worker;
use super::super::ports::PortError;

/// On top of it, for clocks that do not tick alike.
const MARGIN: Duration = Duration::from_secs(2);

/// Open calls of ended executions.
#[derive(Default)]
pub(super) struct OpenCalls {
  /// Since when this observer has seen each.
  seen: HashMap<(CallId, i32), Instant>,
  /// Executions of this node's earlier processes.
  ended_here: BTreeSet<(JobId, i32)>,
}

impl OpenCalls {
  /// The execution ran in an earlier process of this node, which is gone for certain, and with it whatever it did in the agent's workspace.
  pub(super) fn ended_here(&mut self, job: JobId, execution: i32) {
    self.ended_here.insert((job, execution));
  }

  pub(super) async fn look(&mut self, worker: &Worker) -> Result<(), PortError> {
    let open = worker.queue.open_calls().await?;
    self.seen.retain(|key, _| open.iter().any(|call| (call.id, call.execution) == *key));
    for call in open {
      let since = *self.seen.entry((call.id, call.execution)).or_insert_with(Instant::now);
      let is_over = call.class == Class::Contained && self.ended_here.contains(&(call.job, call.execution));
      if (is_over || since.elapsed() >= patience(&call)) && is_for_observers(worker, &call).await? {
        report(worker, &call).await;
      }
    }
    Ok(())
  }
}

fn patience(call: &OpenCall) -> Duration {
  let millis = PERMIT_MILLIS.saturating_add(call.limit_millis.max(0));
  Duration::from_millis(millis.unsigned_abs()) + MARGIN
}

/// A repeatable call is repeated by the next execution; only of a job that is over for good does nobody do so.
async fn is_for_observers(worker: &Worker, call: &OpenCall) -> Result<bool, PortError> {
  Ok(match call.class {
    Class::Contained | Class::External => true,
    Class::Repeatable => worker.queue.job(call.agent, call.job).await?.is_none(),
  })
}

async fn report(worker: &Worker, open: &OpenCall) {
  tracing::info!(agent.id = %open.agent, call.id = %open.id, tool = %open.tool, "the outcome of a call is unknown");
  metrics::counter!("pa_calls_unknown").increment(1);
  let unknown =
    CallOutcomeReported { job: open.job, execution: open.execution, call: open.id, outcome: Outcome::Unknown, code: String::new(), parts: Vec::new() };
  let key = format!("unknown/{}/{}", open.id, open.execution);
  if let Err(error) = worker.asks.report(open.agent, &key, unknown).await {
    tracing::warn!(call.id = %open.id, error = &error as &dyn std::error::Error, "an unknown outcome could not be reported");
  }
}
