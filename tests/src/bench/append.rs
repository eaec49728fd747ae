//! append: sealed, chained decisions into the log, beside a raw multi-row insert, or a raw idempotent producer, of the same bytes.
//!
//! Both sides: 64 callers who each append one decision of four 1 KB records and wait until it is durable; what waits at the same time goes out together. The control's
//! callers hand in finished records ([`super::raw`]); ours compose, chain, seal and hash each of them first, so that all of that is in the ratio. The CPU is this process's:
//! callers, sealing, driver or client library, neither Postgres nor brokers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pa_eventlog::{EventLog, Stream};
use tokio::task::JoinSet;

use super::line::Line;
use super::measure::{Pairs, Round, median};
use super::raw::RawLog;
use super::samples::{Author, PARTITIONS};
use super::{Bench, cpu};

const CALLERS: u128 = 64;
const EVENTS: usize = 4;
const WARM: Duration = Duration::from_millis(50);
/// Microseconds of our own CPU that a record may cost.
const CPU_MAX: f64 = 6.0;
/// Beside a multi-row insert, and beside a producer.
const RATIO_MIN: f64 = 0.85;
const RATIO_MIN_ON_KAFKA: f64 = 0.9;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let (rival, own) = (bench.server.fresh().await?, bench.server.fresh().await?);
  let control = Side::Raw(Arc::new(RawLog::open(&rival, PARTITIONS).await?));
  let ours = Side::Ours(own.open_log(PARTITIONS).await?);
  warm(&control, &ours).await?;
  let mut pairs = Pairs::default();
  for _ in 0..bench.options.pairs() {
    pairs.push(round(bench, &control).await?, round(bench, &ours).await?);
  }
  let (ratio, cpu) = (pairs.ratio(), median(pairs.ours.iter().map(Round::cpu_us)));
  let least = if bench.server.is_embedded() { RATIO_MIN } else { RATIO_MIN_ON_KAFKA };
  let server = bench.server.log_cpu_name();
  let line = Line::new("append", "records/s", median(pairs.ours.iter().map(Round::per_second)))
    .control(median(pairs.control.iter().map(Round::per_second)))
    .ratio(ratio)
    .cpu(cpu)
    .target(format!("ratio ≥ {least}, CPU ≤ {CPU_MAX} µs"), ratio >= least && cpu <= CPU_MAX)
    .also("worst_ratio", pairs.worst())
    .also("cpu_us_control", median(pairs.control.iter().map(Round::cpu_us)))
    .also(server, median(pairs.ours.iter().map(Round::postgres_us)))
    .also(&format!("{server}_control"), median(pairs.control.iter().map(Round::postgres_us)));
  bench.printer.print(&line)
}

/// Who appends.
#[derive(Clone)]
enum Side {
  Raw(Arc<RawLog>),
  Ours(Arc<dyn EventLog>),
}

/// The first append of a producer waits for its id.
async fn warm(control: &Side, ours: &Side) -> Result<()> {
  for side in [control, ours] {
    call(side.clone(), Author::new(0, EVENTS).await?, Instant::now() + WARM).await?;
  }
  Ok(())
}

async fn round(bench: &Bench, side: &Side) -> Result<Round> {
  bench.server.settle().await?;
  let mut authors = Vec::new();
  for number in 0..CALLERS {
    authors.push(Author::new(number, EVENTS).await?);
  }
  let (begun, own, postgres) = (Instant::now(), cpu::own()?, bench.server.log_cpu()?);
  let mut callers = JoinSet::new();
  for author in authors {
    callers.spawn(call(side.clone(), author, begun + bench.options.round()));
  }
  let mut units = 0;
  while let Some(appended) = callers.join_next().await {
    units += appended.context("a caller panicked")??;
  }
  Ok(Round { units, wall: begun.elapsed(), cpu: cpu::own()?.saturating_sub(own), postgres: bench.server.log_cpu()?.saturating_sub(postgres) })
}

/// Appends decisions until `end`; how many records.
async fn call(side: Side, mut author: Author, end: Instant) -> Result<u64> {
  let (records, mut appended) = (author.compose()?, 0);
  let finished = match &side {
    Side::Raw(raw) => Some(raw.finish(records)),
    Side::Ours(_) => None,
  };
  while Instant::now() < end {
    match (&side, &finished) {
      (Side::Raw(raw), Some(finished)) => drop(raw.append(author.partition, finished.clone()).await?),
      (Side::Raw(_), None) => bail!("a control has finished bytes"),
      (Side::Ours(log), _) => {
        let records = author.compose()?;
        drop(log.append(Stream::Events, author.partition, records).await.context("append to the log")?);
      }
    }
    appended += EVENTS as u64;
  }
  Ok(appended)
}
