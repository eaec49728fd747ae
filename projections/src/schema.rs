//! Where the read model lives: a schema named by everything that decides its content.
//!
//! The name is a hash of all table files and fold versions, so a binary reads and writes only what it would have built itself, and the switch to another shape is the
//! start of another binary. Nothing here is ever migrated: what does not fit is built anew from the log.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pa_domain::AgentId;
use pa_store::ReadSchema;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use uuid::Uuid;

use crate::commit::Projection;
use crate::error::{reading, writing};
use crate::{Error, accounts, audit, conversation, indicator, queue, settings, system, timers, usage};

/// A folder with its fold version and its tables, in the order in which they are made and hashed.
const FOLDERS: &[(&str, u32, &str)] = &[
  ("system", 1, system::TABLES),
  folder::<accounts::Rows>(),
  folder::<audit::Rows>(),
  folder::<conversation::Rows>(),
  folder::<indicator::Rows>(),
  folder::<queue::Rows>(),
  folder::<settings::Rows>(),
  folder::<timers::Rows>(),
  folder::<usage::Rows>(),
];

/// Tables with the rest of their primary key behind `agent`.
pub const TABLES: &[(&str, &str)] = &[
  ("agent_progress", "ordinal"),
  ("parked", "from_ordinal"),
  ("accounts", "id"),
  ("audit", "ordinal"),
  ("conversations", "id"),
  ("entries", "id"),
  ("attachments", "entry, idx"),
  ("indicator", "changed"),
  ("jobs", "id"),
  ("open_calls", "id"),
  ("settings", "changed"),
  ("timers", "id"),
  ("usage", "job, step"),
];

/// One deletion for each table that holds rows of agents.
pub(crate) const ERASURES: &[&str] = &[
  "DELETE FROM agent_progress t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM parked t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM accounts t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM audit t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM conversations t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM entries t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM attachments t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM indicator t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM jobs t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM open_calls t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM settings t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM timers t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM usage t USING committed WHERE t.agent = ANY(?)",
];

/// Hexadecimal digits of the hash in the name: enough that two shapes never share one.
const HASH_DIGITS: usize = 12;

const fn folder<P: Projection>() -> (&'static str, u32, &'static str) {
  (P::NAME, P::FOLD_VERSION, P::TABLES)
}

static CURRENT: LazyLock<ReadSchema> = LazyLock::new(|| {
  let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
  for (name, version, tables) in FOLDERS {
    context.update(format!("{name}\n{version}\n{}\n", tables.len()).as_bytes());
    context.update(tables.as_bytes());
  }
  let hash = hex::encode(context.finish().as_ref());
  ReadSchema::new(&format!("read_{}", &hash[..HASH_DIGITS])).expect("a prefix and hexadecimal digits are a name")
});

/// Whether a schema gets its secondary indexes with its tables or after it was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
  Now,
  Later,
}

/// Hash and count of one agent's rows in one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableHash {
  pub rows: i64,
  pub hash: String,
}

/// The schema of this binary.
pub fn current() -> ReadSchema {
  CURRENT.clone()
}

