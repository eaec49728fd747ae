//! Secrets that an input names by id, sealed by the master key and written before that input.

use pa_domain::AgentId;
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, MasterKey};
use crate::error::{reading, writing};

/// Keeps a secret of an agent under an id that the caller made. The same id again changes nothing.
pub async fn put(pool: &PgPool, master: &MasterKey, id: Uuid, agent: AgentId, secret: &SecretString) -> Result<(), Error> {
  let sealed = master.seal(&place(id, agent), secret.expose_secret().as_bytes());
  sqlx::query("INSERT INTO ops.secrets (id, agent, sealed) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING")
    .bind(id)
    .bind(agent.0)
    .bind(sealed)
    .execute(pool)
    .await
    .map_err(writing("keep a secret"))?;
  Ok(())
}

/// Reads a secret of an agent; another agent's is not found.
pub async fn get(pool: &PgPool, master: &MasterKey, id: Uuid, agent: AgentId) -> Result<Option<SecretString>, Error> {
  let sealed: Option<Vec<u8>> = sqlx::query_scalar("SELECT sealed FROM ops.secrets WHERE id = $1 AND agent = $2")
    .bind(id)
    .bind(agent.0)
    .fetch_optional(pool)
    .await
    .map_err(reading("read a secret"))?;
  let Some(sealed) = sealed else { return Ok(None) };
  let opened = master.open(&place(id, agent), &sealed).and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(Error::SecretDamaged { id })?;
  Ok(Some(SecretString::from(opened)))
}

/// Checks that the master key opens a sealed secret, without giving it out: for rows that are not in a database yet.
///
/// # Errors
/// [`Error::SecretDamaged`] names it.
pub fn check_sealed(master: &MasterKey, id: Uuid, agent: AgentId, sealed: &[u8]) -> Result<(), Error> {
  master.open(&place(id, agent), sealed).map(|_| ()).ok_or(Error::SecretDamaged { id })
}

/// Deletes a secret of an agent.
pub async fn delete(pool: &PgPool, id: Uuid, agent: AgentId) -> Result<(), Error> {
  sqlx::query("DELETE FROM ops.secrets WHERE id = $1 AND agent = $2").bind(id).bind(agent.0).execute(pool).await.map_err(writing("delete a secret"))?;
  Ok(())
}

/// Deletes all secrets of an agent.
pub async fn delete_all(pool: &PgPool, agent: AgentId) -> Result<(), Error> {
  sqlx::query("DELETE FROM ops.secrets WHERE agent = $1").bind(agent.0).execute(pool).await.map_err(writing("delete an agent's secrets"))?;
  Ok(())
}

fn place(id: Uuid, agent: AgentId) -> Vec<u8> {
  [b"pa/secret/v1".as_slice(), id.as_bytes(), agent.0.as_bytes()].concat()
}
