//! An example log for tests, benches and the simulator: decisions with everything in them that a projection shows; and hands that break things.

pub mod story;
pub mod tasks;

use pa_store::{Database, ReadSchema, Role};
use sqlx::AssertSqlSafe;

pub use story::{Decision, Story, Turn, everything};

/// Changes the tables of a read schema by hand and says how many rows that changed.
///
/// # Panics
/// The database refuses it.
pub async fn tamper(database: &Database, schema: &ReadSchema, statement: &str) -> u64 {
  let pool = database.read_pool(Role::Tool, schema);
  let done = sqlx::query(AssertSqlSafe(statement.to_owned())).execute(&pool).await.expect("the statement fits the tables");
  pool.close().await;
  done.rows_affected()
}

/// Ends every other connection to the database, as a restart of the server would.
///
/// # Panics
/// The database refuses it.
pub async fn kill_connections(database: &Database) {
  let pool = database.pool(Role::Tool);
  sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
    .execute(&pool)
    .await
    .expect("the tests own their database");
  pool.close().await;
}
