//! What a decider keeps outside the log: its lease and epoch, its checkpoint. All of it is derived or decides nothing by itself.

use async_trait::async_trait;
use pa_domain::AgentId;
use pa_store::PgPool;
use pa_store::checkpoint::{self, InputKey, Loaded, Mark, Outcome, Scope};
use pa_store::lease::{Holder, partition};
use pa_store::ops::nodes;
use uuid::Uuid;

pub use pa_store::checkpoint::Write;
pub use pa_store::lease::partition::{Note, Take, Term};

/// The decider's rows; Postgres in the product, memory in the simulator.
#[async_trait]
pub trait DeciderStore: Send + Sync + 'static {
  /// Takes the partition if it is free, its lease has run out, or, for a `starting` process, an earlier process of the same node holds it.
  async fn take(&self, part: i16, starting: bool) -> Result<Take, pa_store::Error>;
  /// The epoch of a new term: one more than the row's and `above`; `None` when the row is no longer this process's own.
  async fn new_term(&self, part: i16, above: i64) -> Result<Option<i64>, pa_store::Error>;
  /// Renews the lease; `false` when the row is no longer this process's own.
  async fn renew(&self, part: i16) -> Result<bool, pa_store::Error>;
  /// Gives the partition back cleanly.
  async fn give_back(&self, part: i16, epoch: i64) -> Result<bool, pa_store::Error>;
  /// Says that this process lives although its lease was taken: no death to count.
  async fn lost_alive(&self, part: i16) -> Result<(), pa_store::Error>;
  /// Notes the input that is decided next, before it is decided; `false` when the lease is lost. How many processes died under this same note before, the
  /// [`Term`] of the take says.
  async fn note(&self, part: i16, epoch: i64, input: Uuid, quarantined_before: i32) -> Result<bool, pa_store::Error>;
  /// Takes the note away.
  async fn clear_note(&self, part: i16, epoch: i64) -> Result<bool, pa_store::Error>;
  /// The checkpoint's mark.
  async fn mark(&self, part: i16) -> Result<Option<Mark>, pa_store::Error>;
  /// Stored states of things (a nil thing is the root), with the checkpoint's position of that same instant.
  async fn things(&self, part: i16, wanted: &[(AgentId, Uuid)]) -> Result<Loaded, pa_store::Error>;
  /// Recorded idempotency keys.
  async fn keys(&self, part: i16, wanted: &[(AgentId, &str, [u8; 32])]) -> Result<Vec<InputKey>, pa_store::Error>;
  /// The first bytes of every recorded key of these agents, at most `max` for each.
  async fn keys_of(&self, part: i16, agents: &[AgentId], max: i64) -> Result<Vec<(AgentId, [u8; 8])>, pa_store::Error>;
  /// The cause of the latest unmarked decision on each input position below `position`, downwards.
  async fn causes_below(&self, part: i16, position: i64, limit: i64) -> Result<Vec<(i64, Uuid)>, pa_store::Error>;
  /// Writes a checkpoint in one guarded, synchronous transaction.
  async fn write(&self, write: Write) -> Result<Outcome, pa_store::Error>;
  /// Drops the checkpoint with its things and keys.
  async fn drop_checkpoint(&self, part: i16) -> Result<(), pa_store::Error>;
  /// Forgets an erased agent's stored things and keys; its root stays, which is its tombstone now or with the next checkpoint.
  async fn forget_agent(&self, part: i16, agent: AgentId) -> Result<(), pa_store::Error>;
  /// Whether the last holder gave the partition back, or nobody ever held it.
  async fn is_given_back(&self, _part: i16) -> Result<bool, pa_store::Error> {
    Ok(true)
  }
  /// Says that this process can lead; how many processes can, this one included. `None` where nobody shares partitions.
  async fn can_lead(&self) -> Result<Option<usize>, pa_store::Error> {
    Ok(None)
  }
  /// This process, as lease rows name it.
  fn process(&self) -> Uuid;
  /// The fold version of the kept states.
  fn fold_version(&self) -> i32;
}

/// The decider's rows in Postgres.
pub struct PostgresStore {
  pool: PgPool,
  leases: PgPool,
  holder: Holder,
  fold_version: i32,
  /// It writes beside the decider that holds the partitions.
  beside: bool,
}

