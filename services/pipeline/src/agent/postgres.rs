//! The worker's ports in the product: leases and read model in Postgres, the log, the blobs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pa_blobs::Blobs;
use pa_domain::conversation::FileRef;
use pa_domain::execution::JobKind;
use pa_domain::{AgentId, ConversationId, JobId, MessageId, TaskId};
use pa_eventlog::opener::{Opened, Opener};
use pa_eventlog::reader::Recorded;
use pa_eventlog::seal::{KeyState, Keys};
use pa_eventlog::{EventLog, LogError, Stream};
use pa_projections::audit::{self, Filter};
use pa_projections::conversation::{self, Entry, Role, Turn};
use pa_projections::live::{Committed, Live};
use pa_projections::queue::{self, Job, OpenCall};
use pa_projections::settings::{self, Settings};
use pa_projections::tasks::{self, Status, Task};
use pa_store::PgPool;
use pa_store::clock::Clock;
use pa_store::keys::AgentKeys;
use pa_store::lease::Holder;
use pa_store::lease::work::{self, CANDIDATES_MAX, Claim, WorkLease};
use pa_store::together::Together;
use pa_tools::{OldMessage, OldPage, OlderMessages};
use pa_workspace::{FileContent, Input, Workspaces};
use tokio::sync::{Mutex, broadcast};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::ports::{Claimed, FileTaken, History, NotTaken, PortError, TaskLine, WorkQueue};

/// How often work is looked for without a hint.
const POLL: Duration = Duration::from_secs(1);
/// Rows of one look of an observer: it looks again in a second.
const LOOK_MAX: u32 = 256;
/// Wall clocks are not farther apart. When an execution began is said by the decider's; that its worker is gone is told by the observer's own waiting, and by no wall clock.
const CLOCKS_APART_MILLIS: i64 = 24 * 3_600_000;
/// Agents of one look at their settings.
const AGENTS_AT_ONCE: usize = 64;
/// Events about one job. A task has no limit of its own (RUN-19), but its worker holds its record in memory: one that is longer fails and says so.
const RECORD_MAX: usize = 100_000;

impl From<pa_store::Error> for PortError {
  fn from(error: pa_store::Error) -> Self {
    Self::of(error.disposition(), error)
  }
}

impl From<pa_projections::Error> for PortError {
  fn from(error: pa_projections::Error) -> Self {
    Self::of(error.disposition(), error)
  }
}

impl From<LogError> for PortError {
  fn from(error: LogError) -> Self {
    match error {
      LogError::Away(_) => Self::Away(error.into()),
      LogError::Unusable(_) => Self::Broken(error.into()),
    }
  }
}

impl From<pa_blobs::Error> for PortError {
  fn from(error: pa_blobs::Error) -> Self {
    Self::of(error.disposition(), error)
  }
}

/// The queue and the leases of one kind of job.
pub struct PostgresQueue {
  kind: JobKind,
  control: PgPool,
  reads: PgPool,
  commits: Mutex<broadcast::Receiver<Arc<Committed>>>,
  holder: Holder,
  clock: Arc<dyn Clock>,
}

impl PostgresQueue {
  /// The queue of a process: `control` is the pool of leases, `reads` one of the read model.
  pub fn new(kind: JobKind, control: PgPool, reads: PgPool, live: &Live, holder: Holder, clock: Arc<dyn Clock>) -> Self {
    Self { kind, control, reads, commits: Mutex::new(live.committed()), holder, clock }
  }

  /// The kind of these leases: as the queue projection names it.
  fn leases(&self) -> &'static str {
    match self.kind {
      JobKind::Reply => "REPLY",
      JobKind::Task => "TASK",
    }
  }
}

#[async_trait]
impl WorkQueue for PostgresQueue {
  fn kind(&self) -> JobKind {
    self.kind
  }

