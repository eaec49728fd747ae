//! What the gateway and the command line read of accounts.

use pa_domain::account::Role;
use pa_domain::ids::INSTALLATION;
use pa_domain::{AgentId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::code::Code as _;
use crate::error::reading;

/// Accounts that are listed: a self-hosted installation of a household or a company.
const ACCOUNTS_MAX: i64 = 10_000;

/// An account; its agent has the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
  pub id: AgentId,
  pub name: String,
  pub role: Role,
  pub added: Timestamp,
  pub changed: i64,
}

#[derive(sqlx::FromRow)]
struct AccountRow {
  id: Uuid,
  name: String,
  role: String,
  added_ms: i64,
  changed: i64,
}

impl AccountRow {
  fn take(self) -> Result<Account, Error> {
    Ok(Account { id: AgentId(self.id), name: self.name, role: Role::parse(&self.role)?, added: Timestamp(self.added_ms), changed: self.changed })
  }
}

/// All accounts, the oldest first.
pub async fn all(pool: &PgPool) -> Result<Vec<Account>, Error> {
  let rows: Vec<AccountRow> = sqlx::query_as("SELECT id, name, role, added_ms, changed FROM accounts WHERE agent = $1 ORDER BY changed, id LIMIT $2")
    .bind(INSTALLATION.0)
    .bind(ACCOUNTS_MAX)
    .fetch_all(pool)
    .await
    .map_err(reading("read the accounts"))?;
  rows.into_iter().map(AccountRow::take).collect()
}

/// One account.
pub async fn one(pool: &PgPool, id: AgentId) -> Result<Option<Account>, Error> {
  let row: Option<AccountRow> = sqlx::query_as("SELECT id, name, role, added_ms, changed FROM accounts WHERE agent = $1 AND id = $2")
    .bind(INSTALLATION.0)
    .bind(id.0)
    .fetch_optional(pool)
    .await
    .map_err(reading("read an account"))?;
  row.map(AccountRow::take).transpose()
}
