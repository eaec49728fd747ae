//! From the facts of a partition to rows: fold, merge, and one statement that writes all of it together with the partition's position.
//!
//! [`Batch`] folds decisions into the rows of every projection, merged by primary key in memory (two hits on one key in one `ON CONFLICT` are an error). A
//! [`ReadStore`] commits a batch if the partition's position is still the expected one. Invariants:
//! - Rows and position move together or not at all; a commit on another position than the expected one changes nothing and says [`Outcome::Stale`].
//! - What a batch does to the rows does not depend on where batches begin and end.
//! - An agent's facts are written in the order of their ordinals and without a gap, judged by the tables: they may have been built anew since they were last looked at.
//! - An agent whose facts can't be folded or written is parked from that decision on, in the commit that meets it; the other agents go on.
//!
//! Next: [`batch`], then [`postgres`].

pub mod batch;
pub mod fact;
pub mod memory;
pub mod merged;
pub mod postgres;
pub mod statement;
pub mod together;

use std::collections::BTreeMap;

use async_trait::async_trait;
use pa_domain::AgentId;
use uuid::Uuid;

pub use batch::{Batch, Before, Folded, fold};
pub use fact::{Fact, Mark};
pub use memory::MemoryStore;
pub use postgres::PostgresStore;
pub use statement::{Argument, Parts, Statement};

use crate::Error;

/// One question of the page: how facts become changes of rows, and how those are merged and written.
pub trait Projection: Default {
  /// The folder's name.
  const NAME: &'static str;
  /// Raise it with any change of what `fold` or `merge` makes of a fact: the read schema gets another name and is built anew.
  const FOLD_VERSION: u32;
  /// The folder's tables.
  const TABLES: &'static str;
  /// A change of a row.
  type Change;

  /// What a fact changes. Pure.
  fn fold(fact: &Fact<'_>) -> Vec<Self::Change>;
  /// Merges a change of one of `agent`'s rows into what the batch holds already.
  fn merge(&mut self, agent: AgentId, change: Self::Change);
  /// Forgets what the batch holds of an agent.
  fn forget(&mut self, agent: AgentId);
  /// Adds the parts of the statement that write the merged rows.
  fn write<'a>(&'a self, parts: &mut Parts<'a>);
}

/// Where a partition's reader resumes and who is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
  pub mark: Mark,
  /// The log that the partition was projected from.
  pub log: Uuid,
  /// Parked agents of this partition with the ordinal from which on their facts are skipped.
  pub parked: BTreeMap<AgentId, i64>,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
  /// Rows and position are written.
  Committed,
  /// The position is another one than expected (somebody else advanced it), or an agent of the batch stands elsewhere than the batch takes for granted. Nothing was
  /// written; what is in the tables must be looked at anew.
  Stale,
}

/// Where the read model of a partition is kept.
#[async_trait]
pub trait ReadStore: Send + Sync + 'static {
  /// The partition's position and parked agents; a partition that was never projected starts at 0 of the log `log`.
  async fn load(&self, partition: u16, log: Uuid) -> Result<Loaded, Error>;

  /// Writes a batch and moves the partition from `expected` to `next`, in one transaction, if it still stands at `expected`.
  ///
  /// # Errors
  /// [`Error::Refused`] when the rows themselves can't be written; an unknown fate is told by [`Error::disposition`], and [`ReadStore::load`] tells what happened.
  async fn commit(&self, partition: u16, expected: &Mark, next: &Mark, batch: &Batch) -> Result<Outcome, Error>;

  /// The newest ordinal of each of these agents; those without one are left out.
  async fn progress(&self, agents: &[AgentId]) -> Result<BTreeMap<AgentId, i64>, Error>;

  /// Tries whether a batch's rows could be written, and writes nothing; `Some` says why not.
  async fn probe(&self, batch: &Batch) -> Result<Option<String>, Error>;
}
