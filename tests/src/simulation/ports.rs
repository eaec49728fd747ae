//! The worker's and the scheduler's ports over the database and the read model in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pa_domain::conversation::FileRef;
use pa_domain::execution::JobKind;
use pa_domain::{AgentId, JobId, MessageId, TaskId, Timestamp};
use pa_eventlog::reader::Recorded;
use pa_pipeline::agent::ports::{BootClock, Claimed, FileTaken, History, NotTaken, PortError, TaskLine, WorkQueue};
use pa_pipeline::scheduler::{Keeper, Timers};
use pa_projections::conversation::{Entry, NewEntry, Role, Turn};
use pa_projections::queue::{CallRow, Job, JobRow, JobState, OpenCall};
use pa_projections::settings::Settings;
use pa_projections::timers::Timer;
use pa_store::clock::Clock;
use pa_store::lease::LEASE;
use pa_store::lease::work::WorkLease;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::model::ReadModel;
use super::store::SimStore;
use super::view::View;

/// As on the product's queue: without a hint it is looked for about once a second.
const POLL: Duration = Duration::from_millis(700);

/// Wall clocks are not farther apart.
const CLOCKS_APART_MILLIS: i64 = 24 * 3_600_000;

/// All work leases, with when they run out.
pub(super) type WorkRows = BTreeMap<JobId, (WorkLease, Instant)>;

/// One process's ports.
pub(super) struct Ports {
  pub(super) store: SimStore,
  pub(super) model: ReadModel,
  pub(super) view: Arc<View>,
  pub(super) clock: Arc<dyn Clock>,
  pub(super) begin: Instant,
}

fn away(error: pa_store::Error) -> PortError {
  PortError::of(error.disposition(), error)
}

impl Ports {
  async fn work<T>(&self, doing: &'static str, work: impl FnOnce(&mut WorkRows) -> T + Send) -> Result<T, PortError> {
    self.store.write_rows(doing, |rows| work(&mut rows.work)).await.map_err(away)
  }

  /// The jobs of which this process holds the lease, after a change of each.
  async fn own(&self, doing: &'static str, jobs: &[JobId], change: impl Fn(JobId, &mut (WorkLease, Instant)) + Send) -> Result<Vec<JobId>, PortError> {
    let (holder, jobs) = (self.store.holder(), jobs.to_vec());
    self
      .work(doing, move |rows| {
        let mut own = Vec::new();
        for job in jobs {
          if let Some(row) = rows.get_mut(&job).filter(|(lease, _)| lease.holder == holder) {
            change(job, row);
            own.push(job);
          }
        }
        own
      })
      .await
  }

  async fn leases(&self, is: impl Fn(&WorkLease, Instant) -> bool + Send + Sync) -> Result<Vec<WorkLease>, PortError> {
    let read =
      self.store.read("read work leases", move |rows| rows.work.values().filter(|(lease, at)| is(lease, *at)).map(|(lease, _)| lease.clone()).collect());
    read.await.map_err(away)
  }

  fn jobs(&self, is: impl Fn(AgentId, &JobRow) -> bool) -> Vec<Job> {
    self.model.store().jobs().into_iter().filter(|(agent, row)| is(*agent, row)).map(|(agent, row)| job(agent, row)).collect()
  }
}

#[expect(clippy::needless_pass_by_value, reason = "taken apart")]
fn job(agent: AgentId, row: JobRow) -> Job {
  let JobRow { id, kind, conversation, reply, state, execution, since, limit, changed, .. } = row;
  Job { agent, id, kind, conversation, reply, state, execution, since, limit, changed }
}

fn open_call(agent: AgentId, row: CallRow) -> OpenCall {
  let CallRow { id, job, execution, step, index, tool, class, action, limit_millis, started, unknown, .. } = row;
  OpenCall { agent, id, job, execution, step, index, tool, class, action, limit_millis, started, unknown }
}

#[async_trait]
impl WorkQueue for Ports {
  fn kind(&self) -> JobKind {
    JobKind::Reply
  }

  async fn changed(&self) {
    sleep(POLL).await;
    self.store.reach().await;
  }

