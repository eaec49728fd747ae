//! Which log this database belongs to: written once, when the log is created, and compared at every start.

use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::error::{reading, writing};

/// What must not change silently about a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogIdentity {
  /// `kafka` or `postgres`.
  pub kind: String,
  /// The log's own id: the cluster's and topics' on Kafka, a made one here.
  pub id: Uuid,
  pub partitions: i32,
  /// Values are sealed.
  pub sealed: bool,
}

type Row = (String, Uuid, i32, bool);

fn identity((kind, id, partitions, sealed): Row) -> LogIdentity {
  LogIdentity { kind, id, partitions, sealed }
}

/// Reads the identity; `None` before a log was created.
pub async fn load(pool: &PgPool) -> Result<Option<LogIdentity>, Error> {
  let row: Option<Row> =
    sqlx::query_as("SELECT kind, id, partitions, sealed FROM ops.log_identity").fetch_optional(pool).await.map_err(reading("read the log's identity"))?;
  Ok(row.map(identity))
}

/// Writes the identity if there is none, and answers with the one that stands: the caller compares.
pub async fn create(pool: &PgPool, wanted: &LogIdentity) -> Result<LogIdentity, Error> {
  sqlx::query("INSERT INTO ops.log_identity (kind, id, partitions, sealed) VALUES ($1, $2, $3, $4) ON CONFLICT (singleton) DO NOTHING")
    .bind(&wanted.kind)
    .bind(wanted.id)
    .bind(wanted.partitions)
    .bind(wanted.sealed)
    .execute(pool)
    .await
    .map_err(writing("write the log's identity"))?;
  load(pool).await?.ok_or(Error::Read { doing: "read back the log's identity", source: sqlx::Error::RowNotFound })
}

/// Writes down the mark of the folder of files if none is known, and answers with the one that stands; `None` before a log was created.
pub async fn files(pool: &PgPool, mark: Option<Uuid>) -> Result<Option<Uuid>, Error> {
  if let Some(mark) = mark {
    sqlx::query("UPDATE ops.log_identity SET files = $1 WHERE files IS NULL").bind(mark).execute(pool).await.map_err(writing("write down the files' mark"))?;
  }
  let row: Option<Option<Uuid>> =
    sqlx::query_scalar("SELECT files FROM ops.log_identity").fetch_optional(pool).await.map_err(reading("read the files' mark"))?;
  Ok(row.flatten())
}
