//! What an agent leaves at the edge when it is erased: credentials, secrets, presence, leases on its work. Names of uploads are [`super::uploads`]' affair, since bytes
//! belong to them.

use pa_domain::AgentId;
use sqlx::PgPool;

use crate::Error;
use crate::error::writing;

/// Deletes all of it in one statement; may be called again.
pub async fn delete(pool: &PgPool, agent: AgentId) -> Result<(), Error> {
  sqlx::query(
    "WITH tokens AS (DELETE FROM ops.tokens WHERE account = $1),
       secrets AS (DELETE FROM ops.secrets WHERE agent = $1),
       presence AS (DELETE FROM ops.presence WHERE account = $1)
     DELETE FROM ops.leases WHERE agent = $1",
  )
  .bind(agent.0)
  .execute(pool)
  .await
  .map_err(writing("delete what an erased agent leaves"))?;
  Ok(())
}