  async fn claim(&self, asks: &[Uuid]) -> Result<Vec<Claimed>, PortError> {
    let candidates: Vec<_> = self.model.store().candidates().into_iter().filter(|(_, row)| row.kind == self.kind()).collect();
    if candidates.is_empty() {
      return Ok(Vec::new());
    }
    let (holder, asks) = (self.store.holder(), asks.to_vec());
    self
      .work("claim work", move |rows| {
        let now = Instant::now();
        let mut claimed = Vec::new();
        for (agent, row) in candidates {
          let free = rows.get(&row.id).is_none_or(|(_, expires_at)| *expires_at <= now);
          if let Some(ask) = asks.get(claimed.len()).copied().filter(|_| free) {
            let lease = WorkLease { kind: "REPLY".to_owned(), job: row.id, agent, holder, ask: Some(ask), execution: None };
            rows.insert(row.id, (lease, now + LEASE));
            claimed.push(Claimed { agent, job: row.id, ask });
          }
        }
        claimed
      })
      .await
  }

  async fn started(&self, started: &[(JobId, i32)]) -> Result<(), PortError> {
    let by_job: BTreeMap<JobId, i32> = started.iter().copied().collect();
    let jobs: Vec<JobId> = by_job.keys().copied().collect();
    self.own("write down executions", &jobs, move |job, (lease, _)| lease.execution = by_job.get(&job).copied()).await.map(drop)
  }

  async fn renew(&self, jobs: &[JobId]) -> Result<Vec<JobId>, PortError> {
    self.own("renew work leases", jobs, |_, (_, at)| *at = Instant::now() + LEASE).await
  }

  async fn release(&self, jobs: &[JobId]) -> Result<(), PortError> {
    let (holder, jobs) = (self.store.holder(), jobs.to_vec());
    self.work("release work leases", move |rows| rows.retain(|job, (lease, _)| !(jobs.contains(job) && lease.holder == holder))).await
  }

  async fn run_out(&self) -> Result<Vec<WorkLease>, PortError> {
    let now = Instant::now();
    self.leases(move |_, at| at <= now).await
  }

  async fn left_behind(&self) -> Result<Vec<WorkLease>, PortError> {
    let holder = self.store.holder();
    self.leases(move |lease, _| lease.holder.node == holder.node && lease.holder.process != holder.process).await
  }

  async fn still_run_out(&self, leases: Vec<WorkLease>) -> Result<Vec<WorkLease>, PortError> {
    let now = self.run_out().await?;
    let stands = |lease: &WorkLease| now.iter().any(|other| other.job == lease.job && other.holder == lease.holder && other.ask == lease.ask);
    Ok(leases.into_iter().filter(stands).collect())
  }

  async fn forget(&self, lease: &WorkLease) -> Result<(), PortError> {
    let lost = lease.clone();
    let is = move |other: &WorkLease| other.job == lost.job && other.holder.process == lost.holder.process && other.ask == lost.ask;
    self.work("forget a lost work lease", move |rows| rows.retain(|_, (lease, _)| !is(lease))).await
  }

  async fn running(&self, jobs: &[(AgentId, JobId)]) -> Result<Vec<Job>, PortError> {
    self.store.reach().await;
    Ok(self.jobs(|agent, row| row.state == JobState::Running && jobs.contains(&(agent, row.id))))
  }

  async fn abandoned(&self) -> Result<Vec<Job>, PortError> {
    // As in Postgres: by no clock but the observer's own.
    let before = self.clock.now().plus_millis(CLOCKS_APART_MILLIS);
    let leased: Vec<JobId> = self.leases(|_, _| true).await?.into_iter().map(|lease| lease.job).collect();
    Ok(self.jobs(|_, row| row.state == JobState::Running && row.since < before && !leased.contains(&row.id)))
  }

  async fn open_calls(&self) -> Result<Vec<OpenCall>, PortError> {
    self.store.reach().await;
    let store = self.model.store();
    let jobs = store.jobs();
    let runs = |agent: AgentId, call: &CallRow| {
      jobs.iter().any(|(other, job)| *other == agent && job.id == call.job && job.state == JobState::Running && job.execution == call.execution)
    };
    let calls = store.calls().into_iter().filter(|(agent, call)| !call.unknown && !runs(*agent, call));
    Ok(calls.map(|(agent, call)| open_call(agent, call)).collect())
  }

  async fn job(&self, agent: AgentId, id: JobId) -> Result<Option<Job>, PortError> {
    self.store.reach().await;
    Ok(self.jobs(|other, row| other == agent && row.id == id).pop())
  }
}

#[async_trait]
impl History for Ports {
  async fn reached(&self, agent: AgentId, ordinal: i64, within: Duration) -> Result<bool, PortError> {
    self.store.reach().await;
    Ok(self.view.reached(agent, ordinal, within).await)
  }

  async fn settings(&self, agent: AgentId) -> Result<Option<Settings>, PortError> {
    self.store.reach().await;
    let settings = self.view.root(agent).and_then(|root| root.settings);
    Ok(settings.map(|now| Settings {
      version: now.version,
      time_zone: now.time_zone,
      language: now.language,
      concurrency: now.concurrency,
      model: now.model,
      effort: now.effort,
      name: now.name,
      avatar: now.avatar,
      changed: 1,
    }))
  }

