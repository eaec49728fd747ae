//! Work leases in memory: who asks for a job, and that it lives.

use std::collections::BTreeMap;

use pa_domain::{AgentId, JobId};
use pa_store::lease::{Holder, LEASE};
use tokio::time::Instant;
use uuid::Uuid;

use super::store::SimStore;

/// A lease on a job.
#[derive(Clone, Debug)]
pub(super) struct WorkRow {
  pub(super) agent: AgentId,
  pub(super) holder: Holder,
  pub(super) expires_at: Instant,
  pub(super) ask: Option<Uuid>,
}

/// All work leases.
pub(super) type WorkRows = BTreeMap<JobId, WorkRow>;

impl SimStore {
  /// Claims the first of these jobs whose lease does not run.
  pub(super) async fn claim(&self, candidates: Vec<(AgentId, JobId)>) -> Result<Option<(AgentId, JobId)>, pa_store::Error> {
    let holder = self.holder();
    self
      .write_rows("claim work", move |rows| {
        let now = Instant::now();
        let (agent, job) = candidates.into_iter().find(|(_, job)| rows.work.get(job).is_none_or(|row| row.expires_at <= now))?;
        rows.work.insert(job, WorkRow { agent, holder, expires_at: now + LEASE, ask: None });
        Some((agent, job))
      })
      .await
  }

  /// Writes down the ask, or only renews; `false` when the row is another's.
  pub(super) async fn keep(&self, job: JobId, ask: Option<Uuid>) -> Result<bool, pa_store::Error> {
    let process = self.holder().process;
    self
      .write_rows("renew work leases", move |rows| match rows.work.get_mut(&job).filter(|row| row.holder.process == process) {
        Some(row) => {
          row.expires_at = Instant::now() + LEASE;
          row.ask = ask.or(row.ask);
          true
        }
        None => false,
      })
      .await
  }

  /// Ends the own lease.
  pub(super) async fn release(&self, job: JobId) -> Result<(), pa_store::Error> {
    let process = self.holder().process;
    self
      .write_rows("release a work lease", move |rows| {
        if rows.work.get(&job).is_some_and(|row| row.holder.process == process) {
          rows.work.remove(&job);
        }
      })
      .await
  }

  /// The leases of these jobs, with whether they run.
  pub(super) async fn leases_of(&self, jobs: Vec<JobId>) -> Result<BTreeMap<JobId, (WorkRow, bool)>, pa_store::Error> {
    self
      .read("read work leases", move |rows| {
        let now = Instant::now();
        jobs.iter().filter_map(|job| rows.work.get(job).map(|row| (*job, (row.clone(), row.expires_at > now)))).collect()
      })
      .await
  }
}
