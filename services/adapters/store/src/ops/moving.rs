//! What moving a log, and bringing one back, does to the control tables.
//!
//! Invariants
//! - The row of `ops.log_identity` is exchanged last: until then everything goes on with the old log, and a half copy is a copy of nothing.
//! - What was derived from the old log goes in the same transaction, so nobody folds on with the positions of another log.
//! - A restore that was broken off stands as [`RESTORING`] in that row, which no start takes for a log.

use sqlx::{Connection as _, PgConnection, PgPool};
use uuid::Uuid;

use super::log_identity::{self, LogIdentity};
use crate::Error;
use crate::error::{reading, writing};

/// The kind of log that a database has while a backup is brought back into it.
pub const RESTORING: &str = "unfinished-restore";

/// The one who moves a log of this database now.
pub struct Claim {
  connection: PgConnection,
}

/// Claims the moving; `None` while another process moves. The claim goes with its connection, at the latest with the process.
pub async fn claim(pool: &PgPool) -> Result<Option<Claim>, Error> {
  let mut connection = pool.acquire().await.map_err(reading("claim the moving of the log"))?;
  let claimed: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended('pa log moving', 0))")
    .fetch_one(&mut *connection)
    .await
    .map_err(reading("claim the moving of the log"))?;
  Ok(claimed.then(|| Claim { connection: connection.detach() }))
}

impl Claim {
  /// Gives it back.
  pub async fn release(self) {
    // Closing ends the session and with it the claim, whatever the server answers.
    if let Err(error) = self.connection.close_hard().await {
      tracing::debug!(%error, "a connection did not close properly");
    }
  }
}

/// Makes `new` the log of this database in the place of `old`. `false`, and nothing is changed, when another log than `old` stands there.
pub async fn switch(pool: &PgPool, old: &LogIdentity, new: &LogIdentity) -> Result<bool, Error> {
  let mut tx = pool.begin().await.map_err(reading("begin to exchange the log"))?;
  let done = sqlx::query("UPDATE ops.log_identity SET kind = $2, id = $3, partitions = $4, sealed = $5, created_at = now() WHERE id = $1")
    .bind(old.id)
    .bind(&new.kind)
    .bind(new.id)
    .bind(new.partitions)
    .bind(new.sealed)
    .execute(&mut *tx)
    .await
    .map_err(reading("exchange the log's identity"))?;
  if done.rows_affected() != 1 {
    tx.rollback().await.map_err(reading("leave the log as it is"))?;
    return Ok(false);
  }
  sqlx::query("TRUNCATE ops.decider_checkpoint, ops.entity_state, ops.input_keys, ops.input_causes, ops.partition_lease")
    .execute(&mut *tx)
    .await
    .map_err(reading("drop what was derived from the old log"))?;
  tx.commit().await.map_err(writing("exchange the log"))?;
  Ok(true)
}

/// Begins to restore the backup `id` into an empty database, or goes on with it. `false`: the database belongs to an installation, or to another backup.
pub async fn begin_restore(pool: &PgPool, id: Uuid) -> Result<bool, Error> {
  let used: bool = sqlx::query_scalar(
    "SELECT NOT EXISTS (SELECT FROM ops.log_identity) AND (EXISTS (SELECT FROM ops.agent_keys) OR EXISTS (SELECT FROM ops.tokens) OR EXISTS (SELECT FROM log.events))",
  )
  .fetch_one(pool)
  .await
  .map_err(reading("look whether the database is empty"))?;
  if used {
    return Ok(false);
  }
  let wanted = restoring(id);
  Ok(log_identity::create(pool, &wanted).await? == wanted)
}

/// The identity that a database has while the backup `id` is brought back into it.
pub fn restoring(id: Uuid) -> LogIdentity {
  LogIdentity { kind: RESTORING.to_owned(), id, partitions: 1, sealed: true }
}

#[cfg(test)]
mod tests {
  use super::*;
  use crate::ops::log_identity::{create, load};
  use crate::testing::TestDb;

  fn identity(kind: &str, id: u128) -> LogIdentity {
    LogIdentity { kind: kind.to_owned(), id: Uuid::from_u128(id), partitions: 2, sealed: true }
  }

  async fn checkpoints(db: &TestDb) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM ops.decider_checkpoint").fetch_one(&db.pool).await.unwrap()
  }

  #[tokio::test]
  async fn the_log_is_exchanged_together_with_what_was_derived_from_it() {
    let db = TestDb::new().await;
    let (old, new) = (identity("postgres", 1), identity("kafka", 2));
    create(&db.pool, &old).await.unwrap();
    let checkpoint = "INSERT INTO ops.decider_checkpoint (part, fold_version, next_input, next_position, epoch, seq, last) VALUES (0, 1, 5, 9, 1, 1, $1)";
    sqlx::query(checkpoint).bind(vec![0_u8; 32]).execute(&db.pool).await.unwrap();
    assert!(!switch(&db.pool, &new, &old).await.unwrap(), "another log stands there");
    assert_eq!((load(&db.pool).await.unwrap(), checkpoints(&db).await), (Some(old.clone()), 1));
    assert!(switch(&db.pool, &old, &new).await.unwrap());
    assert_eq!((load(&db.pool).await.unwrap(), checkpoints(&db).await), (Some(new), 0));
  }

  #[tokio::test]
  async fn one_at_a_time_moves_a_log() {
    let db = TestDb::new().await;
    let first = claim(&db.pool).await.unwrap().expect("nobody moves it");
    assert!(claim(&db.pool).await.unwrap().is_none());
    first.release().await;
    // The server notices a closed connection in its own time.
    let again = async {
      while claim(&db.pool).await.unwrap().is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
      }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), again).await.expect("it is free again");
  }

  #[tokio::test]
  async fn a_restore_begins_in_an_empty_database_and_goes_on_in_its_own() {
    let db = TestDb::new().await;
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    assert!(begin_restore(&db.pool, one).await.unwrap());
    assert!(begin_restore(&db.pool, one).await.unwrap(), "it goes on");
    assert!(!begin_restore(&db.pool, two).await.unwrap(), "another backup");
    let used = TestDb::new().await;
    sqlx::query("INSERT INTO ops.agent_keys (agent, key_id, wrapped) VALUES ($1, 1, 'x')").bind(one).execute(&used.pool).await.unwrap();
    assert!(!begin_restore(&used.pool, one).await.unwrap(), "keys of an installation");
  }
}
