//! What a process notices about others: leases that ran out, calls that nobody will settle, timers that are due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::call::{CallOutcomeReported, Class, Outcome};
use pa_domain::execution::{ExecutionLossReported, LossReason};
use pa_domain::limits::PERMIT_MILLIS;
use pa_domain::timer::TimerFired;
use pa_domain::{AgentId, CallId, Input, JobId, Origin};
use pa_eventlog::appender::{Appender, Submission};
use pa_projections::queue::{CallRow, JobRow, JobState};
use pa_store::clock::{Clock, Ids};
use pa_store::lease::LEASE;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::model::ReadModel;
use super::store::SimStore;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const REPORT_AGAIN_AFTER: Duration = Duration::from_secs(6);
/// A round that took longer than this says that the process was not there.
const ROUND_MAX: Duration = Duration::from_secs(4);

pub(super) struct Observer {
  pub(super) store: SimStore,
  pub(super) appender: Appender,
  pub(super) model: ReadModel,
  pub(super) clock: Arc<dyn Clock>,
  pub(super) ids: Arc<dyn Ids>,
  pub(super) stop: CancellationToken,
}

/// What an observer has seen, since when.
#[derive(Default)]
struct Seen {
  unleased: HashMap<(JobId, i32), Instant>,
  started: HashMap<(CallId, i32), Instant>,
  reported: HashMap<String, Instant>,
}

impl Observer {
  /// Looks until the process stops.
  pub(super) async fn run(self) {
    let mut connected = Instant::now();
    let mut seen = Seen::default();
    while !self.stop.is_cancelled() {
      let round = Instant::now();
      sleep(LOOK_EVERY).await;
      let found = self.look(connected, &mut seen).await;
      if found.is_none() || round.elapsed() > ROUND_MAX {
        connected = Instant::now();
        seen = Seen::default();
      }
    }
  }

  /// `None` when the process was not connected.
  async fn look(&self, connected: Instant, seen: &mut Seen) -> Option<()> {
    let (jobs, calls) = {
      let store = self.model.store();
      (store.jobs(), store.calls())
    };
    let running: Vec<&(AgentId, JobRow)> = jobs.iter().filter(|(_, row)| row.state == JobState::Running).collect();
    let leases = self.store.leases_of(running.iter().map(|(_, row)| row.id).collect()).await.ok()?;
    seen.unleased.retain(|(job, execution), _| running.iter().any(|(_, row)| (row.id, row.execution) == (*job, *execution)));
    for (agent, row) in &running {
      let key = (row.id, row.execution);
      if leases.get(&row.id).is_some_and(|(_, runs)| *runs) {
        seen.unleased.remove(&key);
        continue;
      }
      let since = *seen.unleased.entry(key).or_insert_with(Instant::now);
      let ran_out = leases.get(&row.id).is_some_and(|(lease, _)| lease.expires_at <= Instant::now());
      if connected.elapsed() >= LEASE && (ran_out || since.elapsed() >= LEASE) {
        let input = ExecutionLossReported { job: row.id, execution: row.execution, reason: LossReason::LeaseExpired };
        self.report(seen, *agent, input.into(), format!("loss/{}/{}", row.id, row.execution)).await;
      }
    }
    self.calls(&calls, &running, seen).await;
    for (agent, timer) in self.model.store().due(self.clock.now()) {
      self.report(seen, agent, TimerFired { timer: timer.id, thing: timer.thing }.into(), format!("timer/{}", timer.id)).await;
    }
    Some(())
  }

  /// Calls whose execution is over and that nobody will settle.
  async fn calls(&self, calls: &[(AgentId, CallRow)], running: &[&(AgentId, JobRow)], seen: &mut Seen) {
    seen.started.retain(|(call, execution), _| calls.iter().any(|(_, row)| (row.id, row.execution) == (*call, *execution)));
    for (agent, row) in calls {
      let since = *seen.started.entry((row.id, row.execution)).or_insert_with(Instant::now);
      let lives = running.iter().any(|(_, job)| (job.id, job.execution) == (row.job, row.execution));
      let over = Duration::from_millis((PERMIT_MILLIS + row.limit_millis).unsigned_abs());
      if row.class == Class::Repeatable || lives || row.unknown || since.elapsed() < over {
        continue;
      }
      let (job, execution, call) = (row.job, row.execution, row.id);
      let input = CallOutcomeReported { job, execution, call, outcome: Outcome::Unknown, code: String::new(), parts: Vec::new() };
      self.report(seen, *agent, input.into(), format!("unknown/{call}/{execution}")).await;
    }
  }

  /// Each report is an ask of its own; one that did not get through is made again after a while.
  async fn report(&self, seen: &mut Seen, agent: AgentId, input: Input, what: String) {
    if seen.reported.get(&what).is_some_and(|at| at.elapsed() < REPORT_AGAIN_AFTER) {
      return;
    }
    seen.reported.insert(what, Instant::now());
    let key = self.ids.new_id().to_string();
    let submission = Submission {
      agent,
      input,
      producer: "observer",
      key: Some(&key),
      content: None,
      actor: "platform",
      origin: Origin::Platform,
      cause: None,
      correlation: None,
      traceparent: None,
    };
    drop(self.appender.submit(submission).await);
  }
}
