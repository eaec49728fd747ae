//! visible, push and turn: what the owner of an agent waits for, out of one product under paced traffic and under as much as it takes.
//!
//! h is probed before each round. visible: mutation → a query at its position shows the message. push: mutation → the message's frame on the subscription. turn: mutation
//! → the frame with the finished reply of a model that answers at once. All from the instant at which a message was due, so that a stall counts for all whom it kept
//! waiting. Half load is half of what the product did without pauses.

use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;

use super::latency::Bare;
use super::line::Line;
use super::measure::{Round, histogram, median, quantile};
use super::model::InstantModel;
use super::product::{Home, Product};
use super::traffic::{Audience, Paced};
use super::{Bench, cpu};

const AGENTS: usize = 64;
/// In a tiny run.
const AGENTS_FEW: usize = 4;
/// Ten messages a second.
const SLOWLY: Duration = Duration::from_millis(100);
const TURNS_MIN: f64 = 600.0;

/// Latencies of all rounds.
struct Rounds {
  bare: Histogram<u64>,
  slow: Paced,
  half: Paced,
  half_rate: f64,
  full: Vec<Round>,
  /// CPU of the bench's own process: clients and model.
  beside: Vec<f64>,
  waits: Histogram<u64>,
}

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let model = InstantModel::start()?;
  let home = Home::new(bench, &model.base_url).await?;
  let product = home.start().await?;
  let rounds = rounds(bench, &home, &product).await?;
  print(bench, &rounds)
}

async fn rounds(bench: &Bench, home: &Home, product: &Product) -> Result<Rounds> {
  let nothing = || Paced { visible: histogram(), push: histogram(), turn: histogram() };
  let mut all = Rounds { bare: histogram(), slow: nothing(), half: nothing(), half_rate: 0.0, full: Vec::new(), beside: Vec::new(), waits: histogram() };
  let mut bare = Bare::open(bench).await?;
  let seconds = u32::try_from(bench.options.round().as_secs()).unwrap_or(1).max(1);
  // Everything is asked for once before it counts: plans, keys, things.
  let agents = bench.options.of(AGENTS_FEW, AGENTS, AGENTS);
  let audience = Audience::gather(product, home.accounts(agents).await?).await?;
  let warm = audience.closed(product, Duration::from_millis(bench.options.of(200, 2_000, 5_000))).await?;
  let mut capacity = warm.turns as f64 / warm.wall.as_secs_f64();
  let paced = ["visible", "push", "turn"].iter().any(|name| bench.options.wants(name));
  for _ in 0..bench.options.pairs() {
    // Conversations begin anew with each round, so that no prompt is longer than those of the round before.
    let audience = Audience::gather(product, home.accounts(agents).await?).await?;
    if paced {
      all.bare += bare.probe(5 * seconds, SLOWLY).await?;
      add(&mut all.slow, &audience.paced(product, SLOWLY, 10 * seconds).await?);
      all.half_rate = capacity / 2.0;
      #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousands at the most, and never below nothing")]
      let count = (all.half_rate * f64::from(seconds)) as u32;
      let count = bench.options.of(5, count, count);
      add(&mut all.half, &audience.paced(product, Duration::from_secs_f64(1.0 / all.half_rate), count).await?);
    }
    let (own, postgres, beside) = (product.cpu()?, bench.server.cpu()?, cpu::own()?);
    let closed = audience.closed(product, bench.options.round()).await?;
    let round =
      Round { units: closed.turns, wall: closed.wall, cpu: product.cpu()?.saturating_sub(own), postgres: bench.server.cpu()?.saturating_sub(postgres) };
    all.beside.push(cpu::own()?.saturating_sub(beside).as_secs_f64() * 1e6 / closed.turns as f64);
    all.waits += closed.latencies;
    capacity = round.per_second();
    all.full.push(round);
  }
  Ok(all)
}

fn add(all: &mut Paced, more: &Paced) {
  all.visible += &more.visible;
  all.push += &more.push;
  all.turn += &more.turn;
}

fn print(bench: &Bench, all: &Rounds) -> Result<()> {
  let (h, h_slow) = (quantile(&all.bare, 0.5), quantile(&all.bare, 0.99));
  let reach = |name: &str, ours: &Histogram<u64>, hops: f64, more: f64| {
    let (p50, p99, limit) = (quantile(ours, 0.5), quantile(ours, 0.99), hops * h + more);
    let line = Line::new(name, "ms, p50", p50).control(hops * h).also("h_ms", h).also("p99_ms", p99).also("over_ms", p50 - hops * h);
    (line, p50 <= limit, p99)
  };
  if bench.options.wants("visible") {
    for (name, paced) in [("visible", &all.slow), ("visible_half_load", &all.half)] {
      let (line, fast, p99) = reach(name, &paced.visible, 2.0, 2.0);
      let line = line.target("p50 ≤ 2h + 2 ms, p99 ≤ 2 × h's p99 + 15 ms", fast && p99 <= 2.0 * h_slow + 15.0).also("p99_ms_control", 2.0 * h_slow);
      bench.printer.print(&if name == "visible" { line.also("per_second", 10.0) } else { line.also("per_second", all.half_rate) })?;
    }
  }
  if bench.options.wants("push") {
    for (name, paced) in [("push", &all.slow), ("push_half_load", &all.half)] {
      let (line, fast, _) = reach(name, &paced.push, 2.0, 3.0);
      bench.printer.print(&line.target("p50 ≤ 2h + 3 ms", fast))?;
    }
  }
  if bench.options.wants("turn") {
    for (name, paced) in [("turn", &all.slow), ("turn_half_load", &all.half)] {
      let (line, fast, _) = reach(name, &paced.turn, 6.0, 4.0);
      bench.printer.print(&line.target("p50 ≤ 6h + 4 ms", fast))?;
    }
  }
  if bench.options.wants("turns") {
    let rate = median(all.full.iter().map(Round::per_second));
    let line = Line::new("turns", "turns/s", rate)
      .cpu(median(all.full.iter().map(Round::cpu_us)))
      .target(format!("≥ {TURNS_MIN} turns/s over {AGENTS} agents"), rate >= TURNS_MIN)
      .also("worst", all.full.iter().map(Round::per_second).fold(f64::INFINITY, f64::min))
      .also("postgres_cpu_us", median(all.full.iter().map(Round::postgres_us)))
      .also("clients_and_model_cpu_us", median(all.beside.iter().copied()))
      .also("p50_ms", quantile(&all.waits, 0.5))
      .also("p99_ms", quantile(&all.waits, 0.99));
    bench.printer.print(&line)?;
  }
  Ok(())
}
