//! All that the worker knows of the outside: its queue and leases, what a prompt is made of, and the clock of permits. The simulator implements the same traits.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pa_domain::conversation::FileRef;
use pa_domain::execution::JobKind;
use pa_domain::{AgentId, JobId, MessageId, TaskId, Timestamp};
use pa_eventlog::reader::Recorded;
use pa_projections::conversation::Turn;
use pa_projections::queue::{Job, OpenCall};
use pa_projections::settings::Settings;
use pa_store::Disposition;
use pa_store::lease::work::WorkLease;
use uuid::Uuid;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Something that was asked for did not come.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
  /// Try again.
  #[error("it can't be reached now")]
  Away(#[source] Cause),
  /// Trying again gives the same.
  #[error("it can't be used")]
  Broken(#[source] Cause),
}

impl PortError {
  /// An error by what may be done about it. Nothing that is asked for here does harm when it is done twice.
  pub fn of(disposition: Disposition, cause: impl Into<Cause>) -> Self {
    match disposition {
      Disposition::Retry | Disposition::Unknown => Self::Away(cause.into()),
      Disposition::Fail => Self::Broken(cause.into()),
    }
  }
}

/// A job that this process has claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
  pub agent: AgentId,
  pub job: JobId,
  /// The id of the ask that follows, as the lease has it.
  pub ask: Uuid,
}

/// A task in a list: what a conversation has to know to speak of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLine {
  pub id: TaskId,
  pub title: String,
  /// How far it is, in words.
  pub state: String,
  pub updated: Timestamp,
}

/// A file of the workspace that was read to be handed over.
#[derive(Clone, Debug)]
pub struct FileTaken {
  /// From `/workspace` on.
  pub path: String,
  pub bytes: Bytes,
  pub media_type: String,
}

/// A file of the workspace that can't be handed over, as a model may know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTaken {
  pub code: &'static str,
  pub reason: String,
}

/// The queue projection with the leases on work, for one kind of job.
#[async_trait]
pub trait WorkQueue: Send + Sync + 'static {
  /// The jobs that are found here.
  fn kind(&self) -> JobKind;
  /// Returns when there may be something new to claim, and after about a second anyway.
  async fn changed(&self);

  /// Claims up to a job for each of the asks, longest waiting first, and writes down which ask it leads to, before that is appended.
  async fn claim(&self, asks: &[Uuid]) -> Result<Vec<Claimed>, PortError>;
  /// Writes down the executions that the log granted.
  async fn started(&self, started: &[(JobId, i32)]) -> Result<(), PortError>;
  /// Renews leases; names those that are still this process's own.
  async fn renew(&self, jobs: &[JobId]) -> Result<Vec<JobId>, PortError>;
  /// Gives leases up.
  async fn release(&self, jobs: &[JobId]) -> Result<(), PortError>;

  /// Leases that have run out.
  async fn run_out(&self) -> Result<Vec<WorkLease>, PortError>;
  /// Leases that earlier processes of this node left behind.
  async fn left_behind(&self) -> Result<Vec<WorkLease>, PortError>;
  /// Those of these leases that still stand as they are and have run out.
  async fn still_run_out(&self, leases: Vec<WorkLease>) -> Result<Vec<WorkLease>, PortError>;
  /// Removes a lease whose loss is reported, unless somebody has claimed the job meanwhile.
  async fn forget(&self, lease: &WorkLease) -> Result<(), PortError>;
  /// Those of these jobs that run by the read model.
  async fn running(&self, jobs: &[(AgentId, JobId)]) -> Result<Vec<Job>, PortError>;
  /// Running jobs that no lease stands for.
  async fn abandoned(&self) -> Result<Vec<Job>, PortError>;
  /// Started calls, not settled, of executions that no longer run.
  async fn open_calls(&self) -> Result<Vec<OpenCall>, PortError>;
  /// A job that has its turn and has not ended.
  async fn job(&self, agent: AgentId, job: JobId) -> Result<Option<Job>, PortError>;
}

/// What a prompt is made of: the read model, the log, the blobs.
#[async_trait]
pub trait History: Send + Sync + 'static {
  /// Waits until the read model has the agent's events up to `ordinal`.
  async fn reached(&self, agent: AgentId, ordinal: i64, within: Duration) -> Result<bool, PortError>;
  /// The agent's settings; `None` when the read model has none.
  async fn settings(&self, agent: AgentId) -> Result<Option<Settings>, PortError>;
  /// The message that is answered and the turns before it, newest first, as long as `keep` takes them.
  async fn turns(&self, agent: AgentId, upto: MessageId, keep: &mut (dyn for<'t> FnMut(&'t Turn) -> bool + Send)) -> Result<Vec<Turn>, PortError>;
  /// The events about a job, in order, as the read model has them.
  async fn record(&self, agent: AgentId, job: JobId) -> Result<Vec<Arc<Recorded>>, PortError>;
  /// Tasks: those that are not over, then those that ended last, the newest first.
  async fn tasks(&self, agent: AgentId, limit: u32) -> Result<Vec<TaskLine>, PortError>;
  /// The bytes of a file; `None` when they are more than `bytes_max` or not there.
  async fn file(&self, agent: AgentId, blob: &str, bytes_max: usize) -> Result<Option<Bytes>, PortError>;
  /// Reads a file of the agent's workspace.
  ///
  /// # Errors
  /// `Ok` with what the model can mend, `Err` when it can't be read now.
  async fn take(&self, agent: AgentId, path: &str, bytes_max: usize) -> Result<FileTaken, Result<NotTaken, PortError>>;
  /// Puts files that came with a task's instructions into its folder of the workspace; their paths there, in the same order. What is there already stays.
  async fn stage(&self, agent: AgentId, task: TaskId, files: &[FileRef]) -> Result<Vec<String>, PortError>;
  /// Keeps what is too long for a record and names it.
  async fn keep(&self, agent: AgentId, bytes: Bytes) -> Result<String, PortError>;
}

/// The clock of permits: it counts the time that the machine was suspended.
pub trait BootClock: Send + Sync + 'static {
  /// Milliseconds since the machine started.
  fn millis(&self) -> i64;
}

/// The machine's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemBootClock;

impl BootClock for SystemBootClock {
  fn millis(&self) -> i64 {
    pa_store::clock::boot_millis()
  }
}
