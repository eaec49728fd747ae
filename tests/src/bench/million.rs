//! million: what the tools take for a log of a million events, and what people notice of them. Runs only when it is asked for by name.
//!
//! A log is filled with the turns of some agents. At a quarter, at half and at the whole of it `pa rebuild` runs alone, so that its memory can be compared; at the whole
//! `pa migrate` builds tables and the decider's state from nothing. Then the product serves: accounts write ten messages a second, first by themselves, then while `pa rebuild`
//! and `pa verify` run, and `pa migrate` too when the program is `pa-under-test`, which can be a later version. Every tool must end with 0.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pa_projections::schema::{self, Schemas};
use pa_projections::testing::Story;

use super::Bench;
use super::latency::Bare;
use super::line::Line;
use super::measure::quantile;
use super::model::InstantModel;
use super::product::Home;
use super::samples::{self, Filler, PARTITIONS};
use super::traffic::Audience;

/// Agents of the history, and those that write beside the tools.
const AGENTS: u128 = 64;
const WRITERS: usize = 16;
const TEXT_BYTES: usize = 300;
/// Events of one turn of [`Story::turn`].
const EVENTS_A_TURN: u64 = 8;
/// Rounds of turns that are told before they are written, so that memory stays flat.
const TURNS_AT_ONCE: u64 = 20;
/// Ten messages a second.
const SPACING: Duration = Duration::from_millis(100);
/// How often a tool's memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Design: a million events in 90 s.
const SECONDS_A_MILLION: f64 = 90.0;
/// Four times the log may cost so much more memory, which is noise and pools, and not the log.
const GROWTH_MAX: f64 = 1.25;

/// What a tool took.
struct Ran {
  events: u64,
  wall: Duration,
  peak_mb: f64,
}

impl Ran {
  fn per_second(&self) -> f64 {
    self.events as f64 / self.wall.as_secs_f64()
  }

  fn fast(&self) -> bool {
    self.wall.as_secs_f64() * 1e6 / self.events as f64 <= SECONDS_A_MILLION
  }

  fn line(&self, name: &str) -> Line {
    Line::new(name, "events/s", self.per_second())
      .more("events", self.events)
      .also("seconds", self.wall.as_secs_f64())
      .also("peak_mb", self.peak_mb)
      .target(format!("a million events in {SECONDS_A_MILLION} s"), self.fast())
  }
}

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let events = bench.options.of(4_000, 100_000, 1_000_000);
  let model = InstantModel::start()?;
  let home = Home::new(bench, &model.base_url).await?;
  let events = alone(bench, &home, events).await?;
  beside(bench, &home, events).await
}

/// The tools with nobody else, on a log that grows; how many events it has.
async fn alone(bench: &Bench, home: &Home, events: u64) -> Result<u64> {
  std::fs::create_dir_all(home.folder()).context("make the product's folder")?;
  let log = home.log().await?;
  let mut filler = Filler::begin(&log, home.keys()?, PARTITIONS)?;
  let mut story = Story::default();
  (0..AGENTS).for_each(|number| story.create(samples::agent(number)));
  let (mut rebuilt, begun) = (Vec::new(), Instant::now());
  for part in [4, 2, 1] {
    let filled = fill(&mut filler, &mut story, events / part).await?;
    eprintln!("bench: {filled} events after {:.0} s", begun.elapsed().as_secs_f64());
    bench.server.settle().await?;
    rebuilt.push(tool(home, &["rebuild"], &[], filled)?.finish().await?);
  }
  let (Some(first), Some(last)) = (rebuilt.first(), rebuilt.last()) else { anyhow::bail!("nothing was rebuilt") };
  let flat = last.peak_mb <= first.peak_mb * GROWTH_MAX;
  let line = last.line("rebuild").also("peak_mb_quarter", first.peak_mb).also("peak_mb_half", rebuilt[1].peak_mb);
  bench.printer.print(&line.target(format!("a million events in {SECONDS_A_MILLION} s, memory ≤ {GROWTH_MAX} × that for a quarter"), last.fast() && flat))?;
  let whole = last.events;
  let schemas = Schemas::new(home.database());
  schemas.drop(&schema::current()).await.context("drop the tables")?;
  schemas.close().await;
  bench.server.settle().await?;
  bench.printer.print(&tool(home, &["migrate"], &[], whole)?.finish().await?.line("migrate"))?;
  Ok(whole)
}

