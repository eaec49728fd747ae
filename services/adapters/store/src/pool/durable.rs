//! The check that the server keeps what it acknowledges.

use sqlx::PgPool;

use crate::Error;
use crate::error::reading;

/// Fails unless the server flushes every commit of this pool to disk before it answers: `fsync`, `full_page_writes` and `synchronous_commit` are on.
///
/// # Errors
/// [`Error::NotDurable`] names the setting.
pub async fn assert_durable(pool: &PgPool) -> Result<(), Error> {
  let settings: Vec<(String, String)> =
    sqlx::query_as("SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name")
      .fetch_all(pool)
      .await
      .map_err(reading("read the server's durability settings"))?;
  for (setting, value) in settings {
    // With a synchronous standby remote_apply is stricter than on.
    let durable = value == "on" || (setting == "synchronous_commit" && value == "remote_apply");
    if !durable {
      return Err(Error::NotDurable { setting, value });
    }
  }
  Ok(())
}
