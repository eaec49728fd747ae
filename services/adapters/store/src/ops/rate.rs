//! Rate limits that hold over all processes: one token bucket for each (subject, name).

use sqlx::PgPool;

use crate::Error;
use crate::error::writing;

/// A bucket: how much fits, and how fast it fills again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
  pub name: &'static str,
  pub burst: f64,
  pub per_second: f64,
}

/// Takes one from a subject's bucket; `false` when it is empty. `subject` is an account or an address, at most a few dozen bytes.
pub async fn take(pool: &PgPool, subject: &str, bucket: Bucket) -> Result<bool, Error> {
  // The conflicting row is locked, so callers at once take one after the other.
  let taken: Option<f64> = sqlx::query_scalar(
    "INSERT INTO ops.rate AS rate (subject, name, left_over, at) VALUES ($1, $2, $3 - 1, clock_timestamp())
     ON CONFLICT (subject, name) DO UPDATE
     SET left_over = least($3, rate.left_over + $4 * extract(epoch FROM clock_timestamp() - rate.at)::double precision) - 1, at = clock_timestamp()
     WHERE least($3, rate.left_over + $4 * extract(epoch FROM clock_timestamp() - rate.at)::double precision) >= 1
     RETURNING left_over",
  )
  .bind(subject)
  .bind(bucket.name)
  .bind(bucket.burst)
  .bind(bucket.per_second)
  .fetch_optional(pool)
  .await
  .map_err(writing("count a request"))?;
  Ok(taken.is_some())
}

/// Forgets buckets that nobody touched for a day: they are full again.
pub async fn prune(pool: &PgPool) -> Result<(), Error> {
  sqlx::query("DELETE FROM ops.rate WHERE at < clock_timestamp() - interval '1 day'").execute(pool).await.map_err(writing("prune rate limits"))?;
  Ok(())
}
