//! The worker's ports in memory: the read model as its projections fold it, leases by tokio's clock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pa_domain::conversation::FileRef;
use pa_domain::execution::JobKind;
use pa_domain::settings::Effort;
use pa_domain::{AgentId, JobId, MessageId, NodeId, TaskId};
use pa_eventlog::reader::{Decision, Recorded};
use pa_projections::commit::{Batch, Fact, Mark, MemoryStore, ReadStore};
use pa_projections::conversation::{Entry, EntryKind, NewEntry, Role, Turn};
use pa_projections::queue::{CallRow, Job, JobRow, JobState, OpenCall};
use pa_projections::settings::Settings;
use pa_store::lease::work::WorkLease;
use pa_store::lease::{Holder, LEASE};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::agent::ports::{Claimed, FileTaken, History, NotTaken, PortError, TaskLine, WorkQueue};

/// The read model and the leases, shared by all processes of a test.
pub(super) struct Rows {
  pub(super) store: MemoryStore,
  pub(super) events: Mutex<Vec<Arc<Recorded>>>,
  leases: Mutex<HashMap<JobId, (WorkLease, Instant)>>,
  moved: watch::Sender<u64>,
  mark: Mutex<Mark>,
}

impl Rows {
  pub(super) fn new() -> Arc<Self> {
    Arc::new(Self { store: MemoryStore::new(), events: Mutex::default(), leases: Mutex::default(), moved: watch::Sender::new(0), mark: Mutex::default() })
  }

  /// Folds a decision, as the projector does.
  pub(super) async fn fold(&self, decision: &Decision) {
    let facts: Vec<Fact<'_>> =
      decision.events.iter().map(|recorded| Fact { partition: 0, position: recorded.position, meta: recorded.core(), event: &recorded.event }).collect();
    let loaded = self.store.load(0, Uuid::from_u128(1)).await.unwrap();
    let mut batch = Batch::new(&loaded.parked);
    batch.add_decision(&facts);
    let next = Mark { next_position: decision.last + 1, epoch: decision.epoch, seq: decision.seq, last: [1; 32] };
    self.store.commit(0, &loaded.mark, &next, &batch).await.unwrap();
    *self.mark.lock() = next;
    self.events.lock().extend(decision.events.iter().cloned());
    self.moved.send_modify(|n| *n += 1);
  }

  /// Waits until something is so.
  pub(super) async fn until<T>(&self, is_so: impl Fn(&Self) -> Option<T>) -> T {
    let mut moved = self.moved.subscribe();
    timeout(Duration::from_secs(3_600), async {
      loop {
        if let Some(found) = is_so(self) {
          return found;
        }
        moved.changed().await.unwrap();
      }
    })
    .await
    .expect("it becomes so within an hour of the test's time")
  }

  pub(super) fn leases(&self) -> usize {
    self.leases.lock().len()
  }
}

/// One process's view of the rows.
pub(super) struct Ports {
  pub(super) rows: Arc<Rows>,
  pub(super) holder: Holder,
  kind: JobKind,
  /// Killed: nothing returns any more.
  pub(super) dead: AtomicBool,
  /// The database can't be reached.
  pub(super) away: AtomicBool,
  /// Turns that the last prompt was given.
  pub(super) turns_read: AtomicUsize,
}

impl Ports {
  pub(super) fn new(rows: &Arc<Rows>, holder: Holder, kind: JobKind) -> Arc<Self> {
    Arc::new(Self { rows: Arc::clone(rows), holder, kind, dead: AtomicBool::new(false), away: AtomicBool::new(false), turns_read: AtomicUsize::new(0) })
  }

  async fn reach(&self) -> Result<(), PortError> {
    if self.dead.load(Ordering::SeqCst) {
      std::future::pending::<()>().await;
    }
    if self.away.load(Ordering::SeqCst) { Err(PortError::Away("the test says so".into())) } else { Ok(()) }
  }

  fn own(&self, job: JobId, change: impl FnOnce(&mut (WorkLease, Instant))) -> bool {
    let mut leases = self.rows.leases.lock();
    match leases.get_mut(&job).filter(|(lease, _)| lease.holder == self.holder) {
      Some(lease) => {
        change(lease);
        true
      }
      None => false,
    }
  }

  fn jobs(&self, is: impl Fn(AgentId, &JobRow) -> bool) -> Vec<Job> {
    self.rows.store.jobs().into_iter().filter(|(agent, row)| is(*agent, row)).map(|(agent, row)| job(agent, &row)).collect()
  }
}

