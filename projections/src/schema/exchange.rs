//! Exchanging one agent's rows for those of a copy.

use pa_domain::AgentId;
use pa_store::ReadSchema;
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Transaction};

use super::TABLES;
use crate::commit::statement::short;
use crate::error::{reading, writing};
use crate::{Error, Mark};

/// From its beginning to its end the agent's partition stands still.
pub struct Exchange {
  tx: Transaction<'static, Postgres>,
  into: ReadSchema,
  mark: Mark,
}

impl Exchange {
  pub(super) async fn begin(pool: &PgPool, into: &ReadSchema, partition: u16) -> Result<Self, Error> {
    let mut tx = pool.begin().await.map_err(reading("begin to exchange an agent's rows"))?;
    // The table and not only the row: who waits for a row has looked at the agents before, and would go on from how they were then.
    let text = format!("LOCK TABLE {}.projection_position IN EXCLUSIVE MODE", into.name());
    sqlx::query(AssertSqlSafe(text)).execute(&mut *tx).await.map_err(reading("hold the positions of the read model"))?;
    let mark = position(&mut tx, into, partition, "FOR UPDATE").await?;
    Ok(Self { tx, into: into.clone(), mark })
  }

  /// Where the partition stands.
  pub fn mark(&self) -> &Mark {
    &self.mark
  }

  /// Puts the agent's rows of `from` in the place of those that there are, and lets the partition go on.
  pub async fn finish(mut self, from: &ReadSchema, agent: AgentId) -> Result<(), Error> {
    let (from, into) = (from.name(), self.into.name());
    for (table, _) in TABLES {
      for text in [format!("DELETE FROM {into}.{table} WHERE agent = $1"), format!("INSERT INTO {into}.{table} SELECT * FROM {from}.{table} WHERE agent = $1")]
      {
        sqlx::query(AssertSqlSafe(text)).bind(agent.0).execute(&mut *self.tx).await.map_err(reading("exchange an agent's rows"))?;
      }
    }
    self.tx.commit().await.map_err(writing("exchange an agent's rows"))
  }
}

pub(super) async fn position(connection: &mut PgConnection, schema: &ReadSchema, partition: u16, lock: &'static str) -> Result<Mark, Error> {
  let text = format!("SELECT next_position, epoch, seq, last FROM {}.projection_position WHERE part = $1 {lock}", schema.name());
  let row: Option<(i64, i64, i64, Vec<u8>)> =
    sqlx::query_as(AssertSqlSafe(text)).bind(short(partition)).fetch_optional(connection).await.map_err(reading("read a position of the read model"))?;
  row.map_or_else(|| Ok(Mark::default()), |(next_position, epoch, seq, last)| mark(next_position, epoch, seq, last))
}

pub(super) fn mark(next_position: i64, epoch: i64, seq: i64, last: Vec<u8>) -> Result<Mark, Error> {
  let last = last.try_into().map_err(|_| Error::Corrupt { expected: "a hash of 32 bytes", value: format!("position {next_position}") })?;
  Ok(Mark { next_position, epoch, seq, last })
}