/// Fills the log up to so many events.
async fn fill(filler: &mut Filler, story: &mut Story, upto: u64) -> Result<u64> {
  let text: String = "a question and its answer ".chars().cycle().take(TEXT_BYTES).collect();
  let round = EVENTS_A_TURN * u64::try_from(AGENTS).context("few agents")?;
  let mut filled = filler.flush().await?;
  while filled < upto {
    for _ in 0..TURNS_AT_ONCE.min((upto - filled).div_ceil(round)) {
      for number in 0..AGENTS {
        story.turn(samples::agent(number), &text, &text);
      }
    }
    filler.add(&story.decisions).await?;
    story.decisions.clear();
    filled = filler.flush().await?;
  }
  Ok(filled)
}

/// The same tools while people write.
async fn beside(bench: &Bench, home: &Home, events: u64) -> Result<()> {
  let product = home.start_within(600).await?;
  let audience = Audience::gather(&product, home.accounts(WRITERS).await?).await?;
  let mut bare = Bare::open(bench).await?;
  let h = quantile(&bare.probe(bench.options.of(5, 50, 200), SPACING).await?, 0.5);
  // Everything is asked for once before it counts.
  audience.paced(&product, SPACING, bench.options.of(5, 20, 50)).await?;
  let without = audience.paced(&product, SPACING, bench.options.of(10, 100, 300)).await?.turn;
  for name in ["rebuild", "verify", "migrate"] {
    // Only a later version has something to migrate while this one serves.
    let later = name == "migrate";
    if later && !home.has_generations() {
      continue;
    }
    let settings: &[(&str, &str)] = if later { &[("PA_TEST_GENERATION", "1")] } else { &[] };
    let running = tool(home, &[name], settings, events)?;
    let traffic = audience.paced(&product, SPACING, bench.options.of(10, 50, 300));
    let (ran, with) = tokio::join!(running.finish(), traffic);
    let (ran, with) = (ran?, with?.turn);
    let limit = 6.0 * h + 4.0;
    let line = ran.line(&format!("{name}_beside")).also("h_ms", h).also("turn_p50_ms", quantile(&with, 0.5)).also("turn_p99_ms", quantile(&with, 0.99));
    let line = line.also("turn_p50_ms_without", quantile(&without, 0.5)).also("turn_p99_ms_without", quantile(&without, 0.99));
    bench.printer.print(&line.target("turn p50 ≤ 6h + 4 ms meanwhile", quantile(&with, 0.5) <= limit))?;
  }
  Ok(())
}

/// A tool that runs.
struct Running {
  child: Child,
  begun: Instant,
  events: u64,
  name: String,
}

fn tool(home: &Home, arguments: &[&str], settings: &[(&str, &str)], events: u64) -> Result<Running> {
  let name = arguments.join(" ");
  let mut command = home.command(arguments);
  command.envs(settings.iter().copied()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
  let begun = Instant::now();
  let child = command.spawn().with_context(|| format!("start pa {name}"))?;
  Ok(Running { child, begun, events, name })
}

impl Running {
  /// Waits for its end.
  async fn finish(mut self) -> Result<Ran> {
    let (mut peak, pid) = (0, self.child.id());
    let status = loop {
      peak = peak.max(peak_bytes(pid).unwrap_or(0));
      if let Some(status) = self.child.try_wait().context("look after a tool")? {
        break status;
      }
      tokio::time::sleep(LOOK_EVERY).await;
    };
    ensure!(status.success(), "pa {} ended with {status}", self.name);
    Ok(Ran { events: self.events, wall: self.begun.elapsed(), peak_mb: peak as f64 / 1e6 })
  }
}

/// The most memory that a process has ever had resident; none once it has ended.
fn peak_bytes(pid: u32) -> Option<u64> {
  let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
  let kilobytes: u64 = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()?;
  Some(kilobytes * 1024)
}
