//! The decider: the only writer of facts, one per partition, fenced in the log.
//!
//! Reads: `pa.inputs`, `pa.events`
//! Appends: `pa.events` (decisions, announcements), `pa.inputs` (what `route` names)
//! Effects: makes a new agent's keys, deletes what an erased agent leaves
//!
//! Each partition has a task that opens a term (`term`), as long as the partition is in the share of this process (`share`): it takes the lease row and writes its new
//! epoch there, loads the checkpoint, reads to the end, announces, and decides (`lead`) only after it has read exactly that announcement as accepted. What it decides, it decides from state that it read back itself, plus its own decisions
//! of this term that it has not read back yet. Anything that doesn't fit ends the term; a used (epoch, seq) never gets other bytes. Every clause here closes a hole
//! that the model check of the protocol found; the simulator switches them off one by one and must then fail.

mod agents;
mod agree;
pub mod beside;
mod checkpoint;
mod compose;
mod due;
mod known_keys;
mod lead;
mod repeats;
mod share;
pub mod store;
mod term;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pa_domain::AgentId;
use pa_eventlog::appender::Appender;
use pa_eventlog::compose::Composer;
use pa_eventlog::opener::Opener;
use pa_eventlog::seal::Keys;
use pa_eventlog::{EventLog, Partition};
use pa_store::clock::{Clock, Ids};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use term::Status;

/// An own record that is not read back for so long counts as of unknown fate (PR-04).
pub const READ_BACK_MAX: Duration = Duration::from_secs(5);
/// Records read back after which a checkpoint is written.
const CHECKPOINT_RECORDS: u64 = 1_000;
/// Time after which a checkpoint is written if there is anything new.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);
/// Inputs in one batch. Also what can be in flight at the most, and so what a start after an unclean end decides one at a time.
const BATCH_INPUTS: usize = 256;
/// Records in one append, well inside the log's own limit with one whole decision to spare.
const BATCH_RECORDS: usize = 512;
/// Bytes in one append.
const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// Pause before another try when the database or the log is away, or when a partition can't go on.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// A key within this time of the log is a repeat (30 days); what must hold longer is state.
const REPEAT_WINDOW_MILLIS: i64 = 30 * 24 * 3600 * 1000;

/// What happens outside the log when an agent was erased: its keys, blobs and folders go.
pub trait Eraser: Send + Sync + 'static {
  /// Erases for ever; may be called again.
  fn erase(&self, agent: AgentId) -> BoxFuture<'_, anyhow::Result<()>>;
}

/// Makes the keys of an agent that is about to exist.
pub trait KeyMaker: Send + Sync + 'static {
  /// Makes the keys unless they exist.
  fn make(&self, agent: AgentId) -> BoxFuture<'_, anyhow::Result<()>>;
}

/// What a decider works with.
#[derive(Clone)]
pub struct Parts {
  pub log: Arc<dyn EventLog>,
  pub opener: Arc<Opener>,
  pub keys: Arc<dyn Keys>,
  pub key_maker: Arc<dyn KeyMaker>,
  pub eraser: Arc<dyn Eraser>,
  pub composer: Composer,
  /// For what `route` names.
  pub appender: Appender,
  pub store: Arc<dyn store::DeciderStore>,
  pub clock: Arc<dyn Clock>,
  pub ids: Arc<dyn Ids>,
}

/// Why a term ended.
#[derive(Debug)]
pub enum End {
  /// Open a new one, if the row is still this process's own.
  NewTerm(&'static str),
  /// Another process is to lead the partition: it was given back.
  Yielded,
  /// Another decider was announced, or the lease is gone: stop, and wait until the lease has run out.
  StepDown(&'static str),
  /// The process is to end; everything was given back.
  Stopped,
  /// The checkpoint is not of this log: drop it and start from the beginning.
  LogChanged,
  /// The database or the log is away; try again.
  Away(anyhow::Error),
  /// This partition can't go on until somebody mends it; try again, and say so.
  Fatal(anyhow::Error),
}

impl End {
  fn new_term(why: &'static str) -> Self {
    Self::NewTerm(why)
  }
}

impl From<pa_store::Error> for End {
  fn from(error: pa_store::Error) -> Self {
    match error.disposition() {
      // A lease or checkpoint statement of unknown fate: its effect is looked at anew by the next term.
      pa_store::Disposition::Retry | pa_store::Disposition::Unknown => Self::Away(error.into()),
      pa_store::Disposition::Fail => Self::Fatal(error.into()),
    }
  }
}

impl From<pa_eventlog::LogError> for End {
  fn from(error: pa_eventlog::LogError) -> Self {
    match error {
      pa_eventlog::LogError::Away(_) => Self::Away(error.into()),
      pa_eventlog::LogError::Unusable(_) => Self::Fatal(error.into()),
    }
  }
}

impl From<pa_eventlog::reader::Error> for End {
  fn from(error: pa_eventlog::reader::Error) -> Self {
    match error {
      pa_eventlog::reader::Error::Changed(_) => Self::LogChanged,
      error if error.is_passing() => Self::Away(error.into()),
      error => Self::Fatal(error.into()),
    }
  }
}

impl From<pa_eventlog::opener::Error> for End {
  fn from(error: pa_eventlog::opener::Error) -> Self {
    match error {
      pa_eventlog::opener::Error::Keys(_) => Self::Away(error.into()),
      error => Self::Fatal(error.into()),
    }
  }
}

/// Runs the deciders of `partitions` until `stop`; beside other processes it leads its share of them. Each partition's [`Status`] is watched by readiness.
pub fn run(
  parts: &Parts,
  partitions: impl Iterator<Item = Partition>,
  tracker: &TaskTracker,
  stop: &CancellationToken,
) -> Vec<(Partition, watch::Receiver<Status>)> {
  let partitions: Vec<Partition> = partitions.collect();
  let share = Arc::new(share::Share::whole(partitions.len()));
  tracker.spawn(share::balance(parts.clone(), partitions.clone(), Arc::clone(&share), stop.clone()));
  let start = |partition| {
    let (status, watched) = watch::channel(Status::CatchingUp);
    tracker.spawn(term::run(parts.clone(), partition, Arc::clone(&share), stop.clone(), status));
    (partition, watched)
  };
  partitions.into_iter().map(start).collect()
}
