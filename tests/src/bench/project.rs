//! project: a backlog of eight partitions into the read model, beside the same statements with batches that were folded before.
//!
//! Ours are the projector's own steps: read, open, decode, fence, fold, commit; two partitions at a time. The control commits the batches that an
//! earlier pass folded, of the same sizes, through the same store into tables of its own, also two at a time: the same rows by the same statements in as many
//! transactions, each with its position row and its guard, so that what is left between the two is reading, opening, decoding, fencing and folding. A rival who wrote other
//! statements would be measured by those, not by ours; the statements themselves are what `rebuild` and `turns` say the price of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use pa_eventlog::fence::FenceState;
use pa_eventlog::reader::{Item, Reader};
use pa_eventlog::{EventLog, Partition};
use pa_pipeline::projector::partition::{BATCH_RECORDS, PartitionProjector, Step, mark_of};
use pa_projections::commit::postgres::{PostgresStore, WRITERS};
use pa_projections::schema::{Indexes, Schemas};
use pa_projections::{Batch, Fact, Mark, Outcome, ReadStore as _};
use pa_store::ReadSchema;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::line::Line;
use super::measure::{Pairs, Round, median};
use super::samples::PARTITIONS;
use super::server::Fresh;
use super::{Bench, cpu, samples};

const AGENTS: u128 = 64;
const TEXT_BYTES: usize = 300;
const RATIO_MIN: f64 = 0.85;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let fresh = bench.server.fresh().await?;
  let log = fresh.open_log(PARTITIONS).await?;
  let turns = bench.options.of(2, 40, 150);
  let events = samples::fill(&log, PARTITIONS, &samples::turns(AGENTS, turns, TEXT_BYTES)).await?;
  let identity = log.identity().await.context("ask the log who it is")?.id;
  let mut pairs = Pairs::default();
  for number in 0..bench.options.pairs() {
    let control = control(bench, &fresh, &log, identity, number).await?;
    let ours = ours(bench, &fresh, &log, number, events).await?;
    ensure!(control.units == ours.units, "the control wrote {} facts, ours {}", control.units, ours.units);
    pairs.push(control, ours);
  }
  let ratio = pairs.ratio();
  let line = Line::new("project", "events/s", median(pairs.ours.iter().map(Round::per_second)))
    .control(median(pairs.control.iter().map(Round::per_second)))
    .ratio(ratio)
    .cpu(median(pairs.ours.iter().map(Round::cpu_us)))
    .target(format!("ratio ≥ {RATIO_MIN}"), ratio >= RATIO_MIN)
    .also("worst_ratio", pairs.worst())
    .also("cpu_us_control", median(pairs.control.iter().map(Round::cpu_us)))
    .also("postgres_cpu_us", median(pairs.ours.iter().map(Round::postgres_us)))
    .also("postgres_cpu_us_control", median(pairs.control.iter().map(Round::postgres_us)));
  bench.printer.print(&line)
}

/// Empty tables for one round.
async fn store(fresh: &Fresh, name: &str) -> Result<Arc<PostgresStore>> {
  let schema = ReadSchema::new(name).context("the name of a read schema")?;
  let schemas = Schemas::new(&fresh.database);
  schemas.create(&schema, Indexes::Now).await.context("make a read schema")?;
  schemas.close().await;
  Ok(Arc::new(PostgresStore::new(&fresh.database, &schema)))
}

type Folded = (Mark, Mark, Batch);

async fn control(bench: &Bench, fresh: &Fresh, log: &Arc<dyn EventLog>, identity: Uuid, number: usize) -> Result<Round> {
  let store = store(fresh, &format!("read_{:012x}", 0xc0_0000 + number)).await?;
  let mut folded = Vec::new();
  for partition in 0..PARTITIONS {
    store.load(partition, identity).await.context("begin a partition")?;
    folded.push((partition, fold(log, partition).await?));
  }
  bench.server.settle().await?;
  let (begun, own, postgres) = (Instant::now(), cpu::own()?, bench.server.cpu()?);
  let writers = Arc::new(Semaphore::new(WRITERS as usize));
  let mut writing = JoinSet::new();
  for (partition, batches) in folded {
    let (store, writers) = (Arc::clone(&store), Arc::clone(&writers));
    writing.spawn(async move {
      let mut facts = 0;
      for (from, to, batch) in batches {
        let _writer = writers.acquire().await.context("the semaphore is open")?;
        let outcome = store.commit(partition, &from, &to, &batch).await.context("commit a folded batch")?;
        ensure!(outcome == Outcome::Committed, "a batch was not committed");
        facts += batch.facts() as u64;
      }
      Ok::<u64, anyhow::Error>(facts)
    });
  }
  let mut units = 0;
  while let Some(facts) = writing.join_next().await {
    units += facts.context("a writer panicked")??;
  }
  let round = Round { units, wall: begun.elapsed(), cpu: cpu::own()?.saturating_sub(own), postgres: bench.server.cpu()?.saturating_sub(postgres) };
  store.close().await;
  Ok(round)
}

/// A partition's batches, as large as the projector's.
async fn fold(log: &Arc<dyn EventLog>, partition: Partition) -> Result<Vec<Folded>> {
  let mut reader = Reader::new(Arc::clone(log), samples::opener(), partition, FenceState::START).with_records_max(BATCH_RECORDS);
  let (mut batches, mut from) = (Vec::new(), Mark::default());
  loop {
    let items = reader.poll().await.context("read the log")?;
    if items.is_empty() {
      return Ok(batches);
    }
    let mut batch = Batch::new(&BTreeMap::new());
    for item in &items {
      let Item::Decision(decision) = item else { continue };
      let facts: Vec<Fact<'_>> =
        decision.events.iter().map(|recorded| Fact { partition, position: recorded.position, meta: recorded.core(), event: &recorded.event }).collect();
      batch.add_decision(&facts);
    }
    let to = mark_of(&reader.state());
    batches.push((std::mem::replace(&mut from, to.clone()), to, batch));
  }
}

async fn ours(bench: &Bench, fresh: &Fresh, log: &Arc<dyn EventLog>, number: usize, events: u64) -> Result<Round> {
  let store = store(fresh, &format!("read_{:012x}", 0x0a_0000 + number)).await?;
  let opener = samples::opener();
  let mut projectors = Vec::new();
  for partition in 0..PARTITIONS {
    projectors.push(PartitionProjector::open(Arc::clone(log), Arc::clone(&opener), Arc::clone(&store), partition).await.context("open a partition")?);
  }
  bench.server.settle().await?;
  let (begun, own, postgres) = (Instant::now(), cpu::own()?, bench.server.cpu()?);
  let writers = Arc::new(Semaphore::new(WRITERS as usize));
  let mut writing = JoinSet::new();
  for mut projector in projectors {
    let writers = Arc::clone(&writers);
    writing.spawn(async move {
      loop {
        let _writer = writers.acquire().await.context("the semaphore is open")?;
        match projector.step().await.context("project")? {
          Step::Idle => return Ok::<u64, anyhow::Error>(projector.facts()),
          Step::Committed(_) => {}
          Step::Stale => anyhow::bail!("somebody else moved a partition"),
        }
      }
    });
  }
  let mut units = 0;
  while let Some(facts) = writing.join_next().await {
    units += facts.context("a projector panicked")??;
  }
  let round = Round { units, wall: begun.elapsed(), cpu: cpu::own()?.saturating_sub(own), postgres: bench.server.cpu()?.saturating_sub(postgres) };
  ensure!(round.units == events, "{units} facts were projected of {events}");
  store.close().await;
  Ok(round)
}
