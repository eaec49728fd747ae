//! A product under test: started, killed, watched and spoken to as the outside does.
//!
//! Invariants
//! - Everything is real: the binary, Postgres, the sockets. Only the model is scripted, in the test's own process.
//! - Nothing waits for a time; [`eventually`] polls for a state with a deadline.
//! - Nothing stays behind: a product that is dropped is dead, its private Postgres too, and what it said is printed if the test failed.
//!
//! `product` starts one, `graphql` and `socket` speak to it, `dump` reads its log, `checks` judges it.

mod checks;
mod dump;
mod effects;
mod graphql;
mod model;
mod process;
mod product;
mod proxy;
mod socket;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use checks::{Promise, check_log, check_promises};
pub(crate) use dump::Dump;
pub(crate) use effects::{Effects, Outside};
pub(crate) use graphql::{Client, Message};
pub(crate) use model::{Model, text_of_last, words};
pub(crate) use process::{Process, Tool, run};
pub(crate) use product::{Engine, Product, Setup, TOKEN};
pub(crate) use proxy::Proxy;
pub(crate) use socket::{Socket, Update};

/// Long enough for a busy machine with two cores; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until there is an answer. Fails, naming `what`, after [`PATIENCE`].
pub(crate) async fn eventually<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
  within(PATIENCE, what, look).await
}

/// Looks until there is an answer. Fails, naming `what`, after `limit`.
pub(crate) async fn within<T>(limit: Duration, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
  let deadline = Instant::now() + limit;
  loop {
    if let Some(found) = look().await {
      return found;
    }
    assert!(Instant::now() < deadline, "not in {limit:?}: {what}");
    tokio::time::sleep(LOOK_EVERY).await;
  }
}

/// A request key that no other request of this test process has.
pub(crate) fn fresh_key(what: &str) -> String {
  static NEXT: AtomicU64 = AtomicU64::new(1);
  format!("{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
