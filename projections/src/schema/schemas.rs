//! Making, emptying, locking and dropping read schemas.
//!
//! This is the one place of the crate where a schema's name becomes part of a statement's text: it consists of letters, digits and underscores, and all other text is
//! ours.

use pa_store::{Database, ReadSchema, Role};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use uuid::Uuid;

use super::{Exchange, Indexes, Snapshot, TABLES, exchange, is_index, snapshot, statements};
use crate::commit::statement::short;
use crate::error::{reading, writing};
use crate::{Error, Mark};

/// The read schemas of a database.
#[derive(Clone, Debug)]
pub struct Schemas {
  pool: PgPool,
}

impl Schemas {
  /// Those of `database`; it connects when it is first used.
  pub fn new(database: &Database) -> Self {
    Self { pool: database.pool(Role::Tool) }
  }

  /// Ends its connections.
  pub async fn close(&self) {
    self.pool.close().await;
  }

  /// Says whether a schema is there.
  pub async fn exists(&self, schema: &ReadSchema) -> Result<bool, Error> {
    Ok(schema.exists(&self.pool).await?)
  }

  /// All read schemas, also those of other binaries.
  pub async fn list(&self) -> Result<Vec<ReadSchema>, Error> {
    Ok(ReadSchema::list(&self.pool).await?)
  }

  /// Drops a schema with everything in it.
  pub async fn drop(&self, schema: &ReadSchema) -> Result<(), Error> {
    Ok(schema.drop(&self.pool).await?)
  }

  /// Gives `schema` the place and name of `other`, which is dropped.
  pub async fn replace(&self, schema: &ReadSchema, other: &ReadSchema) -> Result<(), Error> {
    Ok(schema.replace(&self.pool, other).await?)
  }

  /// Creates a schema with all its tables, if it is not there.
  pub async fn create(&self, schema: &ReadSchema, indexes: Indexes) -> Result<(), Error> {
    let mut tx = self.pool.begin().await.map_err(reading("begin to create a read schema"))?;
    // Two processes that start together must not make it twice; the lock goes with the transaction.
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
      .bind(schema.name())
      .execute(&mut *tx)
      .await
      .map_err(reading("wait to create a read schema"))?;
    let there: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1)")
      .bind(schema.name())
      .fetch_one(&mut *tx)
      .await
      .map_err(reading("look for a read schema"))?;
    if !there {
      let mut text = format!("CREATE SCHEMA {name}; SET LOCAL search_path = {name};", name = schema.name());
      text.extend(statements().filter(|statement| indexes == Indexes::Now || !is_index(statement)).flat_map(|statement| [statement, ";"]));
      execute(&mut tx, text, "create a read schema").await?;
    }
    tx.commit().await.map_err(writing("create a read schema"))
  }

  /// Creates the indexes that a schema was made without, and tells the planner what is in it.
  pub async fn finish(&self, schema: &ReadSchema) -> Result<(), Error> {
    let mut tx = self.pool.begin().await.map_err(reading("begin to index a read schema"))?;
    let mut text = format!("SET LOCAL search_path = {};", schema.name());
    text.extend(statements().filter(|statement| is_index(statement)).flat_map(|statement| [statement, ";"]));
    text.extend(TABLES.iter().map(|(table, _)| format!("ANALYZE {table};")));
    execute(&mut tx, text, "index a read schema").await?;
    tx.commit().await.map_err(writing("index a read schema"))
  }

  /// Every partition's position with its log.
  pub async fn positions(&self, schema: &ReadSchema) -> Result<Vec<(u16, i64, Uuid)>, Error> {
    let text = format!("SELECT part, next_position, log_id FROM {}.projection_position ORDER BY part", schema.name());
    let rows: Vec<(i16, i64, Uuid)> =
      sqlx::query_as(AssertSqlSafe(text)).fetch_all(&self.pool).await.map_err(reading("read the positions of the read model"))?;
    rows.into_iter().map(|(part, next_position, log)| Ok((snapshot::partition(part)?, next_position, log))).collect()
  }

  /// One partition's position; the start, where it has none.
  pub async fn position(&self, schema: &ReadSchema, partition: u16) -> Result<Mark, Error> {
    let mut connection = self.pool.acquire().await.map_err(reading("read a position of the read model"))?;
    exchange::position(&mut connection, schema, partition, "").await
  }

  /// Empties a schema so that it is folded anew, and notes why. Nothing happens when a position is not the one that was `seen`: somebody else was faster.
  pub async fn reset(&self, schema: &ReadSchema, seen: &[(u16, i64, Uuid)], because: &str, at_ms: i64) -> Result<bool, Error> {
    let mut tx = self.pool.begin().await.map_err(reading("begin to empty a read schema"))?;
    let name = schema.name();
    let text = format!("SELECT part, next_position, log_id FROM {name}.projection_position ORDER BY part FOR UPDATE");
    let rows: Vec<(i16, i64, Uuid)> =
      sqlx::query_as(AssertSqlSafe(text)).fetch_all(&mut *tx).await.map_err(reading("look at a read schema before emptying it"))?;
    let stands = seen.iter().all(|(partition, position, log)| rows.contains(&(short(*partition), *position, *log)));
    if !stands {
      tx.rollback().await.map_err(reading("leave a read schema as it is"))?;
      return Ok(false);
    }
    let tables: Vec<String> = TABLES.iter().map(|(table, _)| format!("{name}.{table}")).collect();
    execute(&mut tx, format!("TRUNCATE {name}.projection_position, {}", tables.join(", ")), "empty a read schema").await?;
    let text = format!(
      "INSERT INTO {name}.rebuilt (because, at_ms) VALUES ($1, $2) ON CONFLICT (singleton) DO UPDATE SET because = excluded.because, at_ms = excluded.at_ms"
    );
    sqlx::query(AssertSqlSafe(text)).bind(because).bind(at_ms).execute(&mut *tx).await.map_err(reading("note why the read model was emptied"))?;
    tx.commit().await.map_err(writing("empty a read schema"))?;
    Ok(true)
  }

  /// What all tables of a schema hold, as of one instant.
  pub async fn snapshot(&self, schema: &ReadSchema) -> Result<Snapshot, Error> {
    snapshot::take(&self.pool, schema).await
  }

  /// Holds a partition of `into` where it stands, to exchange an agent's rows.
  pub async fn exchange(&self, into: &ReadSchema, partition: u16) -> Result<Exchange, Error> {
    Exchange::begin(&self.pool, into, partition).await
  }

  /// Takes the lock of those who build or compare beside a schema; `None` while another process has it.
  pub async fn try_lock(&self, schema: &ReadSchema) -> Result<Option<Lock>, Error> {
    let mut connection = self.pool.acquire().await.map_err(reading("lock a read schema"))?;
    let locked: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1, 1))")
      .bind(schema.name())
      .fetch_one(&mut *connection)
      .await
      .map_err(reading("lock a read schema"))?;
    Ok(locked.then(|| Lock { connection: connection.detach() }))
  }
}

/// The lock of those who build or compare beside a schema. It goes with its connection, at the latest with the process.
pub struct Lock {
  connection: PgConnection,
}

impl Lock {
  /// Gives it back.
  pub async fn release(self) {
    // Closing ends the session and with it the lock, whatever the server answers.
    if let Err(error) = self.connection.close_hard().await {
      tracing::debug!(%error, "a connection did not close properly");
    }
  }
}

async fn execute(connection: &mut PgConnection, text: String, doing: &'static str) -> Result<(), Error> {
  sqlx::raw_sql(AssertSqlSafe(text)).execute(connection).await.map_err(reading(doing))?;
  Ok(())
}
