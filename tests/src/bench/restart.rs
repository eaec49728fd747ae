//! restart: kill -9 in the middle of work → exec → the first decision that a client hears of. Postgres stays up.
//!
//! The tail behind the checkpoints is what a second of full traffic leaves, at most 1,000 records a partition. A client asks again and again from exec on; the time
//! ends with the answer that says `decided`.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::time::sleep;

use super::Bench;
use super::client::Client;
use super::line::Line;
use super::measure::median;
use super::model::InstantModel;
use super::product::{Account, Home};
use super::traffic::Audience;

const AGENTS: usize = 64;
/// In a tiny run.
const AGENTS_FEW: usize = 4;
const TARGET_MS: f64 = 1_000.0;
const GIVE_UP: Duration = Duration::from_secs(60);

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let model = InstantModel::start()?;
  let home = Home::new(bench, &model.base_url).await?;
  let mut product = home.start().await?;
  let accounts = home.accounts(bench.options.of(AGENTS_FEW, AGENTS, AGENTS)).await?;
  let (mut decided, mut ready) = (Vec::new(), Vec::new());
  for number in 0..bench.options.pairs() {
    let audience = Audience::gather(&product, accounts.clone()).await?;
    let working = audience.closed(&product, Duration::from_secs(10));
    tokio::select! {
      over = working => drop(over?),
      () = sleep(Duration::from_secs(1)) => {}
    }
    product.kill9()?;
    product = home.spawn()?;
    let first = first_decision(&product.address, &accounts[0], number, product.started).await?;
    decided.push(first.as_secs_f64() * 1e3);
    while !super::product::ready(&product.address).await {
      ensure!(product.started.elapsed() < GIVE_UP, "the product did not get ready again");
      sleep(Duration::from_millis(2)).await;
    }
    ready.push(product.started.elapsed().as_secs_f64() * 1e3);
  }
  let worst = decided.iter().copied().fold(0.0, f64::max);
  let line = Line::new("restart", "ms to the first decision", median(decided.into_iter()))
    .target(format!("≤ {TARGET_MS} ms after exec, after kill -9"), worst <= TARGET_MS)
    .also("worst_ms", worst)
    .also("ready_ms", median(ready.into_iter()));
  bench.printer.print(&line)
}

pub(super) async fn first_decision(address: &str, account: &Account, number: usize, started: Instant) -> Result<Duration> {
  let key = format!("after restart {number}");
  loop {
    if let Ok(mut client) = Client::connect(address, account).await
      && let Ok(Some(_)) = client.send(&key, "Are you there?").await
    {
      return Ok(started.elapsed());
    }
    ensure!(started.elapsed() < GIVE_UP, "nothing was decided after a restart");
    sleep(Duration::from_millis(2)).await;
  }
}