  async fn changed(&self) {
    let mut commits = self.commits.lock().await;
    let heard = async {
      loop {
        match commits.recv().await {
          Ok(committed) if !committed.queue => {}
          Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
          Err(broadcast::error::RecvError::Closed) => sleep(POLL).await,
        }
      }
    };
    // Nothing heard in time is a reason to look, too.
    drop(timeout(POLL, heard).await);
    // One look serves for all that has been told so far.
    while !matches!(commits.try_recv(), Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed)) {}
  }

  async fn claim(&self, asks: &[Uuid]) -> Result<Vec<Claimed>, PortError> {
    // More than are wanted: others may be claiming the same head of the queue.
    let candidates = queue::candidates(&self.reads, self.kind, u32::try_from((asks.len() * 4).min(CANDIDATES_MAX)).unwrap_or(u32::MAX)).await?;
    if candidates.is_empty() {
      return Ok(Vec::new());
    }
    let claims = work::claim(&self.control, self.leases(), self.holder, &candidates, asks).await?;
    Ok(claims.into_iter().map(|Claim { job, agent, ask }| Claimed { agent, job, ask }).collect())
  }

  async fn started(&self, started: &[(JobId, i32)]) -> Result<(), PortError> {
    Ok(work::started_many(&self.control, self.leases(), self.holder.process, started).await?)
  }

  async fn renew(&self, jobs: &[JobId]) -> Result<Vec<JobId>, PortError> {
    Ok(work::renew(&self.control, self.holder.process, jobs).await?)
  }

  async fn release(&self, jobs: &[JobId]) -> Result<(), PortError> {
    Ok(work::release_many(&self.control, self.leases(), self.holder.process, jobs).await?)
  }

  async fn run_out(&self) -> Result<Vec<WorkLease>, PortError> {
    let leases = work::expired(&self.control, i64::from(LOOK_MAX)).await?;
    Ok(leases.into_iter().filter(|lease| lease.kind == self.leases()).collect())
  }

  async fn left_behind(&self) -> Result<Vec<WorkLease>, PortError> {
    let leases = work::of_node(&self.control, self.holder).await?;
    Ok(leases.into_iter().filter(|lease| lease.kind == self.leases()).collect())
  }

  async fn still_run_out(&self, leases: Vec<WorkLease>) -> Result<Vec<WorkLease>, PortError> {
    let jobs: Vec<JobId> = leases.iter().map(|lease| lease.job).collect();
    let now = work::of_jobs(&self.control, self.leases(), &jobs).await?;
    let stands = |lease: &WorkLease| now.iter().any(|(other, live)| !live && other.job == lease.job && other.holder == lease.holder && other.ask == lease.ask);
    Ok(leases.into_iter().filter(stands).collect())
  }

  async fn forget(&self, lease: &WorkLease) -> Result<(), PortError> {
    work::forget(&self.control, lease).await?;
    Ok(())
  }

  async fn running(&self, jobs: &[(AgentId, JobId)]) -> Result<Vec<Job>, PortError> {
    Ok(queue::running(&self.reads, jobs).await?)
  }

  async fn abandoned(&self) -> Result<Vec<Job>, PortError> {
    Ok(queue::running_without_lease(&self.reads, self.kind, self.clock.now().plus_millis(CLOCKS_APART_MILLIS), LOOK_MAX).await?)
  }

  async fn open_calls(&self) -> Result<Vec<OpenCall>, PortError> {
    Ok(queue::open_calls_of_ended(&self.reads, self.kind, LOOK_MAX).await?)
  }

  async fn job(&self, agent: AgentId, job: JobId) -> Result<Option<Job>, PortError> {
    Ok(queue::job(&self.reads, agent, job).await?)
  }
}

/// Where what prompts are made of stands.
pub struct HistoryParts {
  /// A pool of the read model.
  pub reads: PgPool,
  pub live: Live,
  pub log: Arc<dyn EventLog>,
  pub opener: Arc<Opener>,
  pub blobs: Arc<Blobs>,
  pub workspaces: Arc<Workspaces>,
  pub keys: Arc<dyn Keys>,
}

/// What prompts are made of.
pub struct ReadHistory {
  reads: PgPool,
  live: Live,
  log: Arc<dyn EventLog>,
  opener: Arc<Opener>,
  blobs: Arc<Blobs>,
  workspaces: Arc<Workspaces>,
  keys: Arc<dyn Keys>,
  /// Turns that begin at the same time read them together.
  settings: Together<AgentId, Option<Settings>>,
}

impl ReadHistory {
  /// What prompts are made of in a process.
  pub fn new(parts: HistoryParts) -> Self {
    let HistoryParts { reads, live, log, opener, blobs, workspaces, keys } = parts;
    Self { reads, live, log, opener, blobs, workspaces, keys, settings: Together::new(AGENTS_AT_ONCE) }
  }

  async fn keys(&self, agent: AgentId) -> Result<Arc<AgentKeys>, PortError> {
    match self.keys.keys(agent).await {
      Ok(KeyState::Ready(keys)) => Ok(keys),
      Ok(KeyState::Erased) => Err(PortError::Broken(format!("agent {agent} was erased").into())),
      Ok(KeyState::Missing) => Err(PortError::Broken(format!("agent {agent} has no key").into())),
      Err(error) => Err(PortError::of(error.source.disposition(), error)),
    }
  }

  async fn event(&self, row: &audit::Row) -> Result<Option<Arc<Recorded>>, PortError> {
    let stored = self.log.read(Stream::Events, row.partition, row.position, 1).await?;
    let Some(stored) = stored.first().filter(|stored| stored.record.id == row.id) else { return Ok(None) };
    match self.opener.event(stored).await {
      Ok(Opened::Event(recorded)) => Ok(Some(recorded)),
      Ok(Opened::Input(_) | Opened::Erased | Opened::Unreadable(_)) => Ok(None),
      Err(pa_eventlog::opener::Error::Keys(error)) => Err(PortError::Away(error.into())),
      Err(error) => Err(PortError::Broken(error.into())),
    }
  }
}

#[async_trait]
impl History for ReadHistory {
  async fn reached(&self, agent: AgentId, ordinal: i64, within: Duration) -> Result<bool, PortError> {
    Ok(self.live.wait_for(&self.reads, agent, ordinal, within).await?)
  }

