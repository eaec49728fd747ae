//! Names of uploads until they are attached to a message; their bytes lie in `staging/` until then.

use pa_domain::{AgentId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::error::{reading, writing};

/// How many expired uploads one sweep takes.
const EXPIRED_MAX: i64 = 500;

/// An upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
  pub id: Uuid,
  pub agent: AgentId,
  pub name: String,
  pub media_type: String,
  pub size: i64,
  /// Of the content.
  pub sha256: [u8; 32],
}

type Row = (Uuid, Uuid, String, String, i64, Vec<u8>);

fn upload((id, agent, name, media_type, size, sha256): Row) -> Upload {
  let sha256 = sha256.try_into().expect("the table's check allows 32 bytes only");
  Upload { id, agent: AgentId(agent), name, media_type, size, sha256 }
}

/// Writes down an upload whose bytes are staged.
pub async fn put(pool: &PgPool, upload: &Upload) -> Result<(), Error> {
  sqlx::query("INSERT INTO ops.uploads (id, agent, name, media_type, size, sha256) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING")
    .bind(upload.id)
    .bind(upload.agent.0)
    .bind(&upload.name)
    .bind(&upload.media_type)
    .bind(upload.size)
    .bind(upload.sha256.as_slice())
    .execute(pool)
    .await
    .map_err(writing("write down an upload"))?;
  Ok(())
}

/// Reads an agent's uploads; those of others, and expired ones, are missing from the answer.
pub async fn get(pool: &PgPool, agent: AgentId, ids: &[Uuid]) -> Result<Vec<Upload>, Error> {
  let rows: Vec<Row> = sqlx::query_as("SELECT id, agent, name, media_type, size, sha256 FROM ops.uploads WHERE agent = $1 AND id = ANY($2)")
    .bind(agent.0)
    .bind(ids)
    .fetch_all(pool)
    .await
    .map_err(reading("read uploads"))?;
  Ok(rows.into_iter().map(upload).collect())
}

/// Some uploads of an agent; none, when it has none.
pub async fn of(pool: &PgPool, agent: AgentId) -> Result<Vec<Upload>, Error> {
  let rows: Vec<Row> = sqlx::query_as("SELECT id, agent, name, media_type, size, sha256 FROM ops.uploads WHERE agent = $1 LIMIT $2")
    .bind(agent.0)
    .bind(EXPIRED_MAX)
    .fetch_all(pool)
    .await
    .map_err(reading("read an agent's uploads"))?;
  Ok(rows.into_iter().map(upload).collect())
}

/// Uploads made before an instant, oldest first.
pub async fn made_before(pool: &PgPool, instant: Timestamp) -> Result<Vec<Upload>, Error> {
  let rows: Vec<Row> = sqlx::query_as(
    "SELECT id, agent, name, media_type, size, sha256 FROM ops.uploads
     WHERE created_at < to_timestamp($1::double precision / 1000) ORDER BY created_at LIMIT $2",
  )
  .bind(instant.0)
  .bind(EXPIRED_MAX)
  .fetch_all(pool)
  .await
  .map_err(reading("look for expired uploads"))?;
  Ok(rows.into_iter().map(upload).collect())
}

/// Forgets uploads: attached (the event has the name now) or expired.
pub async fn forget(pool: &PgPool, ids: &[Uuid]) -> Result<(), Error> {
  sqlx::query("DELETE FROM ops.uploads WHERE id = ANY($1)").bind(ids).execute(pool).await.map_err(writing("forget uploads"))?;
  Ok(())
}
