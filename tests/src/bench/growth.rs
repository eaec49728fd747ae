//! growth: what a hundred times the history costs, with as many agents as before.
//!
//! Two products, one with a short log and one with a long one: the same agents, the same turns, only more of them. Each is started once to build what it derives, and
//! then measured: kill -9 → exec → the first decision, the page of the last messages, the audit's first lines, a whole turn of an instant model. The ratio is that of the
//! worst of the four. The product's own database says afterwards which large tables were read from end to end: none may be. The short log is the control: the same
//! binary doing the same, so that nothing but the length of the log is between the two.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pa_projections::testing::Story;
use pa_store::Role;
use tokio::time::sleep;

use super::client::Client;
use super::line::Line;
use super::measure::{median, round_to};
use super::model::InstantModel;
use super::product::{Account, Home, Product};
use super::samples::{self, Filler, PARTITIONS};
use super::traffic::Audience;
use super::{Bench, restart};

const AGENTS: u128 = 64;
const TEXT_BYTES: usize = 300;
/// Events of one turn of [`Story::turn`].
const EVENTS_A_TURN: usize = 8;
/// Rounds of turns that are told before they are written, so that memory stays flat.
const TURNS_AT_ONCE: usize = 20;
const RATIO_MAX: f64 = 1.25;
/// A table with so many rows is never read from end to end.
const ROWS_MANY: i64 = 5_000;
/// Checkpoints are written every 5 s.
const CHECKPOINTED: Duration = Duration::from_secs(7);

/// What a product with a history took, in milliseconds.
struct Took {
  events: u64,
  start: f64,
  page: f64,
  query: f64,
  turn: f64,
  /// Large tables that were read from end to end.
  scanned: Vec<String>,
}

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let (short, long) = bench.options.of((1_000, 4_000), (10_000, 100_000), (10_000, 1_000_000));
  let (short, long) = (measure(bench, short).await?, measure(bench, long).await?);
  let ratios = [("start", long.start / short.start), ("page", long.page / short.page), ("query", long.query / short.query), ("turn", long.turn / short.turn)];
  let worst = ratios.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max);
  let target = format!("≤ {RATIO_MAX} × for start, page, query, turn; no large table read from end to end");
  let mut line = Line::new("growth", "ms a turn", long.turn).control(short.turn).ratio(worst).target(target, worst <= RATIO_MAX && long.scanned.is_empty());
  line = line.more("events", long.events).more("events_control", short.events).more("scanned", long.scanned.join(", "));
  for (name, ratio) in ratios {
    line = line.also(&format!("{name}_ratio"), round_to(ratio, 3));
  }
  for (name, took) in [("start_ms", long.start), ("page_ms", long.page), ("query_ms", long.query)] {
    line = line.also(name, took);
  }
  bench.printer.print(&line)
}

async fn measure(bench: &Bench, events: usize) -> Result<Took> {
  let model = InstantModel::start()?;
  let home = Home::new(bench, &model.base_url).await?;
  let (events, accounts) = fill(&home, events).await?;
  let mut product = home.start_within(bench.options.of(60, 120, 600)).await?;
  let (mut client, mut starts) = (Client::connect(&product.address, &accounts[0]).await?, Vec::new());
  ensure!(client.page().await? > 0, "the history is not shown");
  for number in 0..bench.options.pairs() {
    // What was built is written down before the power goes.
    sleep(bench.options.of(Duration::ZERO, CHECKPOINTED, CHECKPOINTED)).await;
    product.kill9()?;
    product = home.spawn()?;
    starts.push(restart::first_decision(&product.address, &accounts[0], number, product.started).await?.as_secs_f64() * 1e3);
    while !super::product::ready(&product.address).await {
      sleep(Duration::from_millis(5)).await;
    }
  }
  let before = scans(&home).await?;
  let count = bench.options.of(3, 50, 200);
  let (page, query) = (reads(&product, &accounts, count, false).await?, reads(&product, &accounts, count, true).await?);
  let audience = Audience::gather(&product, accounts).await?;
  let turns = audience.paced(&product, Duration::from_millis(50), bench.options.of(4, 100, 400)).await?;
  let scanned = scans(&home).await?.into_iter().filter(|(table, scans)| before.iter().any(|(other, before)| other == table && before < scans));
  let scanned = scanned.map(|(table, _)| table).collect();
  Ok(Took { events, start: median(starts.into_iter()), page, query, turn: super::measure::quantile(&turns.turn, 0.5), scanned })
}

/// A home whose log already holds the history of some agents, with an account for each.
async fn fill(home: &Home, events: usize) -> Result<(u64, Vec<Account>)> {
  let log = home.log().await?;
  let mut filler = Filler::begin(&log, home.keys()?, PARTITIONS)?;
  let text: String = "a question and its answer ".chars().cycle().take(TEXT_BYTES).collect();
  let mut story = Story::default();
  (0..AGENTS).for_each(|number| story.create(samples::agent(number)));
  let turns = events / EVENTS_A_TURN / usize::try_from(AGENTS).context("few agents")?;
  for turn in 0..turns.max(1) {
    for number in 0..AGENTS {
      story.turn(samples::agent(number), &text, &text);
    }
    if turn % TURNS_AT_ONCE == 0 {
      filler.add(&story.decisions).await?;
      story.decisions.clear();
    }
  }
  filler.add(&story.decisions).await?;
  let events = filler.end().await?;
  let mut accounts = Vec::new();
  for number in 0..AGENTS {
    accounts.push(home.token(samples::agent(number)).await?);
  }
  Ok((events, accounts))
}

/// The median of some reads of one kind.
async fn reads(product: &Product, accounts: &[Account], count: usize, audit: bool) -> Result<f64> {
  let mut took = Vec::new();
  for account in accounts.iter().cycle().take(count) {
    let mut client = Client::connect(&product.address, account).await?;
    // The first request of a connection finds out who asks.
    client.page().await?;
    let begun = Instant::now();
    let rows = if audit { client.audit().await? } else { client.page().await? };
    took.push(begun.elapsed().as_secs_f64() * 1e3);
    ensure!(rows > 0, "there is nothing to read");
  }
  Ok(median(took.into_iter()))
}

/// How often each large table was read from end to end.
async fn scans(home: &Home) -> Result<Vec<(String, i64)>> {
  let pool = home.database().pool(Role::Tool);
  // Backends hand in what they counted within a second.
  sleep(Duration::from_secs(1)).await;
  let rows =
    sqlx::query_as("SELECT schemaname || '.' || relname, seq_scan FROM pg_stat_user_tables WHERE n_live_tup > $1").bind(ROWS_MANY).fetch_all(&pool).await;
  pool.close().await;
  rows.context("ask which tables were read")
}
