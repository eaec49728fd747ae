//! People who write while processes die: each waits for the answer to one request before the next, so that the order is known, and none sends anything twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::harness::{Client, Promise, fresh_key};

/// Messages of one person at most, so that the answers do not take minutes.
const MESSAGES_MAX: usize = 80;
/// After a refused message.
const BREATH: Duration = Duration::from_millis(50);

/// Who writes now.
pub(super) struct Load {
  stop: Arc<AtomicBool>,
  people: JoinSet<(Client, Vec<Promise>)>,
}

impl Load {
  pub(super) fn of(clients: impl IntoIterator<Item = Client>, between: Duration) -> Self {
    let (stop, mut people) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    for (who, client) in clients.into_iter().enumerate() {
      people.spawn(write(who, client, between, Arc::clone(&stop)));
    }
    Self { stop, people }
  }

  /// Lets everybody finish their sentence; what each was promised.
  pub(super) async fn end(mut self) -> Vec<(Client, Vec<Promise>)> {
    self.stop.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    while let Some(person) = self.people.join_next().await {
      all.push(person.expect("nobody panics while writing"));
    }
    let accepted: usize = all.iter().map(|(_, promises)| promises.iter().filter(|promise| promise.accepted).count()).sum();
    println!("{accepted} messages were accepted");
    assert!(accepted > 0, "nothing was accepted, so nothing was proven");
    all
  }
}

async fn write(who: usize, client: Client, between: Duration, stop: Arc<AtomicBool>) -> (Client, Vec<Promise>) {
  let mut promises = Vec::new();
  while promises.len() < MESSAGES_MAX && !stop.load(Ordering::Relaxed) {
    let text = format!("person {who}, message {}", promises.len());
    let sent = client.try_send(&fresh_key("load"), &text).await;
    let accepted = sent.as_ref().is_some_and(|sent| sent.user_errors.is_empty());
    promises.push(Promise { text, accepted });
    tokio::time::sleep(if accepted { between } else { BREATH }).await;
  }
  (client, promises)
}
