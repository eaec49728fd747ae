//! The projector: facts into the read model.
//!
//! Reads: `pa.events`
//! Appends: nothing
//! Effects: the tables of this binary's read schema, and signals to those who wait for them
//!
//! One task a partition: wait, read what is there, fold, commit rows and position together, tell. Invariants:
//! - Nothing is skipped: whatever fails is tried again from the position that the database has, until it works or an operator acts. Only what fails for one agent parks
//!   that agent, and the others go on.
//! - A type or schema that this binary does not know stops its partition, with a word about it.
//! - A log that was replaced or cut behind the read model empties the read schema, which is folded anew from 0 and says so.
//! - A commit is never cancelled: a stop is heard between batches.
//! - Several processes may project: each is as ready as any other to go on when one dies or is stopped. Of two that have read the same, one commits; the other tells its
//!   own process what the first has written.
//!
//! Next: [`partition`]; [`build`] makes a schema anew, [`verify`] compares it with the log.

pub mod build;
pub mod error;
pub mod partition;
pub mod status;
#[cfg(test)]
mod tests;
pub mod upto;
pub mod verify;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use pa_eventlog::opener::Opener;
use pa_eventlog::{EventLog, Partition, Stream};
use pa_projections::commit::PostgresStore;
use pa_projections::live::Live;
use pa_projections::schema::{self, Schemas};
use pa_store::clock::Clock;
use pa_store::{Database, ReadSchema, Role};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use error::{Error, Trouble};
pub use partition::{PartitionProjector, Step};
pub use status::{PartitionStatus, Status};

/// The first pause after a failure, and the longest: a database that comes back is met within seconds.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_LONGEST: Duration = Duration::from_secs(2);
/// How often it is measured how far behind the log the read model is, and whether other processes want to be told of commits.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What a projector works with.
#[derive(Clone)]
pub struct Parts {
  pub database: Database,
  pub log: Arc<dyn EventLog>,
  pub opener: Arc<Opener>,
  pub clock: Arc<dyn Clock>,
  pub live: Live,
  /// This process, as `ops.nodes` knows it.
  pub process: Uuid,
}

/// Keeps the read schema of this binary up to date.
pub struct Projector {
  parts: Parts,
  schema: ReadSchema,
  store: Arc<PostgresStore>,
  schemas: Schemas,
  status: Status,
}

impl Projector {
  /// A projector into the schema of this binary; it connects when it runs.
  pub fn new(parts: Parts) -> Self {
    let schema = schema::current();
    let store = Arc::new(PostgresStore::new(&parts.database, &schema));
    let schemas = Schemas::new(&parts.database);
    Self { parts, schema, store, schemas, status: Status::default() }
  }

  /// How far it is; a clone stays up to date.
  pub fn status(&self) -> Status {
    self.status.clone()
  }

  /// Projects every partition until `stop`. A missing read schema is built first.
  ///
  /// # Errors
  /// What waiting does not mend: the log is not usable, or a task panicked.
  pub async fn run(self: Arc<Self>, stop: CancellationToken) -> anyhow::Result<()> {
    let Some(partitions) = self.begin(&stop).await? else { return Ok(()) };
    loop {
      let round = stop.child_token();
      let mut tasks = JoinSet::new();
      for partition in 0..partitions {
        tasks.spawn(Arc::clone(&self).keep_up(partition, round.clone()));
      }
      tasks.spawn(Arc::clone(&self).look(partitions, round.clone()));
      let mut replaced = None;
      while let Some(ended) = tasks.join_next().await {
        // Any task that ends ends the round: at a stop, when the log was replaced, or by a panic.
        round.cancel();
        replaced = replaced.or(ended.context("a projector task panicked")?);
      }
      let Some(reason) = replaced else { break };
      self.begin_again(&reason, &stop).await;
      if stop.is_cancelled() {
        break;
      }
    }
    self.store.close().await;
    self.schemas.close().await;
    Ok(())
  }

  /// Waits for log and database, and builds a missing schema; `None` when it was stopped meanwhile.
  async fn begin(&self, stop: &CancellationToken) -> anyhow::Result<Option<Partition>> {
    let mut pause = PAUSE_FIRST;
    while !stop.is_cancelled() {
      let error = match self.try_begin().await {
        Ok(partitions) => return Ok(Some(partitions)),
        Err(error) => error,
      };
      if !matches!(error.trouble(), Trouble::Passing) {
        return Err(error).context("begin to project");
      }
      tracing::warn!(error = &error as &dyn std::error::Error, "the projector waits for log and database");
      rest(&mut pause, stop).await;
    }
    Ok(None)
  }

