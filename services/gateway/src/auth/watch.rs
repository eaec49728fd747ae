//! Ends the sockets whose credential counts no longer, whoever ended it: another process signs out, `pa token reset`, a session that ran out.
//!
//! Requests look their credential up each time; a socket does so once, so it is looked at again here: one statement for all sockets of the process.

use pa_store::ops::tokens;
use tokio::time::{MissedTickBehavior, interval};

use crate::edge::Edge;
use crate::limits::CREDENTIALS_LOOKED_AT_EVERY;

/// Looks again and again, until the process stops.
pub(crate) async fn run(edge: Edge) {
  let mut looks = interval(CREDENTIALS_LOOKED_AT_EVERY);
  looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
  loop {
    tokio::select! {
        () = edge.shutdown.cancelled() => return,
        _ = looks.tick() => {}
    }
    if let Err(error) = look(&edge).await {
      // While that can't be looked up, the sockets stay: an outage of the storage signs nobody out.
      tracing::debug!(error = &error as &dyn std::error::Error, "the sockets' credentials can't be looked up");
    }
  }
}

/// Ends the sockets of every credential that counts no longer.
pub(crate) async fn look(edge: &Edge) -> Result<(), pa_store::Error> {
  let credentials = edge.sockets.credentials();
  if credentials.is_empty() {
    return Ok(());
  }
  for ended in tokens::ended(&edge.pool, &credentials).await? {
    edge.sockets.revoke(&ended.0);
  }
  Ok(())
}
