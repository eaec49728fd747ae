//! Messages to a product: paced by a clock, or each after the answer to the one before.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use super::client::Client;
use super::measure::{histogram, record};
use super::product::{Account, Product};
use super::socket::{Socket, field};

/// Connections of each account under paced traffic: more than two requests of an account are rarely under way.
const CONNECTIONS: usize = 3;
/// How long whatever is still on its way at the end may take.
const REST_MAX: Duration = Duration::from_secs(60);
const TEXT: &str = "What does this say, and what should be done about it? Please answer in one sentence.";

/// When messages and replies were on the subscriptions' screens.
#[derive(Default)]
struct Shown {
  messages: Mutex<HashMap<String, Instant>>,
  /// By the message that is answered.
  replies: Mutex<HashMap<String, Instant>>,
  news: Notify,
}

impl Shown {
  fn note(&self, frame: &str) {
    if !frame.contains("MessageUpserted") {
      return;
    }
    let now = Instant::now();
    if frame.contains("\"role\":\"OWNER\"") {
      // The first id is the subscription's.
      if let Some(id) = frame.find("\"message\":{").and_then(|at| field(&frame[at..], "id")) {
        self.messages.lock().entry(id.to_owned()).or_insert(now);
      }
    } else if frame.contains("\"status\":\"POSTED\"")
      && let Some(id) = field(frame, "replyToId")
    {
      self.replies.lock().entry(id.to_owned()).or_insert(now);
      self.news.notify_waiters();
    }
  }

  async fn reply(&self, message: &str) {
    loop {
      let news = self.news.notified();
      tokio::pin!(news);
      news.as_mut().enable();
      if self.replies.lock().contains_key(message) {
        return;
      }
      news.await;
    }
  }
}

/// The accounts' subscriptions.
pub(super) struct Audience {
  accounts: Vec<Account>,
  shown: Vec<Arc<Shown>>,
  _sockets: JoinSet<()>,
  keys: AtomicU64,
}

/// What paced traffic gave.
pub(super) struct Paced {
  /// From the instant at which a message was due to the answer of a query that shows it.
  pub(super) visible: Histogram<u64>,
  /// To the frame with the message.
  pub(super) push: Histogram<u64>,
  /// To the frame with the finished reply.
  pub(super) turn: Histogram<u64>,
}

/// What traffic without pauses gave.
pub(super) struct Closed {
  pub(super) turns: u64,
  pub(super) wall: Duration,
  pub(super) latencies: Histogram<u64>,
}

struct Sent {
  due: Instant,
  account: usize,
  id: String,
}

impl Audience {
  /// One subscription for each account.
  pub(super) async fn gather(product: &Product, accounts: Vec<Account>) -> Result<Self> {
    let (mut sockets, mut shown) = (JoinSet::new(), Vec::new());
    for account in &accounts {
      let (mut socket, sees) = (Socket::connect(&product.address, account).await?, Arc::new(Shown::default()));
      shown.push(Arc::clone(&sees));
      sockets.spawn(async move {
        // It ends with the product.
        while let Ok(frame) = socket.next().await {
          sees.note(&frame);
        }
      });
    }
    // A subscription is not acknowledged: a moment until all stand.
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(Self { accounts, shown, _sockets: sockets, keys: AtomicU64::new(0) })
  }

  fn key(&self) -> String {
    format!("bench {}", self.keys.fetch_add(1, Ordering::Relaxed))
  }

  /// A message every `spacing`, to one account after the other, whatever became of those before.
  pub(super) async fn paced(&self, product: &Product, spacing: Duration, count: u32) -> Result<Paced> {
    let mut free = Vec::new();
    for account in &self.accounts {
      let (give, take) = mpsc::channel(CONNECTIONS);
      for _ in 0..CONNECTIONS {
        give.send(Client::connect(&product.address, account).await?).await.context("there is room")?;
      }
      free.push((give, Arc::new(tokio::sync::Mutex::new(take))));
    }
    let (begun, mut under_way) = (Instant::now() + Duration::from_millis(50), JoinSet::new());
    for number in 0..count {
      let due = begun + spacing * number;
      let account = number as usize % self.accounts.len();
      let ((give, take), key) = (free[account].clone(), self.key());
      sleep_until(due.into()).await;
      under_way.spawn(async move {
        let mut client = take.lock().await.recv().await.context("clients are given back")?;
        let sent = client.say(&key, TEXT).await?;
        client.see(&sent).await?;
        let took = due.elapsed();
        give.send(client).await.context("there is room")?;
        Ok::<_, anyhow::Error>((took, Sent { due, account, id: sent.id }))
      });
    }
    let (mut visible, mut sent) = (histogram(), Vec::new());
    while let Some(done) = under_way.join_next().await {
      let (took, message) = done.context("a client panicked")??;
      record(&mut visible, took);
      sent.push(message);
    }
    let (push, turn) = self.shown_of(&sent).await?;
    Ok(Paced { visible, push, turn })
  }

  async fn shown_of(&self, sent: &[Sent]) -> Result<(Histogram<u64>, Histogram<u64>)> {
    let (mut push, mut turn) = (histogram(), histogram());
    for Sent { due, account, id } in sent {
      let shown = &self.shown[*account];
      tokio::time::timeout(REST_MAX, shown.reply(id)).await.context("a reply was not shown in time")?;
      let message = shown.messages.lock().get(id).copied().context("a message was not pushed")?;
      let reply = shown.replies.lock().get(id).copied().context("a reply was not pushed")?;
      record(&mut push, message.saturating_duration_since(*due));
      record(&mut turn, reply.saturating_duration_since(*due));
    }
    Ok((push, turn))
  }

  /// Every account sends its next message when it sees the reply to the one before, for so long.
  pub(super) async fn closed(&self, product: &Product, time: Duration) -> Result<Closed> {
    let (begun, mut speaking) = (Instant::now(), JoinSet::new());
    for (account, shown) in self.accounts.iter().zip(&self.shown) {
      let (mut client, shown) = (Client::connect(&product.address, account).await?, Arc::clone(shown));
      let prefix = self.key();
      speaking.spawn(async move {
        let (mut latencies, mut number) = (histogram(), 0);
        while begun.elapsed() < time {
          let sent = Instant::now();
          let message = client.say(&format!("{prefix} {number}"), TEXT).await?;
          tokio::time::timeout(REST_MAX, shown.reply(&message.id)).await.context("a reply was not shown in time")?;
          record(&mut latencies, sent.elapsed());
          number += 1;
        }
        Ok::<_, anyhow::Error>(latencies)
      });
    }
    let mut latencies = histogram();
    while let Some(spoken) = speaking.join_next().await {
      latencies.add(spoken.context("a speaker panicked")??).context("add up latencies")?;
    }
    Ok(Closed { turns: latencies.len(), wall: begun.elapsed(), latencies })
  }
}