fn job(agent: AgentId, row: &JobRow) -> Job {
  let JobRow { id, kind, conversation, reply, state, execution, since, limit, changed, .. } = *row;
  Job { agent, id, kind, conversation, reply, state, execution, since, limit, changed }
}

fn open_call(agent: AgentId, row: CallRow) -> OpenCall {
  let CallRow { id, job, execution, step, index, tool, class, action, limit_millis, started, unknown, .. } = row;
  OpenCall { agent, id, job, execution, step, index, tool, class, action, limit_millis, started, unknown }
}

#[async_trait]
impl WorkQueue for Ports {
  fn kind(&self) -> JobKind {
    self.kind
  }

  async fn changed(&self) {
    let mut moved = self.rows.moved.subscribe();
    drop(timeout(Duration::from_secs(1), moved.changed()).await);
  }

  async fn claim(&self, asks: &[Uuid]) -> Result<Vec<Claimed>, PortError> {
    self.reach().await?;
    let mut leases = self.rows.leases.lock();
    let now = Instant::now();
    let mut claimed = Vec::new();
    for (agent, row) in self.rows.store.candidates().into_iter().filter(|(_, row)| row.kind == self.kind) {
      let free = leases.get(&row.id).is_none_or(|(_, expires)| *expires <= now);
      if let Some(ask) = asks.get(claimed.len()).copied().filter(|_| free) {
        let lease = WorkLease { kind: "REPLY".into(), job: row.id, agent, holder: self.holder, ask: Some(ask), execution: None };
        leases.insert(row.id, (lease, now + LEASE));
        claimed.push(Claimed { agent, job: row.id, ask });
      }
    }
    Ok(claimed)
  }

  async fn started(&self, started: &[(JobId, i32)]) -> Result<(), PortError> {
    self.reach().await?;
    for (job, execution) in started {
      self.own(*job, |(lease, _)| lease.execution = Some(*execution));
    }
    Ok(())
  }

  async fn renew(&self, jobs: &[JobId]) -> Result<Vec<JobId>, PortError> {
    self.reach().await?;
    Ok(jobs.iter().filter(|job| self.own(**job, |(_, expires)| *expires = Instant::now() + LEASE)).copied().collect())
  }

  async fn release(&self, jobs: &[JobId]) -> Result<(), PortError> {
    self.reach().await?;
    self.rows.leases.lock().retain(|job, (lease, _)| !(jobs.contains(job) && lease.holder == self.holder));
    self.rows.moved.send_modify(|n| *n += 1);
    Ok(())
  }

  async fn run_out(&self) -> Result<Vec<WorkLease>, PortError> {
    self.reach().await?;
    let now = Instant::now();
    Ok(self.rows.leases.lock().values().filter(|(_, expires)| *expires <= now).map(|(lease, _)| lease.clone()).collect())
  }

  async fn left_behind(&self) -> Result<Vec<WorkLease>, PortError> {
    self.reach().await?;
    let left = |lease: &WorkLease| lease.holder.node == self.holder.node && lease.holder.process != self.holder.process;
    Ok(self.rows.leases.lock().values().map(|(lease, _)| lease.clone()).filter(left).collect())
  }

  async fn still_run_out(&self, leases: Vec<WorkLease>) -> Result<Vec<WorkLease>, PortError> {
    let now = self.run_out().await?;
    Ok(leases.into_iter().filter(|lease| now.iter().any(|other| other.job == lease.job && other.holder == lease.holder && other.ask == lease.ask)).collect())
  }

  async fn forget(&self, lease: &WorkLease) -> Result<(), PortError> {
    self.reach().await?;
    self.rows.leases.lock().retain(|job, (other, _)| !(*job == lease.job && other.holder == lease.holder && other.ask == lease.ask));
    Ok(())
  }

  async fn running(&self, jobs: &[(AgentId, JobId)]) -> Result<Vec<Job>, PortError> {
    self.reach().await?;
    Ok(self.jobs(|agent, row| row.state == JobState::Running && jobs.contains(&(agent, row.id))))
  }

  async fn abandoned(&self) -> Result<Vec<Job>, PortError> {
    self.reach().await?;
    let leased: Vec<JobId> = self.rows.leases.lock().keys().copied().collect();
    Ok(self.jobs(|_, row| row.state == JobState::Running && !leased.contains(&row.id)))
  }