  async fn turns(&self, agent: AgentId, upto: MessageId, keep: &mut (dyn for<'t> FnMut(&'t Turn) -> bool + Send)) -> Result<Vec<Turn>, PortError> {
    self.store.reach().await;
    let entries: Vec<Entry> = self.model.store().all_entries(agent).into_iter().filter_map(entry).collect();
    let Some(newest) = entries.iter().find(|entry| entry.id == upto).cloned() else { return Ok(Vec::new()) };
    let is_before = |entry: &&Entry| entry.conversation == newest.conversation && entry.reply_to.is_none() && entry.place <= newest.place;
    let mut messages: Vec<&Entry> = entries.iter().filter(is_before).filter(|entry| matches!(entry.role, Role::Owner | Role::Person)).collect();
    messages.sort_by_key(|message| -message.place);
    let reply = |message: &Entry| entries.iter().find(|entry| entry.reply_to == Some(message.id) && message.id != upto && !entry.removed).cloned();
    let turns = messages.into_iter().map(|message| Turn { reply: reply(message), message: message.clone() });
    Ok(turns.take_while(|turn| keep(turn)).collect())
  }

  async fn record(&self, agent: AgentId, job: JobId) -> Result<Vec<Arc<Recorded>>, PortError> {
    self.store.reach().await;
    Ok(self.view.record(agent, job))
  }

  async fn tasks(&self, _: AgentId, _: u32) -> Result<Vec<TaskLine>, PortError> {
    Ok(Vec::new())
  }

  async fn take(&self, _: AgentId, path: &str, _: usize) -> Result<FileTaken, Result<NotTaken, PortError>> {
    Err(Ok(NotTaken { code: "NOT_FOUND", reason: format!("{path} is not there") }))
  }

  async fn stage(&self, _: AgentId, _: TaskId, _: &[FileRef]) -> Result<Vec<String>, PortError> {
    Ok(Vec::new())
  }

  async fn file(&self, _: AgentId, _: &str, _: usize) -> Result<Option<Bytes>, PortError> {
    Ok(None)
  }

  async fn keep(&self, _: AgentId, bytes: Bytes) -> Result<String, PortError> {
    Ok(format!("blob-of-{}", bytes.len()))
  }
}

fn entry(row: NewEntry) -> Option<Entry> {
  Some(Entry {
    id: MessageId(row.id),
    conversation: row.conversation?,
    place: row.place,
    changed: row.changed,
    kind: row.kind,
    role: row.role,
    author: row.author,
    text: row.text,
    status: row.status,
    created: row.created,
    reply_to: row.reply_to,
    reply: row.reply,
    incomplete: row.incomplete,
    attempt: row.attempt,
    code: row.code,
    params: Vec::new(),
    attachments: Vec::new(),
    origin: row.origin,
    removed: row.removed,
  })
}

impl BootClock for Ports {
  fn millis(&self) -> i64 {
    i64::try_from(self.begin.elapsed().as_millis()).unwrap_or(i64::MAX)
  }
}

#[async_trait]
impl Timers for Ports {
  async fn leads(&self) -> anyhow::Result<bool> {
    self.store.reach().await;
    Ok(true)
  }

  async fn resign(&self) {}

  async fn due(&self, at: Timestamp, _limit: u32) -> anyhow::Result<Vec<Timer>> {
    let timer = |(agent, row): (AgentId, pa_projections::timers::TimerRow)| Timer { agent, id: row.id, purpose: row.purpose, due: row.due, thing: row.thing };
    Ok(self.model.store().due(at).into_iter().map(timer).collect())
  }

  async fn next_due(&self, after: Timestamp) -> anyhow::Result<Option<Timestamp>> {
    Ok(self.model.store().due(Timestamp(i64::MAX)).into_iter().map(|(_, row)| row.due).find(|due| *due > after))
  }

  async fn changed(&self) {
    sleep(POLL).await;
  }
}

/// Nothing is cleared away in so short a life.
#[async_trait]
impl Keeper for Ports {
  async fn inputs(&self) -> anyhow::Result<u64> {
    Ok(0)
  }

  async fn pieces(&self) -> anyhow::Result<u64> {
    Ok(0)
  }

  async fn uploads(&self, _: Timestamp) -> anyhow::Result<u64> {
    Ok(0)
  }

  async fn tokens(&self) -> anyhow::Result<u64> {
    Ok(0)
  }
}