  async fn settings(&self, agent: AgentId) -> Result<Option<Settings>, PortError> {
    let read = |agents: Vec<AgentId>| async move { settings::of_many(&self.reads, &agents).await };
    Ok(self.settings.ask(agent, read).await?.flatten())
  }

  async fn turns(&self, agent: AgentId, upto: MessageId, keep: &mut (dyn for<'t> FnMut(&'t Turn) -> bool + Send)) -> Result<Vec<Turn>, PortError> {
    Ok(conversation::history(&self.reads, agent, upto, keep).await?)
  }

  async fn record(&self, agent: AgentId, job: JobId) -> Result<Vec<Arc<Recorded>>, PortError> {
    let filter = Filter { thing: Some(job.into()), ..Filter::default() };
    let (mut events, mut after) = (Vec::new(), None);
    loop {
      let page = audit::page(&self.reads, agent, &filter, audit::PAGE_MAX, after).await?;
      for row in &page.rows {
        let recorded = self.event(row).await?.ok_or_else(|| PortError::Broken(format!("event {} of the record can't be read", row.ordinal).into()))?;
        events.push(recorded);
      }
      after = page.rows.last().map(|row| row.ordinal);
      if !page.has_next {
        return Ok(events);
      }
      if events.len() >= RECORD_MAX {
        return Err(PortError::Broken(format!("the record of job {job} has more than {RECORD_MAX} events").into()));
      }
    }
  }

  async fn tasks(&self, agent: AgentId, limit: u32) -> Result<Vec<TaskLine>, PortError> {
    let tasks = tasks::listed(&self.reads, agent, limit).await?;
    Ok(tasks.into_iter().map(task_line).collect())
  }

  async fn take(&self, agent: AgentId, path: &str, bytes_max: usize) -> Result<FileTaken, Result<NotTaken, PortError>> {
    match self.workspaces.read(agent, path, bytes_max as u64).await {
      Ok(FileContent { path, bytes, .. }) => Ok(FileTaken { media_type: pa_tools::media_type(&path).to_owned(), path, bytes }),
      Err(error) => Err(Ok(NotTaken { code: error.code(), reason: error.to_string() })),
    }
  }

  async fn stage(&self, agent: AgentId, task: TaskId, files: &[FileRef]) -> Result<Vec<String>, PortError> {
    let mut inputs = Vec::with_capacity(files.len());
    for file in files {
      let size = usize::try_from(file.size_bytes).unwrap_or(usize::MAX);
      let bytes = self.file(agent, &file.blob, size).await?;
      let bytes = bytes.ok_or_else(|| PortError::Broken(format!("the file {} of a task is not there", file.id).into()))?;
      inputs.push(Input { name: file.name.clone(), bytes });
    }
    self.workspaces.stage(agent, task, &inputs).await.map_err(|error| PortError::Broken(error.into()))
  }

  async fn file(&self, agent: AgentId, blob: &str, bytes_max: usize) -> Result<Option<Bytes>, PortError> {
    let keys = self.keys(agent).await?;
    match self.blobs.get_all(agent, &keys, blob, bytes_max as u64).await {
      Ok(bytes) => Ok(Some(bytes)),
      Err(pa_blobs::Error::TooLarge { .. } | pa_blobs::Error::Missing { .. }) => Ok(None),
      Err(error) => Err(error.into()),
    }
  }

  async fn keep(&self, agent: AgentId, bytes: Bytes) -> Result<String, PortError> {
    let keys = self.keys(agent).await?;
    Ok(self.blobs.put(agent, &keys, bytes).await?.name)
  }
}

#[async_trait]
impl OlderMessages for ReadHistory {
  async fn page(
    &self,
    agent: AgentId,
    conversation: ConversationId,
    last: u32,
    before: Option<i64>,
  ) -> Result<OldPage, Box<dyn std::error::Error + Send + Sync>> {
    let page = conversation::page(&self.reads, agent, conversation, last, before).await?;
    let shown = page.entries.into_iter().filter(|entry| !(entry.text.is_empty() && entry.attachments.is_empty()));
    Ok(OldPage { messages: shown.map(old_message).collect(), has_previous: page.has_previous })
  }
}

fn task_line(task: Task) -> TaskLine {
  let state = match task.status {
    Status::Queued => "queued".to_owned(),
    Status::Running => "running".to_owned(),
    Status::Waiting => format!("waiting ({})", task.reason),
    Status::Paused => "paused".to_owned(),
    Status::Completed => "completed".to_owned(),
    Status::Failed => format!("failed ({})", task.reason),
    Status::Stopped => "stopped".to_owned(),
  };
  TaskLine { id: task.id, title: task.title, state, updated: task.changed_at }
}

fn old_message(entry: Entry) -> OldMessage {
  let author = match entry.role {
    Role::Owner => "owner".to_owned(),
    Role::Agent => "you".to_owned(),
    Role::Notice => "notice".to_owned(),
    Role::Person => format!("{} (not the owner)", entry.author),
  };
  OldMessage {
    place: entry.place,
    at: entry.created,
    origin: entry.origin,
    author,
    text: entry.text,
    files: entry.attachments.into_iter().map(|file| file.name).collect(),
  }
}
