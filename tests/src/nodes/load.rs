//! People who write while nodes and links die, as the product asks its clients to: a request that nobody answered is sent again under its key, to any node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cluster::Cluster;
use crate::harness::{Client, Promise, fresh_key};

/// An answer that takes longer is asked of another node.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// Between two messages of a person, so that the answers keep up.
const BETWEEN: Duration = Duration::from_millis(150);
/// After a request that nobody took.
const BREATH: Duration = Duration::from_millis(50);

/// Who writes now.
pub(super) struct Load {
  stop: Arc<AtomicBool>,
  people: JoinSet<(String, Vec<Promise>)>,
  /// When each message of everybody was decided.
  decided: Arc<Mutex<Vec<(usize, Instant)>>>,
  sent: Arc<AtomicUsize>,
}

impl Load {
  /// The people with these tokens.
  pub(super) fn of(tokens: &[String]) -> Self {
    let mut load = Self { stop: Arc::default(), people: JoinSet::new(), decided: Arc::default(), sent: Arc::default() };
    for (who, token) in tokens.iter().enumerate() {
      let (stop, decided, sent) = (Arc::clone(&load.stop), Arc::clone(&load.decided), Arc::clone(&load.sent));
      load.people.spawn(write(who, token.clone(), stop, decided, sent));
    }
    load
  }

  /// Returns once everybody was heard after `since`; for how long the one who waited longest was not.
  pub(super) async fn everybody_heard_after(&self, since: Instant, people: usize) -> Duration {
    let mut first = vec![None; people];
    crate::harness::eventually("everybody is heard again", async || {
      for (who, at) in self.decided.lock().await.iter().filter(|(_, at)| *at > since) {
        first[*who] = first[*who].or(Some(*at));
      }
      first.iter().all(Option::is_some).then_some(())
    })
    .await;
    first.into_iter().flatten().map(|at| at - since).max().unwrap_or_default()
  }

  /// Lets everybody finish their sentence; what each was promised.
  pub(super) async fn end(mut self) -> Vec<(String, Vec<Promise>)> {
    self.stop.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    while let Some(person) = self.people.join_next().await {
      all.push(person.expect("nobody panics while writing"));
    }
    let taken: usize = all.iter().map(|(_, promises)| promises.len()).sum();
    println!("{taken} messages were taken, in {} requests", self.sent.load(Ordering::Relaxed));
    all
  }
}

async fn write(who: usize, token: String, stop: Arc<AtomicBool>, decided: Arc<Mutex<Vec<(usize, Instant)>>>, sent: Arc<AtomicUsize>) -> (String, Vec<Promise>) {
  let nodes = Cluster::everywhere(&token);
  let (mut promises, mut next) = (Vec::new(), who);
  while !stop.load(Ordering::Relaxed) {
    let (text, key) = (format!("person {who}, message {}", promises.len()), fresh_key("load"));
    loop {
      sent.fetch_add(1, Ordering::Relaxed);
      if is_decided(&nodes[next % nodes.len()], &key, &text).await {
        break;
      }
      next += 1;
      tokio::time::sleep(BREATH).await;
    }
    decided.lock().await.push((who, Instant::now()));
    promises.push(Promise { text, accepted: true });
    next += 1;
    tokio::time::sleep(BETWEEN).await;
  }
  (token, promises)
}

async fn is_decided(node: &Client, key: &str, text: &str) -> bool {
  match tokio::time::timeout(ANSWER_MAX, node.try_send(key, text)).await {
    Ok(Some(sent)) => {
      assert!(sent.user_errors.is_empty(), "{text}: {:?}", sent.user_errors);
      sent.decided
    }
    Ok(None) | Err(_) => false,
  }
}
