//! The agents' keys: one wrapped data key an agent, opened once and then kept in memory.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest;
use moka::sync::Cache;
use pa_domain::{AgentId, Timestamp};
use sqlx::PgPool;

use super::{AgentKeys, Error, KEY_BYTES, MasterKey, random};
use crate::error::{reading, writing};

/// A few hundred bytes each; every agent of a process that is in use at the same time should fit.
const CACHED_MAX: u64 = 10_000;
/// Another process may erase an agent: after this time a key that nobody uses is looked up again. Readers drop it at once when they read the erasure.
const CACHED_FOR: Duration = Duration::from_mins(10);
/// An agent has one data key; a later one would get the next number.
const FIRST_KEY: i32 = 1;

/// What is known of an agent's key.
#[derive(Clone, Debug)]
pub enum Lookup {
  Key(Arc<AgentKeys>),
  /// The agent was erased at this instant: its records are to be skipped.
  Erased(Timestamp),
  /// There is none, and no erasure either: whoever reads must stop.
  Missing,
}

#[derive(Clone)]
enum Source {
  Database {
    pool: PgPool,
    master: Arc<MasterKey>,
  },
  /// Keys made from the agent id: for tests and the simulator, which have no database.
  Fixed,
}

/// The agents' keys; cloning shares the memory.
#[derive(Clone)]
pub struct KeyRing {
  source: Source,
  cache: Cache<AgentId, Lookup>,
  /// Agents whose erasure was read here and whose keys may still be in the database.
  ending: Arc<Mutex<HashSet<AgentId>>>,
}

impl std::fmt::Debug for KeyRing {
  fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    f.write_str("KeyRing")
  }
}

impl KeyRing {
  /// Keys from `ops.agent_keys`.
  pub fn new(pool: PgPool, master: Arc<MasterKey>) -> Self {
    Self { source: Source::Database { pool, master }, cache: cache(), ending: Arc::default() }
  }

  /// Keys made from nothing but the agent's id, without a database; they protect nothing.
  pub fn fixed() -> Self {
    Self { source: Source::Fixed, cache: cache(), ending: Arc::default() }
  }

  /// The agent's keys if they are in memory; never waits.
  pub fn cached(&self, agent: AgentId) -> Option<Arc<AgentKeys>> {
    match self.cache.get(&agent)? {
      Lookup::Key(keys) => Some(keys),
      Lookup::Erased(_) | Lookup::Missing => None,
    }
  }

  /// The agent's keys.
  pub async fn get(&self, agent: AgentId) -> Result<Lookup, Error> {
    if let Some(found) = self.cache.get(&agent) {
      return Ok(found);
    }
    let found = match &self.source {
      Source::Database { pool, master } => load(pool, master, agent).await?,
      Source::Fixed => Lookup::Key(Arc::new(fixed(agent))),
    };
    match found {
      // What is missing now may be made at any moment.
      Lookup::Missing => {}
      Lookup::Erased(_) => self.remember_erased(agent, &found),
      Lookup::Key(_) => {
        let ending = self.ending();
        if !ending.contains(&agent) && !matches!(self.cache.get(&agent), Some(Lookup::Erased(_))) {
          self.cache.insert(agent, found.clone());
        }
      }
    }
    Ok(found)
  }

  /// The agent's keys, made if there are none; of two callers at once both get the same.
  ///
  /// # Errors
  /// [`Error::Erased`] for an erased agent: an erased agent gets no key again.
  pub async fn get_or_create(&self, agent: AgentId) -> Result<Arc<AgentKeys>, Error> {
    for _ in 0..2 {
      match self.get(agent).await? {
        Lookup::Key(keys) => return Ok(keys),
        Lookup::Erased(_) => return Err(Error::Erased { agent }),
        Lookup::Missing => self.create(agent).await?,
      }
    }
    // Created, and gone again although rows are never deleted: somebody emptied the table in between.
    Err(Error::Database(crate::Error::Read { doing: "read back a new agent key", source: sqlx::Error::RowNotFound }))
  }

  /// Ends an agent's key for ever and answers with the instant that counts (of the first erasure).
  pub async fn erase(&self, agent: AgentId) -> Result<Timestamp, Error> {
    let erased_at = match &self.source {
      Source::Database { pool, .. } => erase(pool, agent).await?,
      Source::Fixed => Timestamp(0),
    };
    self.remember_erased(agent, &Lookup::Erased(erased_at));
    Ok(erased_at)
  }

  /// Drops an agent's keys from memory, for who has read its erasure. They may be in the database for a moment more; what is found there is used and not kept.
  pub fn forget(&self, agent: AgentId) {
    let mut ending = self.ending();
    if !matches!(self.cache.get(&agent), Some(Lookup::Erased(_))) {
      ending.insert(agent);
      self.cache.invalidate(&agent);
    }
  }

