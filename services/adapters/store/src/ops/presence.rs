//! When an account was last seen.

use pa_domain::{AgentId, Timestamp};
use sqlx::PgPool;

use crate::Error;
use crate::error::{reading, writing};

/// Notes that an account is here now. A caller does this at most once a minute for an account: nobody needs it finer.
pub async fn seen(pool: &PgPool, account: AgentId) -> Result<(), Error> {
  sqlx::query(
    "INSERT INTO ops.presence (account, seen_at) VALUES ($1, clock_timestamp())
     ON CONFLICT (account) DO UPDATE SET seen_at = excluded.seen_at",
  )
  .bind(account.0)
  .execute(pool)
  .await
  .map_err(writing("note presence"))?;
  Ok(())
}

/// When an account was last seen.
pub async fn last_seen(pool: &PgPool, account: AgentId) -> Result<Option<Timestamp>, Error> {
  let millis: Option<i64> = sqlx::query_scalar("SELECT (extract(epoch FROM seen_at) * 1000)::bigint FROM ops.presence WHERE account = $1")
    .bind(account.0)
    .fetch_optional(pool)
    .await
    .map_err(reading("read presence"))?;
  Ok(millis.map(Timestamp))
}
