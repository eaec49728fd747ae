//! The read model in Postgres.
//!
//! A batch is one statement that commits by itself: no transaction is ever left open, and nothing waits between two round trips. Its connections do not wait for the
//! disk (rows and position are lost together, and folded again), keep their plans, and serve nothing else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use pa_domain::AgentId;
use pa_store::pool::Kept;
use pa_store::{Database, Disposition, ReadSchema, Role};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use std::time::Duration;
use uuid::Uuid;

use super::statement::{Parts, short};
use super::together::{LARGE, Together};
use super::{Batch, Loaded, Mark, Outcome, ReadStore};
use crate::Error;
use crate::error::{reading, writing};
use crate::live::{Live, look};
use crate::system::write::{self, Move};
use crate::system::{Parked, parked, progress_of_many};

/// Statements that are written at the same time: large batches one each, the small ones together. More would cost the two cores of a small machine more than they gain.
pub const WRITERS: u32 = 2;
/// Loading and probing beside the writers.
const OTHERS: u32 = 1;
/// A dead server is noticed by the projector's own retries.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Texts are few and their arrays short, so a plan made for every call would cost more than the call. Every part finds its rows by their primary key, whatever a planner
/// thinks of a table that was empty when the plan was made.
const PLANNING: [(&str, &str); 5] =
  [("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off"), ("enable_hashjoin", "off"), ("enable_mergejoin", "off"), ("jit", "off")];

/// The tables of one read schema.
#[derive(Debug)]
pub struct PostgresStore {
  pool: PgPool,
  /// The writers' own.
  kept: Kept,
  hint: AtomicBool,
  together: Together,
}

impl PostgresStore {
  /// A store over the tables of `schema`; it connects when it is first used.
  pub fn new(database: &Database, schema: &ReadSchema) -> Self {
    let options = database.connect_options(Role::Projector, Some(schema)).options(PLANNING);
    let pool = PgPoolOptions::new()
      .max_connections(WRITERS + OTHERS)
      .min_connections(0)
      .acquire_timeout(ACQUIRE_TIMEOUT)
      .test_before_acquire(false)
      .connect_lazy_with(options);
    let kept = Kept::new(pool.clone(), WRITERS as usize);
    Self { pool, kept, hint: AtomicBool::new(false), together: Together::default() }
  }

  /// Whether commits tell other processes; only while there are some, because a NOTIFY makes commits wait for each other.
  pub fn hint_others(&self, hint: bool) {
    self.hint.store(hint, Ordering::Relaxed);
  }

  /// Tells `live` how far the agents are that somebody waits for: when another process has moved a partition, nobody else here says so.
  ///
  /// # Errors
  /// The read model can't be read.
  pub async fn tell(&self, live: &Live) -> Result<(), Error> {
    look(&self.pool, live).await
  }

  /// The agents that are parked.
  ///
  /// # Errors
  /// The read model can't be read.
  pub async fn parked(&self) -> Result<Vec<Parked>, Error> {
    parked(&self.pool).await
  }

  /// Ends its connections.
  pub async fn close(&self) {
    self.kept.give_back();
    self.pool.close().await;
  }

  /// Moves partitions and writes rows, in one statement.
  pub(super) async fn write(&self, moves: &[Move], parts: Parts<'_>) -> Result<Outcome, Error> {
    let hint = moves.first().map(|first| first.partition).filter(|_| self.hint.load(Ordering::Relaxed));
    let statement = write::end(write::moving(moves).with(parts), hint);
    let mut connection = self.kept.acquire().await.map_err(reading("reach the read model"))?;
    let moved = statement.fetch(&mut connection).await.map_err(of_write).inspect_err(|_| self.kept.give_back())?;
    self.kept.keep(connection);
    Ok(if moved == 1 { Outcome::Committed } else { Outcome::Stale })
  }

  /// Names the log of every partition's position: for a schema whose content was folded from it.
  pub async fn log_of(&self, partition: u16) -> Result<Option<Uuid>, Error> {
    sqlx::query_scalar("SELECT log_id FROM projection_position WHERE part = $1")
      .bind(short(partition))
      .fetch_optional(&self.pool)
      .await
      .map_err(reading("read which log a partition was projected from"))
  }
}

