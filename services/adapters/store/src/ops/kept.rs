//! The rows that no log holds and that a backup takes along: wrapped keys, sealed secrets, hashes of credentials. Each travels as one line of JSON.
//!
//! All tables are read as of one instant. What is sealed stays sealed: no key is needed here, and none leaves.

use futures::TryStreamExt as _;
use sqlx::PgPool;

use crate::Error;
use crate::error::{reading, writing};

/// A table of such rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
  AgentKeys,
  Secrets,
  Tokens,
}

impl Table {
  /// All of them.
  pub const ALL: [Self; 3] = [Self::AgentKeys, Self::Secrets, Self::Tokens];

  /// The table's name, without its schema.
  pub fn name(self) -> &'static str {
    match self {
      Self::AgentKeys => "agent_keys",
      Self::Secrets => "secrets",
      Self::Tokens => "tokens",
    }
  }

  fn select(self) -> &'static str {
    match self {
      Self::AgentKeys => "SELECT to_jsonb(t)::text FROM ops.agent_keys t ORDER BY agent",
      Self::Secrets => "SELECT to_jsonb(t)::text FROM ops.secrets t ORDER BY id",
      Self::Tokens => "SELECT to_jsonb(t)::text FROM ops.tokens t ORDER BY hash",
    }
  }

  fn insert(self) -> &'static str {
    match self {
      Self::AgentKeys => "INSERT INTO ops.agent_keys SELECT * FROM jsonb_populate_recordset(NULL::ops.agent_keys, $1::jsonb) ON CONFLICT DO NOTHING",
      Self::Secrets => "INSERT INTO ops.secrets SELECT * FROM jsonb_populate_recordset(NULL::ops.secrets, $1::jsonb) ON CONFLICT DO NOTHING",
      Self::Tokens => "INSERT INTO ops.tokens SELECT * FROM jsonb_populate_recordset(NULL::ops.tokens, $1::jsonb) ON CONFLICT DO NOTHING",
    }
  }
}

/// Hands every row of every table to `take`, as they all were at one instant. `E` is what `take` may fail with.
///
/// # Errors
/// The database's failures, or the first of `take`, which ends it.
pub async fn read<E: From<Error>>(pool: &PgPool, mut take: impl FnMut(Table, &str) -> Result<(), E>) -> Result<(), E> {
  let mut tx = pool.begin().await.map_err(reading("open a snapshot of the control tables"))?;
  sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    .execute(&mut *tx)
    .await
    .map_err(reading("open a snapshot of the control tables"))?;
  for table in Table::ALL {
    let mut rows = sqlx::query_scalar::<_, String>(table.select()).fetch(&mut *tx);
    while let Some(row) = rows.try_next().await.map_err(reading("read a control table"))? {
      take(table, &row)?;
    }
  }
  tx.rollback().await.map_err(reading("close a snapshot of the control tables"))?;
  Ok(())
}

/// Writes rows that [`read`] gave; those that are there already stay as they are.
pub async fn write(pool: &PgPool, table: Table, rows: &[String]) -> Result<(), Error> {
  let array = format!("[{}]", rows.join(","));
  sqlx::query(table.insert()).bind(array).execute(pool).await.map_err(writing("write a control table"))?;
  Ok(())
}

#[cfg(test)]
mod tests {
  use pa_domain::AgentId;
  use secrecy::{ExposeSecret as _, SecretString};
  use uuid::Uuid;

  use super::*;
  use crate::keys::{KeyRing, Lookup, MasterKey, secrets};
  use crate::ops::tokens::{self, Kind, NewToken};
  use crate::testing::TestDb;

  #[tokio::test]
  async fn rows_come_back_as_they_were_in_another_database() {
    let (from, to) = (TestDb::new().await, TestDb::new().await);
    let (living, erased) = (AgentId(Uuid::from_u128(1)), AgentId(Uuid::from_u128(2)));
    let key = || MasterKey::from_base64(&SecretString::from("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")).unwrap();
    let ring = KeyRing::new(from.pool.clone(), std::sync::Arc::new(key()));
    let hash = ring.get_or_create(living).await.unwrap().hash_key(b"x");
    ring.erase(erased).await.unwrap();
    secrets::put(&from.pool, &key(), Uuid::from_u128(3), living, &SecretString::from("planted")).await.unwrap();
    let new = NewToken { account: living, kind: Kind::Api, label: "a \"quoted\" label".to_owned(), lives_for_ms: None };
    let token = tokens::create(&from.pool, &new).await.unwrap();
    let mut rows: Vec<(Table, String)> = Vec::new();
    read(&from.pool, |table, row| -> Result<(), Error> {
      rows.push((table, row.to_owned()));
      Ok(())
    })
    .await
    .unwrap();
    assert!(rows.iter().all(|(_, row)| !row.contains("planted")), "what is sealed stays sealed");
    for _ in 0..2 {
      for table in Table::ALL {
        let of: Vec<_> = rows.iter().filter(|(name, _)| *name == table).map(|(_, row)| row.clone()).collect();
        write(&to.pool, table, &of).await.unwrap();
      }
    }
    let ring = KeyRing::new(to.pool.clone(), std::sync::Arc::new(key()));
    assert!(matches!(ring.get(living).await.unwrap(), Lookup::Key(keys) if keys.hash_key(b"x") == hash));
    assert!(matches!(ring.get(erased).await.unwrap(), Lookup::Erased(_)));
    let secret = secrets::get(&to.pool, &key(), Uuid::from_u128(3), living).await.unwrap().unwrap();
    assert_eq!(secret.expose_secret(), "planted");
    assert_eq!(tokens::find(&to.pool, token.expose_secret(), &[Kind::Api]).await.unwrap().unwrap().account, living);
  }
}
