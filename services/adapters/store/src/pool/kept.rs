//! Connections that stay with whoever sends one short statement after the other.
//!
//! A connection that goes back to its pool is asked first whether it lives, which costs as much as a short statement, and the pool hands out the one that was idle for
//! the longest, whose server process and plans are cold. Here it is kept, and the last one used goes first. Invariants
//! - Only a connection whose statement has ended well is kept; any other goes back to the pool, which looks at it.
//! - One that was not used for [`TRUSTED_FOR`] goes back, too: what it would be used for next must not be the first to notice that it is dead.

use std::time::Instant;

use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::{PgPool, Postgres};

use super::TRUSTED_FOR;

/// Connections of a pool, kept for one purpose.
pub struct Kept {
  pool: PgPool,
  idle: Mutex<Vec<(PoolConnection<Postgres>, Instant)>>,
  max: usize,
}

impl std::fmt::Debug for Kept {
  fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    f.debug_struct("Kept").field("idle", &self.idle.lock().len()).field("max", &self.max).finish_non_exhaustive()
  }
}

impl Kept {
  /// Keeps at most `max` connections of a pool, which has more.
  pub fn new(pool: PgPool, max: usize) -> Self {
    Self { pool, idle: Mutex::default(), max }
  }

  /// The connection that was kept last, or one of the pool.
  ///
  /// # Errors
  /// As the pool's own.
  pub async fn acquire(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
    let kept = self.idle.lock().pop();
    match kept {
      Some((connection, used)) if used.elapsed() < TRUSTED_FOR => return Ok(connection),
      // Those below it were not used for longer.
      Some(_) => self.give_back(),
      None => {}
    }
    self.pool.acquire().await
  }

  /// Keeps a connection whose statement has ended well.
  pub fn keep(&self, connection: PoolConnection<Postgres>) {
    let mut idle = self.idle.lock();
    if idle.len() < self.max {
      idle.push((connection, Instant::now()));
    }
  }

  /// Gives all back to the pool: the server may be another one, or the pool is to be closed.
  pub fn give_back(&self) {
    let idle = std::mem::take(&mut *self.idle.lock());
    drop(idle);
  }
}
