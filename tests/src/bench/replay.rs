//! replay: a partition's whole history, opened, decoded, fenced and folded, beside a raw reader that touches each byte.
//!
//! The history is that of turns with 1 KB records' worth of text, sealed and chained, read from its beginning to its end again and again for a whole round, each time
//! through a log that was opened anew and remembers nothing (opening it is not counted). Ours opens, decodes and fences every record and folds every decision into the rows
//! of all projections, without a database behind. `cpu_us_per_unit` is what ours costs beyond the raw reader.
//!
//! The control reads the same stored records in batches of the same size over a connection, or a consumer, of its own, and adds up the bytes of metadata and value (of
//! headers and value on Kafka) where they lie: it makes no record of them, which is the least that anybody could do who looks at each byte. Both sides read from memory: the
//! history was written, and read once, right before. One reader each: the ratio says what our work costs a reader, not how many readers fit into a machine.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use pa_eventlog::fence::FenceState;
use pa_eventlog::reader::{Item, Reader};
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
  let log = fresh.open_log(1).await?;
  let turns = bench.options.of(5, 150, 600);
  // A consumer's first fetch takes a while on both sides: there must be much to read behind it.
  let turns = if bench.server.is_embedded() { turns } else { 4 * turns };
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
  let mut reader = RawReader::of_events(fresh, PARTITION).await?;
  let (mut round, mut sum) = (Round::default(), 0_u64);
  while round.wall < bench.options.round() {
    let (begun, own) = (Instant::now(), cpu::own()?);
    let (records, bytes) = reader.drain().await?;
    round.wall += begun.elapsed();
    round.cpu += cpu::own()?.saturating_sub(own);
    ensure!(records > events, "the raw reader read {records} records of {events}");
    (round.units, sum) = (round.units + records, sum.wrapping_add(bytes));
  }
  black_box(sum);
  Ok(round)
}

async fn ours(bench: &Bench, fresh: &Fresh, events: u64) -> Result<Round> {
  let mut round = Round::default();
  while round.wall < bench.options.round() {
    // Connections and checks of a start are no part of reading.
    let log = fresh.open_log(1).await?;
    let (begun, own) = (Instant::now(), cpu::own()?);
    let read = replay(&log).await?;
    round.wall += begun.elapsed();
    round.cpu += cpu::own()?.saturating_sub(own);
    ensure!(read == events, "{read} events were read of {events}");
    round.units += read;
  }
  Ok(round)
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
