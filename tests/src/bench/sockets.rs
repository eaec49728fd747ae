//! sockets: a thousand agents with one subscription each, and five hundred updates a second among them.
//!
//! An update is a change of a setting: the cheapest thing that a page can see, so that it is the sockets and what stands before them that is measured, not turns. The clock
//! runs from the instant at which the mutation was due to the frame on the agent's own subscription, over the log, the decision and the read model: more than a
//! rival's fan-out would be asked for. Every agent has one change under way at most. Memory is the product's resident memory with few and with many idle sockets,
//! whose agents are all there before: the slope is what a socket costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::client::Client;
use super::line::Line;
use super::measure::{histogram, quantile, record};
use super::model::InstantModel;
use super::product::{Account, Home, Product};
use super::socket::Socket;
use super::{Bench, cpu};

/// Sockets before and after, and those that hear updates; in a tiny run fewer.
const SOCKETS: (usize, usize, usize) = (200, 2_000, 1_000);
const SOCKETS_FEW: (usize, usize, usize) = (2, 12, 8);
const UPDATES_PER_SECOND: u32 = 500;
const P99_MAX: f64 = 50.0;
const KILOBYTES_MAX: f64 = 24.0;
/// What a socket's first moments leave behind is given back within this time.
const REST: Duration = Duration::from_secs(3);
const FRAME_MAX: Duration = Duration::from_secs(60);

/// An agent that changes and sees its change.
struct Changing {
  client: Client,
  seen: mpsc::Receiver<Instant>,
  version: i64,
}

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let model = InstantModel::start()?;
  let home = Home::new(bench, &model.base_url).await?;
  let product = home.start().await?;
  let (few, many, speaking) = bench.options.of(SOCKETS_FEW, SOCKETS, SOCKETS);
  let accounts = home.accounts(many).await?;
  let mut sockets = open(&product, &accounts[..few]).await?;
  let rest = bench.options.of(Duration::from_millis(100), REST, REST);
  sleep(rest).await;
  let before = cpu::resident_bytes(product.pid()?)?;
  sockets.extend(open(&product, &accounts[few..]).await?);
  sleep(rest).await;
  let after = cpu::resident_bytes(product.pid()?)?;
  let kilobytes = (after as f64 - before as f64) / (many - few) as f64 / 1024.0;
  sockets.truncate(speaking);
  let rate = bench.options.of(20, UPDATES_PER_SECOND, UPDATES_PER_SECOND);
  let count = rate * bench.options.of(1, 5, 20);
  let own = product.cpu()?;
  let latencies = updates(&product, sockets, &accounts, rate, count).await?;
  let p99 = quantile(&latencies, 0.99);
  let line = Line::new("sockets", "ms, p99", p99)
    .cpu(product.cpu()?.saturating_sub(own).as_secs_f64() * 1e6 / f64::from(count))
    .target(format!("p99 ≤ {P99_MAX} ms at {rate} updates/s, ≤ {KILOBYTES_MAX} KB each"), p99 <= P99_MAX && kilobytes <= KILOBYTES_MAX)
    .also("p50_ms", quantile(&latencies, 0.5))
    .also("kilobytes_each", kilobytes)
    .more("sockets", speaking)
    .more("sockets_idle", many);
  bench.printer.print(&line)
}

async fn open(product: &Product, accounts: &[Account]) -> Result<Vec<Socket>> {
  let mut sockets = Vec::new();
  for account in accounts {
    sockets.push(Socket::connect(&product.address, account).await?);
  }
  Ok(sockets)
}

/// Changes at a steady rate, one agent after the other: the time until each was seen.
async fn updates(product: &Product, sockets: Vec<Socket>, accounts: &[Account], rate: u32, count: u32) -> Result<hdrhistogram::Histogram<u64>> {
  let (mut listening, mut agents) = (JoinSet::new(), Vec::new());
  for (mut socket, account) in sockets.into_iter().zip(accounts) {
    let (see, seen) = mpsc::channel(4);
    listening.spawn(async move {
      // It ends with the product.
      while let Ok(frame) = socket.next().await {
        if frame.contains("SettingsUpserted") && see.send(Instant::now()).await.is_err() {
          return;
        }
      }
    });
    agents.push(Arc::new(Mutex::new(Changing { client: Client::connect(&product.address, account).await?, seen, version: 1 })));
  }
  let (begun, mut under_way) = (Instant::now() + Duration::from_millis(100), JoinSet::new());
  for number in 0..count {
    let due = begun + Duration::from_secs(1) * number / rate;
    let agent = Arc::clone(&agents[number as usize % agents.len()]);
    sleep_until(due.into()).await;
    under_way.spawn(async move { change(&mut *agent.lock().await, due).await });
  }
  let mut latencies = histogram();
  while let Some(took) = under_way.join_next().await {
    record(&mut latencies, took.context("a client panicked")??);
  }
  Ok(latencies)
}

async fn change(agent: &mut Changing, due: Instant) -> Result<Duration> {
  let name = format!("name {}", agent.version);
  agent.client.rename(agent.version, &name).await?;
  agent.version += 1;
  let seen = timeout(FRAME_MAX, agent.seen.recv()).await.context("a change was not shown in time")?.context("the socket has ended")?;
  Ok(seen.saturating_duration_since(due))
}
