//! Read schemas: the one audited place where a name becomes part of a statement's text.
//!
//! A name is `read_` and lower-case hexadecimal digits, with an optional suffix of lower-case letters for a scratch copy. Nothing else is ever put into a
//! statement, so no quoting is needed and none can be wrong.

use sqlx::{AssertSqlSafe, PgPool};

use crate::Error;
use crate::error::{reading, writing};

const PREFIX: &str = "read_";
/// Postgres cuts identifiers at 63 bytes.
const NAME_BYTES_MAX: usize = 63;

/// A schema with the tables of one read model.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReadSchema(String);

impl ReadSchema {
  /// Takes `read_<hex>` or `read_<hex>_<letters>`.
  pub fn new(name: &str) -> Option<Self> {
    let rest = name.strip_prefix(PREFIX)?;
    let (hash, suffix) = rest.split_once('_').unwrap_or((rest, "x"));
    let hash_fits = !hash.is_empty() && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let suffix_fits = !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_lowercase());
    (hash_fits && suffix_fits && name.len() <= NAME_BYTES_MAX).then(|| Self(name.to_owned()))
  }

  /// The schema's name.
  pub fn name(&self) -> &str {
    &self.0
  }

  /// A scratch copy beside this one; `suffix` is lower-case letters.
  pub fn beside(&self, suffix: &str) -> Option<Self> {
    let hash = self.0.split('_').nth(1)?;
    Self::new(&format!("{PREFIX}{hash}_{suffix}"))
  }

  /// Creates the schema; one that is there already stays as it is.
  pub async fn create(&self, pool: &PgPool) -> Result<(), Error> {
    self.execute(pool, format!("CREATE SCHEMA IF NOT EXISTS {}", self.0), "create a read schema").await
  }

  /// Drops the schema with everything in it.
  pub async fn drop(&self, pool: &PgPool) -> Result<(), Error> {
    self.execute(pool, format!("DROP SCHEMA IF EXISTS {} CASCADE", self.0), "drop a read schema").await
  }

  /// Gives this schema another's place: the other is dropped and this one takes its name, in one transaction.
  pub async fn replace(&self, pool: &PgPool, other: &Self) -> Result<(), Error> {
    // Statements sent in one message are one transaction.
    let statement = format!("DROP SCHEMA IF EXISTS {other} CASCADE; ALTER SCHEMA {this} RENAME TO {other}", other = other.0, this = self.0);
    self.execute(pool, statement, "exchange a read schema").await
  }

  /// Says whether the schema exists.
  pub async fn exists(&self, pool: &PgPool) -> Result<bool, Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1)")
      .bind(&self.0)
      .fetch_one(pool)
      .await
      .map_err(reading("look for a read schema"))
  }

  /// All read schemas of the database, by name.
  pub async fn list(pool: &PgPool) -> Result<Vec<Self>, Error> {
    let names: Vec<String> = sqlx::query_scalar("SELECT nspname::text FROM pg_catalog.pg_namespace WHERE nspname LIKE 'read\\_%' ORDER BY nspname")
      .fetch_all(pool)
      .await
      .map_err(reading("list the read schemas"))?;
    Ok(names.iter().filter_map(|name| Self::new(name)).collect())
  }

  async fn execute(&self, pool: &PgPool, statement: String, doing: &'static str) -> Result<(), Error> {
    // Safe: the text is ours and the name has passed `new`.
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(pool).await.map_err(writing(doing))?;
    Ok(())
  }
}

#[cfg(test)]
mod tests {
  use super::ReadSchema;

  #[test]
  fn only_names_of_read_schemas_are_taken() {
    for name in ["read_0a1b", "read_ff_scratch"] {
      assert_eq!(ReadSchema::new(name).unwrap().name(), name);
    }
    for name in
      ["", "read_", "ops", "read_xyz", "read_0a; DROP SCHEMA ops", "read_0A", "read_0a_", "read_0a_b_c", "read_0a_B", &format!("read_{}", "a".repeat(60))]
    {
      assert_eq!(ReadSchema::new(name), None, "{name}");
    }
    assert_eq!(ReadSchema::new("read_0a").unwrap().beside("scratch").unwrap().name(), "read_0a_scratch");
  }
}
