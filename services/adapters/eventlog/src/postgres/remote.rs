//! Wake-up between processes: a coalesced NOTIFY as a hint, only while another process is registered.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pa_store::pool::Database;
use sqlx::PgPool;
use sqlx::postgres::PgListener;

use super::{PostgresLog, WAIT_MAX, read};
use crate::port::LogError;
use crate::record::{Partition, Position, Stream};

const CHANNEL: &str = "pa_log";

/// Sends the hint apart from the append: a NOTIFY takes a lock over the whole server at commit.
#[expect(clippy::disallowed_methods, reason = "a hint that nobody waits for; it ends with its one statement")]
pub(super) fn tell(pool: &PgPool, stream: Stream, parts: Vec<i16>) {
  let pool = pool.clone();
  tokio::spawn(async move {
    let hints: Vec<String> = parts.iter().map(|part| format!("{}/{part}", stream.name())).collect();
    let told = sqlx::query("SELECT pg_notify($1, hint) FROM unnest($2::text[]) AS hint").bind(CHANNEL).bind(hints).execute(&pool).await;
    if let Err(error) = told {
      tracing::debug!(error = &error as &dyn std::error::Error, "a wake-up of other processes was not sent; they poll");
    }
  });
}

impl PostgresLog {
  /// Says whether other processes are registered, so that appends wake them.
  pub fn set_others(&self, others: bool) {
    self.remote.store(others, Ordering::Relaxed);
  }

  /// Wakes this process's readers when others append. Runs until it is dropped; a lost listener is made anew, and readers poll meanwhile.
  pub async fn listen(self: Arc<Self>, database: &Database) {
    loop {
      if let Err(error) = self.listen_once(database).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "the wake-up listener was lost");
      }
      tokio::time::sleep(WAIT_MAX).await;
    }
  }

  async fn listen_once(&self, database: &Database) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(&database.pool(pa_store::pool::Role::Tool)).await?;
    listener.listen(CHANNEL).await?;
    loop {
      let Some(hint) = listener.try_recv().await? else { return Ok(()) };
      let Some((stream, part)) = hint.payload().split_once('/') else { continue };
      let stream = match stream {
        "inputs" => Stream::Inputs,
        "events" => Stream::Events,
        _ => Stream::Pieces,
      };
      if let Some(tail) = part.parse::<Partition>().ok().and_then(|part| self.tails.get(&(stream, part))) {
        tail.stirred.store(true, Ordering::Release);
        tail.woken.notify_waiters();
      }
    }
  }

  /// Deletes expired inputs below `keep_from`, and pieces. Answers how many went.
  ///
  /// # Errors
  /// When the database can't be reached.
  pub async fn expire(&self, stream: Stream, partition: Partition, older_than: Duration, keep_from: Position) -> Result<u64, LogError> {
    read::expire(&self.pool, stream, partition, i64::try_from(older_than.as_secs()).unwrap_or(i64::MAX), keep_from).await
  }
}
