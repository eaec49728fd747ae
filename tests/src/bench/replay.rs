//! replay: a partition's whole history, opened, decoded, fenced and folded, beside a raw reader that touches each byte.
//!
//! The history is that of turns with 1 KB records' worth of text, sealed and chained, read from its beginning to its end again and again for a whole round, each time
//! through a log that was opened anew and remembers nothing. Ours folds every decision into the rows of all projections, without a database behind.
//! `cpu_us_per_unit` is what ours costs beyond the raw reader: opening, decoding, fencing, folding.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use pa_eventlog::fence::FenceState;
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::reader::{Item, READ_RECORDS_MAX, Reader};
use pa_eventlog::{EventLog, Partition};
use pa_projections::{Batch, Fact};

use super::line::Line;
use super::measure::{Pairs, Round, median};
use super::raw::RawReader;
use super::server::Fresh;
use super::{Bench, cpu, samples};

/// One partition is read by one reader: more would only spread the same work.
const PARTITION: Partition = 0;
const AGENTS: u128 = 16;
const TEXT_BYTES: usize = 700;
const RATIO_MIN: f64 = 0.6;
const CPU_MAX: f64 = 6.0;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let fresh = bench.server.fresh().await?;
  let log: Arc<dyn EventLog> = PostgresLog::open(&fresh.database, 1, true).await.context("open the embedded log")?;
  let turns = bench.options.either(150, 600);
  let events = samples::fill(&log, 1, &samples::turns(AGENTS, turns, TEXT_BYTES)).await?;
  bench.server.settle().await?;
  // Both sides read from memory.
  control(bench, &fresh, events).await?;
  let mut pairs = Pairs::default();
  for _ in 0..bench.options.pairs() {
    pairs.push(control(bench, &fresh, events).await?, ours(bench, &fresh, events).await?);
  }
  let ratio = pairs.ratio();
  let (all, reading) = (median(pairs.ours.iter().map(Round::cpu_us)), median(pairs.control.iter().map(Round::cpu_us)));
  let line = Line::new("replay", "events/s", median(pairs.ours.iter().map(Round::per_second)))
    .control(median(pairs.control.iter().map(Round::per_second)))
    .ratio(ratio)
    .cpu(all - reading)
    .target(format!("ratio ≥ {RATIO_MIN}, CPU ≤ {CPU_MAX} µs"), ratio >= RATIO_MIN && all - reading <= CPU_MAX)
    .also("worst_ratio", pairs.worst())
    .also("cpu_us_with_reading", all)
    .also("cpu_us_control", reading);
  bench.printer.print(&line)
}

async fn control(bench: &Bench, fresh: &Fresh, events: u64) -> Result<Round> {
  let mut reader = RawReader::open(&fresh.database, PARTITION).await?;
  let (begun, own) = (Instant::now(), cpu::own()?);
  let (mut units, mut sum) = (0, 0_u64);
  while begun.elapsed() < bench.options.round() {
    let before = units;
    reader.position = 0;
    loop {
      let (rows, bytes) = reader.read(READ_RECORDS_MAX as i64).await?;
      if rows == 0 {
        break;
      }
      units += rows;
      sum = sum.wrapping_add(bytes);
    }
    ensure!(units - before > events, "the raw reader read {} rows of {events}", units - before);
  }
  black_box(sum);
  Ok(Round { units, wall: begun.elapsed(), cpu: cpu::own()?.saturating_sub(own), ..Round::default() })
}

async fn ours(bench: &Bench, fresh: &Fresh, events: u64) -> Result<Round> {
  let (begun, own) = (Instant::now(), cpu::own()?);
  let mut units = 0;
  while begun.elapsed() < bench.options.round() {
    let log: Arc<dyn EventLog> = PostgresLog::open(&fresh.database, 1, true).await.context("open the embedded log")?;
    let read = replay(&log).await?;
    ensure!(read == events, "{read} events were read of {events}");
    units += read;
  }
  Ok(Round { units, wall: begun.elapsed(), cpu: cpu::own()?.saturating_sub(own), ..Round::default() })
}

/// Reads the whole history once; how many events.
async fn replay(log: &Arc<dyn EventLog>) -> Result<u64> {
  let mut reader = Reader::new(Arc::clone(log), samples::opener(), PARTITION, FenceState::START);
  let mut units = 0;
  let parked = BTreeMap::new();
  loop {
    let items = reader.poll().await.context("read the log")?;
    if items.is_empty() {
      break;
    }
    let mut batch = Batch::new(&parked);
    for item in &items {
      let Item::Decision(decision) = item else { continue };
      let facts: Vec<Fact<'_>> = decision.events.iter().map(of).collect();
      batch.add_decision(&facts);
      units += facts.len() as u64;
    }
    black_box(&batch);
  }
  Ok(units)
}

fn of(recorded: &Arc<pa_eventlog::reader::Recorded>) -> Fact<'_> {
  Fact { partition: PARTITION, position: recorded.position, meta: recorded.core(), event: &recorded.event }
}
