//! The agent: answers messages and carries tasks out, one execution of a job at a time, by the log's permit. A stage works on one kind of job, so that replies and
//! tasks never wait for each other.
//!
//! Reads: the read model (queue, conversation, settings), `pa.events`
//! Appends: `pa.inputs` (asks and reports of executions, steps and calls)
//! Effects: model requests, tool calls, files laid into a task's workspace, pieces of replies in `pa.stream`
//!
//! A claim chooses who asks and the log grants: `claim` writes a lease row, appends `ExecutionAsked`, and a `turn` works only after it has read the
//! `ExecutionStarted` that its own ask caused. From then on the log decides everything: what the model said is recorded step by step, each call has its own permit,
//! the final text is a fact or refused. A turn that was lost, stopped or cut off drops its model request at once and publishes nothing more; the next execution goes
//! on from the record (`progress`). What this stage knows of the outside stands in [`ports`].

mod asks;
mod claim;
mod inner;
mod models;
pub mod ports;
pub mod postgres;
mod progress;
mod prompt;
mod running;
#[cfg(test)]
mod tests;
mod told;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use pa_domain::execution::JobKind;
use pa_eventlog::appender::Appender;
use pa_eventlog::pieces::Pieces;
use pa_eventlog::tail::Tail;
use pa_store::clock::{Clock, Ids};
use pa_store::lease::Holder;
use pa_tools::Tools;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use asks::Asks;
use claim::LeaseNotes;
use ports::{BootClock, History, WorkQueue};
use running::Running;

pub use models::Models;

/// How long a stopping process waits for its turns to give their jobs back: well inside the ten seconds that service managers give.
const YIELD_WITHIN: Duration = Duration::from_secs(5);

/// What can be set.
#[derive(Clone, Debug)]
pub struct Config {
  /// Replies that this process works on at the same time.
  pub replies_max: usize,
  /// Tasks that this process works on at the same time. Each agent has a limit of its own, which the log keeps (RUN-12).
  pub tasks_max: usize,
  /// Percent of the model's window that history may take.
  pub history_percent: u8,
}

impl Default for Config {
  fn default() -> Self {
    Self { replies_max: 64, tasks_max: 32, history_percent: 40 }
  }
}

/// What the agent stage works with.
pub struct AgentParts {
  pub queue: Arc<dyn WorkQueue>,
  pub history: Arc<dyn History>,
  pub models: Models,
  pub tools: Tools,
  /// With the source `pa/agent`.
  pub appender: Appender,
  pub tail: Arc<Tail>,
  pub pieces: Arc<Pieces>,
  pub clock: Arc<dyn Clock>,
  pub boot: Arc<dyn BootClock>,
  pub ids: Arc<dyn Ids>,
  pub holder: Holder,
  pub config: Config,
}

/// What all tasks of the stage share.
struct Worker {
  queue: Arc<dyn WorkQueue>,
  history: Arc<dyn History>,
  models: Models,
  tools: Tools,
  pieces: Arc<Pieces>,
  clock: Arc<dyn Clock>,
  boot: Arc<dyn BootClock>,
  config: Config,
  asks: Asks,
  running: Arc<Running>,
  leases: LeaseNotes,
  /// Turns, and external calls that outlive theirs.
  tasks: TaskTracker,
  stop: CancellationToken,
}

/// Works on the queue's kind of jobs until `stop`; then gives back what runs and returns.
pub async fn run(parts: AgentParts, stop: CancellationToken) {
  let decisions = parts.tail.subscribe();
  let (leases, lease_writer) = claim::lease_notes(Arc::clone(&parts.queue));
  let worker = Arc::new(Worker {
    asks: Asks::new(parts.appender, parts.tail, parts.ids, parts.holder),
    queue: parts.queue,
    history: parts.history,
    models: parts.models,
    tools: parts.tools,
    pieces: parts.pieces,
    clock: parts.clock,
    boot: parts.boot,
    config: parts.config,
    running: Arc::default(),
    leases,
    tasks: TaskTracker::new(),
    stop: stop.clone(),
  });
  // Whatever goes on beside the turns ends only after the last of them: their leases are renewed and their ends heard until then.
  let over = CancellationToken::new();
  let beside = TaskTracker::new();
  beside.spawn(lease_writer);
  beside.spawn(until(over.clone(), heed(Arc::clone(&worker), decisions)));
  beside.spawn(until(over.clone(), claim::keep_alive(Arc::clone(&worker))));
  beside.spawn(until(stop.clone(), claim::observe(Arc::clone(&worker))));
  claim::work(&worker).await;
  worker.tasks.close();
  if tokio::time::timeout(YIELD_WITHIN, worker.tasks.wait()).await.is_err() {
    tracing::warn!(turns = worker.tasks.len(), "some turns could not be given back in time; others will see their leases run out");
  }
  over.cancel();
  drop(worker);
  beside.close();
  if tokio::time::timeout(YIELD_WITHIN, beside.wait()).await.is_err() {
    tracing::warn!("leases could not be given up in time");
  }
}

impl Worker {
  /// Jobs that this stage works on at the same time.
  fn at_once(&self) -> usize {
    match self.queue.kind() {
      JobKind::Reply => self.config.replies_max,
      JobKind::Task => self.config.tasks_max,
    }
  }
}

async fn until(stop: CancellationToken, task: impl Future<Output = ()>) {
  tokio::select! {
    biased;
    () = stop.cancelled() => {}
    () = task => {}
  }
}

/// Tells running turns what the log says about their jobs.
async fn heed(worker: Arc<Worker>, mut decisions: broadcast::Receiver<Arc<pa_eventlog::reader::Decision>>) {
  loop {
    match decisions.recv().await {
      Ok(decision) => worker.running.heed(&decision),
      Err(broadcast::error::RecvError::Lagged(missed)) => {
        tracing::warn!(missed, "decisions were missed; running turns are looked up");
        claim::look_up(&worker).await;
      }
      Err(broadcast::error::RecvError::Closed) => return,
    }
  }
}