#[async_trait]
impl ReadStore for PostgresStore {
  async fn load(&self, partition: u16, log: Uuid) -> Result<Loaded, Error> {
    let start = Mark::default();
    sqlx::query(
      "INSERT INTO projection_position (part, next_position, epoch, seq, last, log_id) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (part) DO NOTHING",
    )
    .bind(short(partition))
    .bind(start.next_position)
    .bind(start.epoch)
    .bind(start.seq)
    .bind(start.last.as_slice())
    .bind(log)
    .execute(&self.pool)
    .await
    .map_err(writing("begin a partition of the read model"))?;
    let (next_position, epoch, seq, last, log): (i64, i64, i64, Vec<u8>, Uuid) =
      sqlx::query_as("SELECT next_position, epoch, seq, last, log_id FROM projection_position WHERE part = $1")
        .bind(short(partition))
        .fetch_one(&self.pool)
        .await
        .map_err(reading("read the position of a partition"))?;
    let last = last.try_into().map_err(|_| Error::Corrupt { expected: "a hash of 32 bytes", value: format!("position of partition {partition}") })?;
    let parked: Vec<(Uuid, i64)> = sqlx::query_as("SELECT agent, from_ordinal FROM parked WHERE part = $1")
      .bind(short(partition))
      .fetch_all(&self.pool)
      .await
      .map_err(reading("read the parked agents of a partition"))?;
    let parked: BTreeMap<_, _> = parked.into_iter().map(|(agent, from)| (AgentId(agent), from)).collect();
    Ok(Loaded { mark: Mark { next_position, epoch, seq, last }, log, parked })
  }

  async fn commit(&self, partition: u16, expected: &Mark, next: &Mark, batch: &Batch) -> Result<Outcome, Error> {
    let moves = Move { partition, expected: expected.clone(), next: next.clone(), before: batch.before().collect() };
    if batch.facts() >= LARGE {
      return self.write(&[moves], batch.parts()).await;
    }
    self.together.commit(self, moves, batch).await
  }

  async fn progress(&self, agents: &[AgentId]) -> Result<BTreeMap<AgentId, i64>, Error> {
    Ok(progress_of_many(&self.pool, agents).await?.into_iter().collect())
  }

  async fn probe(&self, batch: &Batch) -> Result<Option<String>, Error> {
    let mut tx = self.pool.begin().await.map_err(reading("begin to try a batch"))?;
    let tried = write::unguarded(batch.parts()).fetch(&mut tx).await;
    match tried.map_err(of_write) {
      Ok(_) => {
        tx.rollback().await.map_err(reading("take a tried batch back"))?;
        Ok(None)
      }
      Err(Error::Refused(error)) => {
        tx.rollback().await.map_err(reading("take a refused batch back"))?;
        Ok(Some(said(&error)))
      }
      Err(error) => Err(error),
    }
  }
}

/// A refusal of the rows is told apart from a refusal of us: it names data (22), a constraint (23) or a limit (54).
fn of_write(source: sqlx::Error) -> Error {
  let code = source.as_database_error().and_then(sqlx::error::DatabaseError::code).map(std::borrow::Cow::into_owned);
  let error = pa_store::Error::Write { doing: "write a batch of the read model", source };
  let of_rows = code.is_some_and(|code| ["22", "23", "54"].iter().any(|class| code.starts_with(class)));
  if of_rows && error.disposition() == Disposition::Fail { Error::Refused(error) } else { Error::Store(error) }
}

/// What the server said, without the row: its message may hold content, its code and constraint do not.
fn said(error: &pa_store::Error) -> String {
  use std::error::Error as _;
  let source = error.source().and_then(|source| source.downcast_ref::<sqlx::Error>()).and_then(sqlx::Error::as_database_error);
  source.map_or_else(
    || error.to_string(),
    |database| {
      let code = database.code().unwrap_or_default();
      let table = database.table().unwrap_or("a table");
      let constraint = database.constraint().unwrap_or("no constraint");
      format!("the database refused a row of {table} (SQLSTATE {code}, {constraint})")
    },
  )
}