  async fn try_begin(&self) -> Result<Partition, Error> {
    let partitions = self.parts.log.identity().await?.partitions;
    if !self.schemas.exists(&self.schema).await? {
      let built = build::build_missing(&self.parts, &self.schemas, &self.schema).await?;
      tracing::info!(schema = self.schema.name(), facts = built.facts, "built the read schema from the beginning of the log");
    }
    for parked in self.store.parked().await? {
      tracing::error!(agent.id = %parked.agent, from = parked.from, error = %parked.error, "an agent's read model stands still: once the cause is gone, rebuild it");
    }
    self.status.expect(partitions);
    Ok(partitions)
  }

  /// Projects one partition until `stop`. A reason to fold everything anew is the answer.
  async fn keep_up(self: Arc<Self>, partition: Partition, stop: CancellationToken) -> Option<String> {
    let mut pause = PAUSE_FIRST;
    while !stop.is_cancelled() {
      let Err(error) = self.project(partition, &stop, &mut pause).await else { return None };
      self.status.failed(partition, &error);
      match error.trouble() {
        Trouble::Passing => {
          tracing::warn!(partition, error = &error as &dyn std::error::Error, "projecting pauses");
          self.parts.live.forget();
          rest(&mut pause, &stop).await;
        }
        Trouble::Replaced => return Some(error.to_string()),
        Trouble::Final => {
          tracing::error!(partition, error = &error as &dyn std::error::Error, "the read model of a partition stands still");
          self.status.stopped(partition);
          stop.cancelled().await;
        }
      }
    }
    None
  }

  async fn project(&self, partition: Partition, stop: &CancellationToken, pause: &mut Duration) -> Result<(), Error> {
    let mut projector = PartitionProjector::open(Arc::clone(&self.parts.log), Arc::clone(&self.parts.opener), Arc::clone(&self.store), partition).await?;
    let end = self.parts.log.end(Stream::Events, partition).await?;
    self.status.end(partition, end);
    // Where it begins, another process may have come to while nothing was told here.
    self.store.tell(&self.parts.live).await?;
    // The first look is taken at once: nobody may have appended for a long time.
    let mut at_end = false;
    loop {
      if at_end {
        tokio::select! {
          () = stop.cancelled() => return Ok(()),
          () = projector.wait() => {}
        }
      }
      if stop.is_cancelled() {
        return Ok(());
      }
      let done = projector.step().await?;
      *pause = PAUSE_FIRST;
      let reached = projector.mark().next_position;
      self.status.reached(partition, reached, reached >= end || done == Step::Idle);
      at_end = match done {
        Step::Committed(committed) => {
          self.parts.live.tell(committed);
          true
        }
        Step::Idle => true,
        Step::Stale => {
          // The position was read anew before, so that this tells all that lies behind it; what lies after it is read by the next step.
          self.store.tell(&self.parts.live).await?;
          false
        }
      };
    }
  }

  /// Measures and looks around, every [`LOOK_EVERY`].
  async fn look(self: Arc<Self>, partitions: Partition, stop: CancellationToken) -> Option<String> {
    let pool = self.parts.database.pool(Role::Tool);
    while !stop.is_cancelled() {
      for partition in 0..partitions {
        if let Ok(end) = self.parts.log.end(Stream::Events, partition).await {
          self.status.end(partition, end);
        }
      }
      match pa_store::ops::nodes::alive(&pool).await {
        Ok(nodes) => self.store.hint_others(nodes.iter().any(|node| node.holder.process != self.parts.process)),
        Err(error) => tracing::debug!(%error, "could not look for other processes"),
      }
      tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(LOOK_EVERY) => {}
      }
    }
    pool.close().await;
    None
  }

  /// Empties the schema because the log is another one, until that is done or `stop`.
  async fn begin_again(&self, reason: &str, stop: &CancellationToken) {
    tracing::error!(reason, "the log is not the one that the read model was folded from: folding it anew from the beginning");
    let mut pause = PAUSE_FIRST;
    while !stop.is_cancelled() {
      match build::begin_again(&self.schemas, &self.schema, reason, self.parts.clock.now()).await {
        Ok(()) => break,
        Err(error) => {
          tracing::warn!(error = &error as &dyn std::error::Error, "the read schema can't be emptied now");
          rest(&mut pause, stop).await;
        }
      }
    }
    self.status.begin_again();
    self.parts.live.forget();
  }
}

async fn rest(pause: &mut Duration, stop: &CancellationToken) {
  tokio::select! {
    () = stop.cancelled() => {}
    () = tokio::time::sleep(*pause) => {}
  }
  *pause = (*pause * 2).min(PAUSE_LONGEST);
}
