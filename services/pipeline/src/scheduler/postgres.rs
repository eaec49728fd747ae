//! The scheduler's timers and its broom in the product: Postgres, the embedded log, the blobs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use pa_blobs::Blobs;
use pa_domain::ids::INSTALLATION;
use pa_domain::{JobId, Timestamp};
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::{EventLog, Stream};
use pa_projections::live::{Committed, Live};
use pa_projections::timers::{self, Timer};
use pa_store::PgPool;
use pa_store::checkpoint::{self, Scope};
use pa_store::lease::{Holder, work};
use pa_store::ops::{rate, tokens, uploads};
use tokio::sync::{Mutex, broadcast};
use uuid::Uuid;

use super::{Keeper, Timers};

/// The kind of the scheduler's lease.
const KIND: &str = "SCHEDULER";
/// The one row of that kind.
const ROW: JobId = JobId(Uuid::from_u128(0x0000_0000_0000_8000_8000_0000_0000_0002));
/// Pieces are heard at once or never.
const PIECES_KEPT: Duration = Duration::from_secs(600);

/// The timers of the read model, and the scheduler's lease.
pub struct PostgresTimers {
  control: PgPool,
  reads: PgPool,
  commits: Mutex<broadcast::Receiver<Arc<Committed>>>,
  holder: Holder,
  /// Not yet asked whether it leads: only a starting process takes back what its node's earlier life held.
  starting: AtomicBool,
}

impl PostgresTimers {
  /// The timers: `control` is the pool of leases, `reads` one of the read model.
  pub fn new(control: PgPool, reads: PgPool, live: &Live, holder: Holder) -> Self {
    Self { control, reads, commits: Mutex::new(live.committed()), holder, starting: AtomicBool::new(true) }
  }
}

#[async_trait]
impl Timers for PostgresTimers {
  async fn leads(&self) -> anyhow::Result<bool> {
    if !work::renew(&self.control, self.holder.process, &[ROW]).await?.is_empty() {
      return Ok(true);
    }
    if self.starting.load(Ordering::Relaxed) {
      for lease in work::of_node(&self.control, self.holder).await?.iter().filter(|lease| lease.kind == KIND) {
        work::forget(&self.control, lease).await?;
      }
      self.starting.store(false, Ordering::Relaxed);
    }
    Ok(!work::claim(&self.control, KIND, self.holder, &[(ROW, INSTALLATION)], &[self.holder.process]).await?.is_empty())
  }

  async fn resign(&self) {
    if let Err(error) = work::release(&self.control, KIND, ROW, self.holder.process).await {
      tracing::debug!(error = &error as &dyn std::error::Error, "the scheduler's lease runs out by itself");
    }
  }

  async fn due(&self, at: Timestamp, limit: u32) -> anyhow::Result<Vec<Timer>> {
    Ok(timers::due(&self.reads, at, limit).await?)
  }

  async fn next_due(&self, after: Timestamp) -> anyhow::Result<Option<Timestamp>> {
    Ok(timers::next_due(&self.reads, after).await?)
  }

  async fn changed(&self) {
    let mut commits = self.commits.lock().await;
    loop {
      match commits.recv().await {
        Ok(committed) if !committed.timers => {}
        Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
        Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
      }
    }
  }
}

/// Clears away in the embedded log, the control tables and the blobs.
pub struct PostgresKeeper {
  pub pool: PgPool,
  /// The embedded log; one on Kafka forgets old inputs and pieces by itself.
  pub log: Option<Arc<PostgresLog>>,
  pub blobs: Arc<Blobs>,
  /// How long inputs are kept.
  pub inputs_kept: Duration,
  /// The fold version whose checkpoints say what deciders still need.
  pub fold_version: i32,
}

#[async_trait]
impl Keeper for PostgresKeeper {
  async fn inputs(&self) -> anyhow::Result<u64> {
    let Some(log) = &self.log else { return Ok(0) };
    let mut cleared = 0;
    for partition in 0..log.identity().await?.partitions {
      let part = i16::try_from(partition).context("a partition's number fits its column")?;
      // Without a checkpoint a decider begins at the first input.
      if let Some(mark) = checkpoint::load(&self.pool, Scope { part, fold_version: self.fold_version }).await? {
        cleared += log.expire(Stream::Inputs, partition, self.inputs_kept, mark.next_input).await?;
      }
    }
    Ok(cleared)
  }

  async fn pieces(&self) -> anyhow::Result<u64> {
    let Some(log) = &self.log else { return Ok(0) };
    let mut cleared = 0;
    for partition in 0..log.identity().await?.partitions {
      let end = log.end(Stream::Pieces, partition).await?;
      cleared += log.expire(Stream::Pieces, partition, PIECES_KEPT, end).await?;
    }
    Ok(cleared)
  }

  async fn uploads(&self, now: Timestamp) -> anyhow::Result<u64> {
    let kept = i64::try_from(pa_blobs::STAGED_FOR.as_millis()).context("a day fits")?;
    let expired = uploads::made_before(&self.pool, now.plus_millis(-kept)).await?;
    for upload in &expired {
      self.blobs.discard(upload.id).await?;
    }
    let ids: Vec<Uuid> = expired.iter().map(|upload| upload.id).collect();
    uploads::forget(&self.pool, &ids).await?;
    let cleared = ids.len() as u64;
    Ok(cleared + self.blobs.expire_staging(now).await?)
  }

  async fn tokens(&self) -> anyhow::Result<u64> {
    let cleared = tokens::prune(&self.pool).await?;
    rate::prune(&self.pool).await?;
    Ok(cleared)
  }
}