/// Creates a schema with all its tables, if it is not there.
pub async fn create(pool: &PgPool, schema: &ReadSchema, indexes: Indexes) -> Result<(), Error> {
  let mut tx = pool.begin().await.map_err(reading("begin to create a read schema"))?;
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

/// Creates the indexes that a schema was made without.
pub async fn create_indexes(pool: &PgPool, schema: &ReadSchema) -> Result<(), Error> {
  let mut tx = pool.begin().await.map_err(reading("begin to index a read schema"))?;
  let mut text = format!("SET LOCAL search_path = {};", schema.name());
  text.extend(statements().filter(|statement| is_index(statement)).flat_map(|statement| [statement, ";"]));
  execute(&mut tx, text, "index a read schema").await?;
  tx.commit().await.map_err(writing("index a read schema"))
}

/// Updates what the planner knows of a schema that was just filled.
pub async fn analyze(pool: &PgPool, schema: &ReadSchema) -> Result<(), Error> {
  let mut connection = pool.acquire().await.map_err(reading("analyze a read schema"))?;
  for (table, _) in TABLES {
    execute(&mut connection, format!("ANALYZE {}.{table}", schema.name()), "analyze a read schema").await?;
  }
  Ok(())
}

/// Empties a schema so that it is folded anew, and notes why. Nothing happens when no position stands at `unless_log`'s log any more: somebody else was faster.
pub async fn reset(pool: &PgPool, schema: &ReadSchema, seen: &[(u16, i64, Uuid)], because: &str, at_ms: i64) -> Result<bool, Error> {
  let mut tx = pool.begin().await.map_err(reading("begin to empty a read schema"))?;
  let name = schema.name();
  let rows: Vec<(i16, i64, Uuid)> =
    sqlx::query_as(AssertSqlSafe(format!("SELECT part, next_position, log_id FROM {name}.projection_position ORDER BY part FOR UPDATE")))
      .fetch_all(&mut *tx)
      .await
      .map_err(reading("look at a read schema before emptying it"))?;
  let stands = seen
    .iter()
    .all(|(partition, position, log)| rows.iter().any(|(part, next, id)| i32::from(*part) == i32::from(*partition) && next == position && id == log));
  if !stands {
    tx.rollback().await.map_err(reading("leave a read schema as it is"))?;
    return Ok(false);
  }
  let tables: Vec<String> = TABLES.iter().map(|(table, _)| format!("{name}.{table}")).collect();
  execute(&mut tx, format!("TRUNCATE {name}.projection_position, {}", tables.join(", ")), "empty a read schema").await?;
  note(&mut tx, schema, because, at_ms).await?;
  tx.commit().await.map_err(writing("empty a read schema"))?;
  Ok(true)
}

/// Notes why a schema was built anew.
pub async fn note(connection: &mut PgConnection, schema: &ReadSchema, because: &str, at_ms: i64) -> Result<(), Error> {
  let text = format!(
    "INSERT INTO {}.rebuilt (because, at_ms) VALUES ($1, $2) ON CONFLICT (singleton) DO UPDATE SET because = excluded.because, at_ms = excluded.at_ms",
    schema.name()
  );
  sqlx::query(AssertSqlSafe(text)).bind(because).bind(at_ms).execute(connection).await.map_err(reading("note why the read model was rebuilt"))?;
  Ok(())
}

/// For each table and agent, the number of rows and a hash over them in the order of their keys, all as of one instant, with the positions at that instant.
pub async fn hashes(pool: &PgPool, schema: &ReadSchema) -> Result<Snapshot, Error> {
  let mut connection = pool.acquire().await.map_err(reading("open a snapshot of the read model"))?;
  let mut tx = connection.begin().await.map_err(reading("open a snapshot of the read model"))?;
  sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").execute(&mut *tx).await.map_err(reading("open a snapshot of the read model"))?;
  let name = schema.name();
  let mut snapshot = Snapshot::default();
  let positions: Vec<(i16, i64, i64, i64, Vec<u8>, Uuid)> =
    sqlx::query_as(AssertSqlSafe(format!("SELECT part, next_position, epoch, seq, last, log_id FROM {name}.projection_position ORDER BY part")))
      .fetch_all(&mut *tx)
      .await
      .map_err(reading("read the positions of a snapshot"))?;
  for (part, next_position, epoch, seq, last, log) in positions {
    let corrupt = || Error::Corrupt { expected: "a position", value: part.to_string() };
    let partition = u16::try_from(part).map_err(|_| corrupt())?;
    let last = last.try_into().map_err(|_| corrupt())?;
    snapshot.positions.insert(partition, (crate::Mark { next_position, epoch, seq, last }, log));
  }
  for (table, key) in TABLES {
    let text = format!("SELECT agent, count(*), md5(string_agg(md5(t::text), '' ORDER BY {key})) FROM {name}.{table} t GROUP BY agent");
    let rows: Vec<(Uuid, i64, String)> = sqlx::query_as(AssertSqlSafe(text)).fetch_all(&mut *tx).await.map_err(reading("hash a table"))?;
    snapshot.tables.insert(table, rows.into_iter().map(|(agent, rows, hash)| (AgentId(agent), TableHash { rows, hash })).collect());
  }
  tx.rollback().await.map_err(reading("close a snapshot of the read model"))?;
  Ok(snapshot)
}

/// What all tables of a schema held at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
  /// Each partition's position, and its log.
  pub positions: BTreeMap<u16, (crate::Mark, Uuid)>,
  pub tables: BTreeMap<&'static str, BTreeMap<AgentId, TableHash>>,
}

/// Puts one agent's rows of `from` in the place of those in `into`, if the agent's partition stands at the same position in both. Says whether it did.
pub async fn exchange_agent(pool: &PgPool, from: &ReadSchema, into: &ReadSchema, agent: AgentId, partition: u16) -> Result<bool, Error> {
  let mut tx = pool.begin().await.map_err(reading("begin to exchange an agent's rows"))?;
  let (from, into) = (from.name(), into.name());
  // The row lock holds the partition's projector up for the moment of the exchange.
  let same = format!(
    "SELECT 1 FROM {into}.projection_position l JOIN {from}.projection_position r ON r.part = l.part AND r.next_position = l.next_position AND r.epoch = l.epoch \
     AND r.seq = l.seq AND r.last = l.last WHERE l.part = $1 FOR UPDATE OF l"
  );
  let stands: Option<i32> = sqlx::query_scalar(AssertSqlSafe(same))
    .bind(crate::commit::statement::short(partition))
    .fetch_optional(&mut *tx)
    .await
    .map_err(reading("compare an agent's positions"))?;
  if stands.is_none() {
    tx.rollback().await.map_err(reading("leave an agent's rows as they are"))?;
    return Ok(false);
  }
  for (table, _) in TABLES {
    for text in [format!("DELETE FROM {into}.{table} WHERE agent = $1"), format!("INSERT INTO {into}.{table} SELECT * FROM {from}.{table} WHERE agent = $1")] {
      sqlx::query(AssertSqlSafe(text)).bind(agent.0).execute(&mut *tx).await.map_err(reading("exchange an agent's rows"))?;
    }
  }
  tx.commit().await.map_err(writing("exchange an agent's rows"))?;
  Ok(true)
}

// Safe throughout: texts are ours, and a schema's name consists of letters, digits and underscores.
async fn execute(connection: &mut PgConnection, text: String, doing: &'static str) -> Result<(), Error> {
  sqlx::raw_sql(AssertSqlSafe(text)).execute(connection).await.map_err(reading(doing))?;
  Ok(())
}

fn statements() -> impl Iterator<Item = &'static str> {
  FOLDERS
    .iter()
    .flat_map(|(_, _, tables)| tables.split_inclusive(";\n").map(|statement| statement.trim().trim_end_matches(';')).filter(|text| !text.is_empty()))
}

fn is_index(statement: &str) -> bool {
  statement.lines().find(|line| !line.is_empty() && !line.starts_with("--")).is_some_and(|line| line.starts_with("CREATE INDEX"))
}