  fn remember_erased(&self, agent: AgentId, erased: &Lookup) {
    let mut ending = self.ending();
    ending.remove(&agent);
    self.cache.insert(agent, erased.clone());
  }

  fn ending(&self) -> MutexGuard<'_, HashSet<AgentId>> {
    // A set is whole at any moment, so what a panic left is good.
    self.ending.lock().unwrap_or_else(PoisonError::into_inner)
  }

  /// Checks that the master key fits this database, so that a wrong one stops the start.
  pub async fn check(&self) -> Result<(), Error> {
    let Source::Database { pool, master } = &self.source else { return Ok(()) };
    let newest: Option<uuid::Uuid> = sqlx::query_scalar("SELECT agent FROM ops.agent_keys WHERE wrapped IS NOT NULL ORDER BY created_at DESC LIMIT 1")
      .fetch_optional(pool)
      .await
      .map_err(reading("look for an agent key"))?;
    if let Some(agent) = newest {
      load(pool, master, AgentId(agent)).await?;
    }
    Ok(())
  }

  async fn create(&self, agent: AgentId) -> Result<(), Error> {
    let Source::Database { pool, master } = &self.source else { return Ok(()) };
    let wrapped = master.seal(&place(agent, FIRST_KEY), &random::<KEY_BYTES>());
    sqlx::query("INSERT INTO ops.agent_keys (agent, key_id, wrapped) VALUES ($1, $2, $3) ON CONFLICT (agent) DO NOTHING")
      .bind(agent.0)
      .bind(FIRST_KEY)
      .bind(wrapped)
      .execute(pool)
      .await
      .map_err(writing("create an agent key"))?;
    Ok(())
  }
}

fn cache() -> Cache<AgentId, Lookup> {
  Cache::builder().max_capacity(CACHED_MAX).time_to_live(CACHED_FOR).build()
}

async fn load(pool: &PgPool, master: &MasterKey, agent: AgentId) -> Result<Lookup, Error> {
  let row: Option<(i32, Option<Vec<u8>>, Option<i64>)> =
    sqlx::query_as("SELECT key_id, wrapped, (extract(epoch FROM erased_at) * 1000)::bigint FROM ops.agent_keys WHERE agent = $1")
      .bind(agent.0)
      .fetch_optional(pool)
      .await
      .map_err(reading("read an agent key"))?;
  let Some((id, wrapped, erased_at)) = row else { return Ok(Lookup::Missing) };
  let Some(wrapped) = wrapped else { return Ok(Lookup::Erased(Timestamp(erased_at.unwrap_or_default()))) };
  let data_key = master.open(&place(agent, id), &wrapped).ok_or(Error::MasterKeyWrong { agent })?;
  let data_key = data_key.as_slice().try_into().map_err(|_| Error::MasterKeyWrong { agent })?;
  Ok(Lookup::Key(Arc::new(AgentKeys::derive(id, data_key))))
}

async fn erase(pool: &PgPool, agent: AgentId) -> Result<Timestamp, Error> {
  // An agent that never had a key gets a row as well: it must not get one later.
  let erased_at: i64 = sqlx::query_scalar(
    "INSERT INTO ops.agent_keys AS key (agent, key_id, wrapped, erased_at) VALUES ($1, $2, NULL, clock_timestamp())
     ON CONFLICT (agent) DO UPDATE SET wrapped = NULL, erased_at = coalesce(key.erased_at, clock_timestamp())
     RETURNING (extract(epoch FROM erased_at) * 1000)::bigint",
  )
  .bind(agent.0)
  .bind(FIRST_KEY)
  .fetch_one(pool)
  .await
  .map_err(writing("erase an agent key"))?;
  Ok(Timestamp(erased_at))
}

/// Checks that the master key opens a wrapped key, without keeping it: for rows that are not in a database yet.
///
/// # Errors
/// [`Error::MasterKeyWrong`] names the agent.
pub fn check_wrapped(master: &MasterKey, agent: AgentId, key_id: i32, wrapped: &[u8]) -> Result<(), Error> {
  master.open(&place(agent, key_id), wrapped).map(|_| ()).ok_or(Error::MasterKeyWrong { agent })
}

/// What a wrapped key is bound to: it can't be put under another agent's name.
fn place(agent: AgentId, key_id: i32) -> Vec<u8> {
  [b"pa/agent-key/v1".as_slice(), agent.0.as_bytes(), &key_id.to_be_bytes()].concat()
}

fn fixed(agent: AgentId) -> AgentKeys {
  let data_key: [u8; KEY_BYTES] = digest::digest(&digest::SHA256, agent.0.as_bytes()).as_ref().try_into().expect("SHA-256 gives 32 bytes");
  AgentKeys::derive(FIRST_KEY, &data_key)
}
