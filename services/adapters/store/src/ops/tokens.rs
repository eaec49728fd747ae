//! Credentials: sign-in codes, sessions, API keys, the owner's token, device and task credentials.
//!
//! A token is `pa_` and 32 random bytes. The table holds its SHA-256: there is nothing to guess, so a salt or a slow hash would add nothing, and the hash is the
//! primary key, so a look-up compares no secret byte by byte.

use std::collections::{HashMap, HashSet};
use std::fmt;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pa_domain::AgentId;
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::PgPool;

use crate::Error;
use crate::error::{reading, writing};
use crate::together::Together;

/// Every token begins so: people and secret scanners recognise it.
pub const PREFIX: &str = "pa_";

/// Rows stay this long after their end, so that the page can still show what happened to them.
const KEPT_AFTER_END: &str = "7 days";

/// What a token lets its holder do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
  /// A code in a sign-in link: used once.
  SignIn,
  /// A browser's session.
  Session,
  /// The owner's bearer token.
  Owner,
  /// Another bearer token that the owner made.
  Api,
  /// A paired device's credential.
  Device,
  /// A task's own credential in the computer.
  Task,
}

impl Kind {
  const ALL: [Self; 6] = [Self::SignIn, Self::Session, Self::Owner, Self::Api, Self::Device, Self::Task];

  fn name(self) -> &'static str {
    match self {
      Self::SignIn => "sign_in",
      Self::Session => "session",
      Self::Owner => "owner",
      Self::Api => "api",
      Self::Device => "device",
      Self::Task => "task",
    }
  }
}

/// The stored form of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash(pub [u8; 32]);

impl fmt::Debug for TokenHash {
  fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // Enough to tell two apart.
    write!(f, "TokenHash({}…)", hex::encode(&self.0[..4]))
  }
}

impl TokenHash {
  /// The hash of a token as its holder presents it.
  pub fn of(token: &str) -> Self {
    Self(digest::digest(&digest::SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 gives 32 bytes"))
  }
}

/// What a new token is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
  pub account: AgentId,
  pub kind: Kind,
  /// For people: a browser, a device, a script.
  pub label: String,
  /// `None`: until it is revoked.
  pub lives_for_ms: Option<i64>,
}

/// A token that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
  pub hash: TokenHash,
  pub account: AgentId,
  pub kind: Kind,
  pub label: String,
}

/// Makes a token; this is the only time that it is seen.
pub async fn create(pool: &PgPool, new: &NewToken) -> Result<SecretString, Error> {
  let mut bytes = [0_u8; 32];
  aws_lc_rs::rand::fill(&mut bytes).expect("the operating system's random generator does not fail once it is seeded");
  let token = SecretString::from(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)));
  adopt(pool, new, &token).await?;
  Ok(token)
}

/// Lets a given token count, such as the owner's from the environment. One that is there already is put in force again as `new` says.
pub async fn adopt(pool: &PgPool, new: &NewToken, token: &SecretString) -> Result<(), Error> {
  sqlx::query(
    "INSERT INTO ops.tokens (hash, account, kind, label, expires_at)
     VALUES ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5::double precision / 1000))
     ON CONFLICT (hash) DO UPDATE
     SET account = excluded.account, kind = excluded.kind, label = excluded.label, expires_at = excluded.expires_at, used_at = NULL, revoked_at = NULL",
  )
  .bind(TokenHash::of(token.expose_secret()).0.as_slice())
  .bind(new.account.0)
  .bind(new.kind.name())
  .bind(&new.label)
  .bind(new.lives_for_ms)
  .execute(pool)
  .await
  .map_err(writing("write a token"))?;
  Ok(())
}

type Row = (Vec<u8>, uuid::Uuid, String, String);

fn found((hash, account, kind, label): Row) -> Option<Found> {
  let kind = Kind::ALL.into_iter().find(|known| known.name() == kind)?;
  let hash = TokenHash(hash.try_into().ok()?);
  Some(Found { hash, account: AgentId(account), kind, label })
}

/// Looks up a token that counts now and is of one of these kinds. A sign-in code never counts here: it is only consumed.
pub async fn find(pool: &PgPool, token: &str, kinds: &[Kind]) -> Result<Option<Found>, Error> {
  let kinds: Vec<&str> = kinds.iter().filter(|kind| **kind != Kind::SignIn).map(|kind| kind.name()).collect();
  let row: Option<Row> = sqlx::query_as(
    "SELECT hash, account, kind, label FROM ops.tokens
     WHERE hash = $1 AND kind = ANY($2) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())",
  )
  .bind(TokenHash::of(token).0.as_slice())
  .bind(kinds)
  .fetch_optional(pool)
  .await
  .map_err(reading("look up a token"))?;
  Ok(row.and_then(found))
}

/// Which of these tokens, all found before, count no longer: one statement for all the connections of a process.
pub async fn ended(pool: &PgPool, hashes: &[TokenHash]) -> Result<Vec<TokenHash>, Error> {
  let asked: Vec<&[u8]> = hashes.iter().map(|hash| hash.0.as_slice()).collect();
  let holding: Vec<Vec<u8>> =
    sqlx::query_scalar("SELECT hash FROM ops.tokens WHERE hash = ANY($1) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())")
      .bind(asked)
      .fetch_all(pool)
      .await
      .map_err(reading("look which tokens still count"))?;
  let holding: HashSet<Vec<u8>> = holding.into_iter().collect();
  Ok(hashes.iter().filter(|hash| !holding.contains(hash.0.as_slice())).copied().collect())
}

