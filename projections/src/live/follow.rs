//! Learning of commits that another process made: hints by NOTIFY, and a look of our own every second because hints can be lost.

use std::future::Future;
use std::time::Duration;

use pa_store::{Database, ReadSchema, Role};
use sqlx::postgres::PgListener;
use sqlx::{PgPool, postgres::PgPoolOptions};

use super::{Committed, HINT_CHANNEL, Live, POLL};
use crate::error::reading;
use crate::{Error, system};

/// The listener's own connection.
const CONNECTIONS: u32 = 1;
/// Agents of one look at most; a gateway with more subscribers takes several.
const AGENTS_AT_ONCE: usize = 2_000;

/// Tells `live` what other processes commit, until `stop` is done. The database being away is waited out.
pub async fn follow(database: &Database, schema: &ReadSchema, pool: &PgPool, live: &Live, stop: impl Future<Output = ()>) {
  let options = database.connect_options(Role::Gateway, Some(schema));
  let own = PgPoolOptions::new().max_connections(CONNECTIONS).connect_lazy_with(options);
  tokio::pin!(stop);
  let mut listener = None;
  loop {
    if listener.is_none() {
      listener = listen(&own).await.inspect_err(|error| tracing::debug!(%error, "no hints of commits for now")).ok();
    }
    // Both branches can be cancelled: a lost hint is made up for by the next look.
    tokio::select! {
      () = &mut stop => break,
      heard = hint(&mut listener) => {
        if !heard {
          listener = None;
        }
      }
      () = tokio::time::sleep(POLL) => {}
    }
    if let Err(error) = look(pool, live).await {
      tracing::debug!(%error, "could not look how far the read model is");
      listener = None;
      live.forget();
      tokio::time::sleep(Duration::from_millis(200)).await;
    }
  }
  // The listener holds the pool's connection, and closing waits for it.
  drop(listener);
  own.close().await;
}

async fn listen(pool: &PgPool) -> Result<PgListener, Error> {
  let mut listener = PgListener::connect_with(pool).await.map_err(reading("listen for commits"))?;
  listener.listen(HINT_CHANNEL).await.map_err(reading("listen for commits"))?;
  Ok(listener)
}

/// Waits for a hint; false when the connection was lost.
async fn hint(listener: &mut Option<PgListener>) -> bool {
  match listener {
    Some(listener) => matches!(listener.try_recv().await, Ok(Some(_))),
    None => std::future::pending().await,
  }
}

/// Reads how far the watched agents are, and tells it. What changed besides is not told, so whoever waits for work or timers is woken with every look.
///
/// # Errors
/// The read model can't be read.
pub async fn look(pool: &PgPool, live: &Live) -> Result<(), Error> {
  for agents in live.watched().chunks(AGENTS_AT_ONCE) {
    for (agent, ordinal) in system::progress_of_many(pool, agents).await? {
      live.learn(agent, ordinal);
    }
  }
  live.tell(Committed { partition: 0, agents: Vec::new(), queue: true, timers: true });
  Ok(())
}
