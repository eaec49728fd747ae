//! append: sealed, chained decisions into the embedded log, beside a raw multi-row insert of the same bytes.
//!
//! Both sides: 64 callers who each append one decision of four 1 KB records and wait until it is durable; lanes that commit what waits in one statement. The
//! control's callers hand in finished records; ours compose, chain, seal and hash them first. The CPU is this process's: callers, sealing, driver, no Postgres.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::{EventLog as _, Stream};
use tokio::task::JoinSet;

use super::line::Line;
use super::measure::{Pairs, Round, median};
use super::raw::RawLog;
use super::samples::{Author, PARTITIONS};
use super::{Bench, cpu};

const CALLERS: u128 = 64;
const EVENTS: usize = 4;
/// Microseconds of our own CPU that a record may cost.
const CPU_MAX: f64 = 6.0;
const RATIO_MIN: f64 = 0.85;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let (rival, own) = (bench.server.fresh().await?, bench.server.fresh().await?);
  let control = Side::Raw(Arc::new(RawLog::open(&rival.database, PARTITIONS).await?));
  let ours = Side::Ours(PostgresLog::open(&own.database, PARTITIONS, true).await.context("open the embedded log")?);
  let mut pairs = Pairs::default();
  for _ in 0..bench.options.pairs() {
    pairs.push(round(bench, &control).await?, round(bench, &ours).await?);
  }
  let (ratio, cpu) = (pairs.ratio(), median(pairs.ours.iter().map(Round::cpu_us)));
  let line = Line::new("append", "records/s", median(pairs.ours.iter().map(Round::per_second)))
    .control(median(pairs.control.iter().map(Round::per_second)))
    .ratio(ratio)
    .cpu(cpu)
    .target(format!("ratio ≥ {RATIO_MIN}, CPU ≤ {CPU_MAX} µs"), ratio >= RATIO_MIN && cpu <= CPU_MAX)
    .also("worst_ratio", pairs.worst())
    .also("cpu_us_control", median(pairs.control.iter().map(Round::cpu_us)))
    .also("postgres_cpu_us", median(pairs.ours.iter().map(Round::postgres_us)))
    .also("postgres_cpu_us_control", median(pairs.control.iter().map(Round::postgres_us)));
  bench.printer.print(&line)
}

/// Who appends.
#[derive(Clone)]
enum Side {
  Raw(Arc<RawLog>),
  Ours(Arc<PostgresLog>),
}

async fn round(bench: &Bench, side: &Side) -> Result<Round> {
  bench.server.settle().await?;
  let mut authors = Vec::new();
  for number in 0..CALLERS {
    authors.push(Author::new(number, EVENTS).await?);
  }
  let (begun, own, postgres) = (Instant::now(), cpu::own()?, bench.server.cpu()?);
  let mut callers = JoinSet::new();
  for author in authors {
    callers.spawn(call(side.clone(), author, begun + bench.options.round()));
  }
  let mut units = 0;
  while let Some(appended) = callers.join_next().await {
    units += appended.context("a caller panicked")??;
  }
  Ok(Round { units, wall: begun.elapsed(), cpu: cpu::own()?.saturating_sub(own), postgres: bench.server.cpu()?.saturating_sub(postgres) })
}

/// Appends decisions until `end`; how many records.
async fn call(side: Side, mut author: Author, end: Instant) -> Result<u64> {
  let finished = author.compose()?;
  let mut appended = 0;
  while Instant::now() < end {
    match &side {
      Side::Raw(raw) => drop(raw.append(author.partition, finished.clone()).await?),
      Side::Ours(log) => {
        let records = author.compose()?;
        drop(log.append(Stream::Events, author.partition, records).await.context("append to the embedded log")?);
      }
    }
    appended += EVENTS as u64;
  }
  Ok(appended)
}
