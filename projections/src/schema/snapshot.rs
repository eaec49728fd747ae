//! Hashes over all tables of a schema, as of one instant.

use std::collections::BTreeMap;

use pa_domain::AgentId;
use pa_store::ReadSchema;
use sqlx::{AssertSqlSafe, Connection as _, PgPool};
use uuid::Uuid;

use super::TABLES;
use super::exchange::mark;
use crate::error::reading;
use crate::{Error, Mark};

/// What all tables of a schema held at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
  /// Each partition's position, and its log.
  pub positions: BTreeMap<u16, (Mark, Uuid)>,
  pub tables: BTreeMap<&'static str, BTreeMap<AgentId, TableHash>>,
}

/// One agent's rows in one table: how many, and a hash over them in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableHash {
  pub rows: i64,
  pub hash: String,
}

pub(super) async fn take(pool: &PgPool, schema: &ReadSchema) -> Result<Snapshot, Error> {
  let mut connection = pool.acquire().await.map_err(reading("open a snapshot of the read model"))?;
  let mut tx = connection.begin().await.map_err(reading("open a snapshot of the read model"))?;
  sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").execute(&mut *tx).await.map_err(reading("open a snapshot of the read model"))?;
  let name = schema.name();
  let mut snapshot = Snapshot::default();
  let text = format!("SELECT part, next_position, epoch, seq, last, log_id FROM {name}.projection_position ORDER BY part");
  let positions: Vec<(i16, i64, i64, i64, Vec<u8>, Uuid)> =
    sqlx::query_as(AssertSqlSafe(text)).fetch_all(&mut *tx).await.map_err(reading("read the positions of a snapshot"))?;
  for (part, next_position, epoch, seq, last, log) in positions {
    snapshot.positions.insert(partition(part)?, (mark(next_position, epoch, seq, last)?, log));
  }
  for (table, key) in TABLES {
    let text = format!("SELECT agent, count(*), md5(string_agg(md5(t::text), '' ORDER BY {key})) FROM {name}.{table} t GROUP BY agent");
    let rows: Vec<(Uuid, i64, String)> = sqlx::query_as(AssertSqlSafe(text)).fetch_all(&mut *tx).await.map_err(reading("hash a table"))?;
    snapshot.tables.insert(table, rows.into_iter().map(|(agent, rows, hash)| (AgentId(agent), TableHash { rows, hash })).collect());
  }
  tx.rollback().await.map_err(reading("close a snapshot of the read model"))?;
  Ok(snapshot)
}

pub(super) fn partition(part: i16) -> Result<u16, Error> {
  u16::try_from(part).map_err(|_| Error::Corrupt { expected: "a partition", value: part.to_string() })
}
