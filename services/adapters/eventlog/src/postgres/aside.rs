//! The embedded log's tables while they belong to no log yet: filled by whoever moves a log here, and this database's log only once its identity is exchanged.

use std::sync::Arc;

use pa_store::ops::log_identity;
use pa_store::pool::{Database, Role, assert_durable};
use sqlx::PgPool;

use super::{KIND, PostgresLog, away, unusable, uuid_of_new_log};
use crate::port::{Identity, LogError};
use crate::record::Partition;

impl PostgresLog {
  /// Opens the tables for filling. What an earlier log left in them goes, unless it is the beginning of what is to come: as many partitions, and no inputs.
  ///
  /// # Errors
  /// [`LogError::Unusable`] when they are this database's log, or when the server may lose acknowledged commits.
  pub async fn aside(database: &Database, partitions: Partition, sealed: bool) -> Result<Arc<Self>, LogError> {
    let pool = database.pool(Role::Log);
    assert_durable(&pool).await.map_err(unusable)?;
    if log_identity::load(&pool).await.map_err(away)?.is_none_or(|known| known.kind == KIND) {
      return Err(LogError::Unusable("the tables of the embedded log are in use".into()));
    }
    if !may_go_on(&pool, partitions).await? {
      sqlx::query("TRUNCATE log.heads, log.inputs, log.events, log.stream")
        .execute(&pool)
        .await
        .map_err(|error| away(pa_store::error::writing("empty the tables of the embedded log")(error)))?;
    }
    let identity = Identity { kind: KIND.to_owned(), id: uuid_of_new_log(), partitions, sealed };
    Self::start(pool, identity, true).await
  }
}

/// Whether the tables hold what an earlier attempt with as many partitions left.
async fn may_go_on(pool: &PgPool, partitions: Partition) -> Result<bool, LogError> {
  let (heads, inputs): (i64, bool) =
    sqlx::query_as("SELECT (SELECT count(*) FROM log.heads WHERE stream = 'events'), EXISTS (SELECT FROM log.heads WHERE stream = 'inputs' AND next > 0)")
      .fetch_one(pool)
      .await
      .map_err(|error| away(pa_store::error::reading("look at the tables of the embedded log")(error)))?;
  Ok(!inputs && heads == i64::from(partitions))
}