impl PostgresStore {
  /// The rows of this process, for the state of fold version `fold_version`. Renewals go by `leases`, where no checkpoint is before them.
  pub fn new(pool: PgPool, leases: PgPool, holder: Holder, fold_version: i32) -> Self {
    Self { pool, leases, holder, fold_version, beside: false }
  }

  /// The rows of a fold version that no decider keeps yet, while one of another version decides: nothing here takes a lease.
  pub fn beside(pool: PgPool, holder: Holder, fold_version: i32) -> Self {
    Self { leases: pool.clone(), pool, holder, fold_version, beside: true }
  }

  fn scope(&self, part: i16) -> Scope {
    Scope { part, fold_version: self.fold_version }
  }
}

#[async_trait]
impl DeciderStore for PostgresStore {
  async fn take(&self, part: i16, starting: bool) -> Result<Take, pa_store::Error> {
    partition::take(&self.pool, part, self.holder, starting).await
  }

  async fn new_term(&self, part: i16, above: i64) -> Result<Option<i64>, pa_store::Error> {
    partition::new_term(&self.pool, part, self.holder.process, above).await
  }

  async fn renew(&self, part: i16) -> Result<bool, pa_store::Error> {
    Ok(!partition::renew(&self.leases, self.holder.process, &[part]).await?.is_empty())
  }

  async fn give_back(&self, part: i16, epoch: i64) -> Result<bool, pa_store::Error> {
    partition::give_back(&self.pool, part, self.holder.process, epoch).await
  }

  async fn lost_alive(&self, part: i16) -> Result<(), pa_store::Error> {
    partition::lost_alive(&self.pool, part, self.holder.process).await.map(|_| ())
  }

  async fn note(&self, part: i16, epoch: i64, input: Uuid, quarantined_before: i32) -> Result<bool, pa_store::Error> {
    partition::note(&self.pool, part, self.holder.process, epoch, input, quarantined_before).await
  }

  async fn clear_note(&self, part: i16, epoch: i64) -> Result<bool, pa_store::Error> {
    partition::clear_note(&self.pool, part, self.holder.process, epoch).await
  }

  async fn mark(&self, part: i16) -> Result<Option<Mark>, pa_store::Error> {
    checkpoint::load(&self.pool, self.scope(part)).await
  }

  async fn things(&self, part: i16, wanted: &[(AgentId, Uuid)]) -> Result<Loaded, pa_store::Error> {
    checkpoint::things(&self.pool, self.scope(part), wanted).await
  }

  async fn keys(&self, part: i16, wanted: &[(AgentId, &str, [u8; 32])]) -> Result<Vec<InputKey>, pa_store::Error> {
    checkpoint::keys(&self.pool, self.scope(part), wanted).await
  }

  async fn keys_of(&self, part: i16, agents: &[AgentId], max: i64) -> Result<Vec<(AgentId, [u8; 8])>, pa_store::Error> {
    checkpoint::keys_of(&self.pool, self.scope(part), agents, max).await
  }

  async fn causes_below(&self, part: i16, position: i64, limit: i64) -> Result<Vec<(i64, Uuid)>, pa_store::Error> {
    checkpoint::causes_below(&self.pool, self.scope(part), position, limit).await
  }

  async fn write(&self, write: Write) -> Result<Outcome, pa_store::Error> {
    if self.beside { checkpoint::write_beside(&self.pool, write).await } else { checkpoint::write(&self.pool, write).await }
  }

  async fn drop_checkpoint(&self, part: i16) -> Result<(), pa_store::Error> {
    checkpoint::drop(&self.pool, self.scope(part)).await
  }

  async fn forget_agent(&self, part: i16, agent: AgentId) -> Result<(), pa_store::Error> {
    checkpoint::forget_agent(&self.pool, self.scope(part), agent).await
  }

  async fn is_given_back(&self, part: i16) -> Result<bool, pa_store::Error> {
    partition::is_given_back(&self.pool, part).await
  }

  async fn can_lead(&self) -> Result<Option<usize>, pa_store::Error> {
    nodes::can_lead(&self.leases, self.holder.process).await.map(Some)
  }

  fn process(&self) -> Uuid {
    self.holder.process
  }

  fn fold_version(&self) -> i32 {
    self.fold_version
  }
}