  async fn open_calls(&self) -> Result<Vec<OpenCall>, PortError> {
    self.reach().await?;
    let jobs = self.rows.store.jobs();
    let runs = |agent: AgentId, call: &CallRow| {
      jobs.iter().any(|(other, job)| *other == agent && job.id == call.job && job.state == JobState::Running && job.execution == call.execution)
    };
    let calls = self.rows.store.calls().into_iter();
    Ok(calls.filter(|(agent, call)| !call.unknown && !runs(*agent, call)).map(|(agent, call)| open_call(agent, call)).collect())
  }

  async fn job(&self, agent: AgentId, id: JobId) -> Result<Option<Job>, PortError> {
    self.reach().await?;
    Ok(self.jobs(|other, row| other == agent && row.id == id).pop())
  }
}

#[async_trait]
impl History for Ports {
  async fn reached(&self, agent: AgentId, ordinal: i64, within: Duration) -> Result<bool, PortError> {
    self.reach().await?;
    let there = self.rows.until(|rows| (rows.store.progress(agent) >= ordinal).then_some(()));
    Ok(timeout(within, there).await.is_ok())
  }

  async fn settings(&self, _: AgentId) -> Result<Option<Settings>, PortError> {
    self.reach().await?;
    Ok(Some(Settings {
      version: 1,
      time_zone: "Europe/Berlin".into(),
      language: String::new(),
      concurrency: 3,
      model: String::new(),
      effort: Effort::Fast,
      name: "Robin".into(),
      avatar: String::new(),
      changed: 1,
    }))
  }

  async fn turns(&self, agent: AgentId, upto: MessageId, keep: &mut (dyn for<'t> FnMut(&'t Turn) -> bool + Send)) -> Result<Vec<Turn>, PortError> {
    self.reach().await?;
    let entries: Vec<Entry> = self.rows.store.all_entries(agent).into_iter().filter_map(entry).collect();
    let Some(newest) = entries.iter().find(|entry| entry.id == upto).cloned() else { return Ok(Vec::new()) };
    let mut messages: Vec<&Entry> = entries
      .iter()
      .filter(|entry| {
        entry.conversation == newest.conversation
          && entry.reply_to.is_none()
          && entry.place <= newest.place
          && (entry.role == Role::Owner || entry.kind == EntryKind::Report)
      })
      .collect();
    messages.sort_by_key(|message| -message.place);
    let reply = |message: &Entry| entries.iter().find(|entry| entry.reply_to == Some(message.id) && entry.id != upto && !entry.removed).cloned();
    let turns = messages.into_iter().map(|message| Turn { reply: if message.id == upto { None } else { reply(message) }, message: message.clone() });
    let turns: Vec<Turn> = turns.take_while(|turn| keep(turn)).collect();
    self.turns_read.store(turns.len(), Ordering::SeqCst);
    Ok(turns)
  }

  async fn record(&self, agent: AgentId, job: JobId) -> Result<Vec<Arc<Recorded>>, PortError> {
    self.reach().await?;
    let events = self.rows.events.lock();
    Ok(events.iter().filter(|event| event.core().agent == agent && event.event.thing() == Some(job.into())).cloned().collect())
  }

  async fn tasks(&self, _: AgentId, _: u32) -> Result<Vec<TaskLine>, PortError> {
    self.reach().await?;
    Ok(Vec::new())
  }

  async fn take(&self, _: AgentId, path: &str, _: usize) -> Result<FileTaken, Result<NotTaken, PortError>> {
    self.reach().await.map_err(Err)?;
    match path.strip_prefix("/workspace/work/") {
      Some(name) => Ok(FileTaken { path: path.to_owned(), bytes: Bytes::from(name.to_owned()), media_type: "text/plain".into() }),
      None => Err(Ok(NotTaken { code: "NOT_FOUND", reason: "there is no such file".into() })),
    }
  }

  async fn stage(&self, _: AgentId, task: TaskId, files: &[FileRef]) -> Result<Vec<String>, PortError> {
    self.reach().await?;
    Ok(files.iter().map(|file| format!("/workspace/work/inputs/{task}/{}", file.name)).collect())
  }

  async fn file(&self, _: AgentId, _: &str, _: usize) -> Result<Option<Bytes>, PortError> {
    self.reach().await?;
    Ok(None)
  }

  async fn keep(&self, _: AgentId, bytes: Bytes) -> Result<String, PortError> {
    self.reach().await?;
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

/// Node number `number`, in its life number `life`.
pub(super) fn holder(number: u128, life: u128) -> Holder {
  Holder { node: NodeId(Uuid::from_u128(number)), process: Uuid::from_u128((number << 32) | life) }
}