/// Tokens of one statement: requests that arrive within the same millisecond.
const TOKENS_AT_ONCE: usize = 64;

/// Looks tokens up, with one statement for all that are asked for at the same time. Nothing is remembered: a token that was revoked never counts again.
#[derive(Debug)]
pub struct LookUps(Together<TokenHash, Option<Found>>);

impl Default for LookUps {
  fn default() -> Self {
    Self(Together::new(TOKENS_AT_ONCE))
  }
}

impl LookUps {
  /// As [`find`].
  pub async fn find(&self, pool: &PgPool, token: &str, kinds: &[Kind]) -> Result<Option<Found>, Error> {
    let found = self.0.ask(TokenHash::of(token), |hashes| find_many(pool, hashes)).await?.flatten();
    Ok(found.filter(|found| found.kind != Kind::SignIn && kinds.contains(&found.kind)))
  }
}

async fn find_many(pool: &PgPool, hashes: Vec<TokenHash>) -> Result<Vec<Option<Found>>, Error> {
  let wanted: Vec<&[u8]> = hashes.iter().map(|hash| hash.0.as_slice()).collect();
  let rows: Vec<Row> = sqlx::query_as(
    "SELECT hash, account, kind, label FROM ops.tokens
     WHERE hash = ANY($1) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())",
  )
  .bind(wanted)
  .fetch_all(pool)
  .await
  .map_err(reading("look up tokens"))?;
  let found: HashMap<[u8; 32], Found> = rows.into_iter().filter_map(found).map(|found| (found.hash.0, found)).collect();
  Ok(hashes.iter().map(|hash| found.get(&hash.0).cloned()).collect())
}

/// Says whether a one-use code could be consumed now, and changes nothing: for the page that shows its button.
pub async fn is_open(pool: &PgPool, token: &str, kind: Kind) -> Result<bool, Error> {
  sqlx::query_scalar(
    "SELECT EXISTS (SELECT 1 FROM ops.tokens WHERE hash = $1 AND kind = $2 AND used_at IS NULL AND revoked_at IS NULL
       AND (expires_at IS NULL OR expires_at > clock_timestamp()))",
  )
  .bind(TokenHash::of(token).0.as_slice())
  .bind(kind.name())
  .fetch_one(pool)
  .await
  .map_err(reading("look at a code"))
}

/// Consumes a one-use token: of any number of callers at once exactly one gets it.
pub async fn consume(pool: &PgPool, token: &str, kind: Kind) -> Result<Option<Found>, Error> {
  let row: Option<Row> = sqlx::query_as(
    "UPDATE ops.tokens SET used_at = clock_timestamp()
     WHERE hash = $1 AND kind = $2 AND used_at IS NULL AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
     RETURNING hash, account, kind, label",
  )
  .bind(TokenHash::of(token).0.as_slice())
  .bind(kind.name())
  .fetch_optional(pool)
  .await
  .map_err(writing("consume a token"))?;
  Ok(row.and_then(found))
}

/// Lets a token that counts live longer from now on, and notes that it was used: for sessions, not on every request.
pub async fn extend(pool: &PgPool, hash: TokenHash, lives_for_ms: i64) -> Result<bool, Error> {
  let done = sqlx::query(
    "UPDATE ops.tokens SET used_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => $2::double precision / 1000)
     WHERE hash = $1 AND revoked_at IS NULL AND expires_at > clock_timestamp()",
  )
  .bind(hash.0.as_slice())
  .bind(lives_for_ms)
  .execute(pool)
  .await
  .map_err(writing("extend a token"))?;
  Ok(done.rows_affected() == 1)
}

/// Revokes one token.
pub async fn revoke(pool: &PgPool, hash: TokenHash) -> Result<bool, Error> {
  let done = sqlx::query("UPDATE ops.tokens SET revoked_at = clock_timestamp() WHERE hash = $1 AND revoked_at IS NULL")
    .bind(hash.0.as_slice())
    .execute(pool)
    .await
    .map_err(writing("revoke a token"))?;
  Ok(done.rows_affected() == 1)
}

/// Revokes an account's tokens of one kind, and answers with how many.
pub async fn revoke_all(pool: &PgPool, account: AgentId, kind: Kind) -> Result<u64, Error> {
  let done = sqlx::query("UPDATE ops.tokens SET revoked_at = clock_timestamp() WHERE account = $1 AND kind = $2 AND revoked_at IS NULL")
    .bind(account.0)
    .bind(kind.name())
    .execute(pool)
    .await
    .map_err(writing("revoke tokens"))?;
  Ok(done.rows_affected())
}

/// Deletes what ended more than a week ago.
pub async fn prune(pool: &PgPool) -> Result<u64, Error> {
  let done = sqlx::query(
    "DELETE FROM ops.tokens
     WHERE least(expires_at, revoked_at, CASE WHEN kind = 'sign_in' THEN used_at END) < clock_timestamp() - $1::interval",
  )
  .bind(KEPT_AFTER_END)
  .execute(pool)
  .await
  .map_err(writing("prune tokens"))?;
  Ok(done.rows_affected())
}
