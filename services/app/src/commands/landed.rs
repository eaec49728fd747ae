//! What a log that landed here needs beside it: the tables to read from and the decider's state, both folded from it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use pa_eventlog::EventLog;
use pa_eventlog::moving::Tally;
use pa_eventlog::opener::Opener;
use pa_pipeline::projector::{self, build};
use pa_projections::live::Live;
use pa_projections::schema::Schemas;
use pa_store::clock::SystemClock;
use pa_store::{Database, ReadSchema};
use uuid::Uuid;

/// Between two words about how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// A projector's parts for a log that is not the one of the configuration yet.
pub(super) fn projector_parts(database: &Database, log: &Arc<dyn EventLog>, opener: &Arc<Opener>, process: Uuid) -> projector::Parts {
  projector::Parts { database: database.clone(), log: Arc::clone(log), opener: Arc::clone(opener), clock: Arc::new(SystemClock), live: Live::remote(), process }
}

/// Folds the tables afresh; those of other versions go, for they were folded from another log.
pub(super) async fn tables(parts: &projector::Parts) -> Result<u64> {
  let (schemas, ours) = (Schemas::new(&parts.database), pa_projections::schema::current());
  let others = schemas.list().await?.into_iter().filter(|schema: &ReadSchema| schema.name() != ours.name());
  for other in others {
    schemas.drop(&other).await?;
  }
  Ok(build::rebuild(parts, &schemas).await.context("fold the tables from the new log")?.facts)
}

/// A line for each agent, then one for all.
pub(super) fn print_tally(tally: &Tally) -> Result<()> {
  for (agent, of) in &tally.agents {
    super::print(&format!("agent={agent} events={} hash={}", of.events, hex::encode(of.hash)))?;
  }
  super::print(&format!("agents={} events={} hash={}", tally.agents.len(), tally.events(), hex::encode(tally.hash())))
}

/// How fast something goes, told on the way and at the end.
pub(super) struct Pace {
  what: &'static str,
  begun: Instant,
  told: Instant,
}

impl Pace {
  pub(super) fn start(what: &'static str) -> Self {
    let now = Instant::now();
    Self { what, begun: now, told: now }
  }

  /// Says how far it is, now and then.
  pub(super) fn told(&mut self, count: u64) {
    if self.told.elapsed() >= TOLD_EVERY {
      self.told = Instant::now();
      crate::say(&format!("{}: {}", self.what, self.rate(count)));
    }
  }

  /// Count, time and rate.
  pub(super) fn rate(&self, count: u64) -> String {
    let seconds = self.begun.elapsed().as_secs_f64().max(0.001);
    #[expect(clippy::cast_precision_loss, reason = "a rate is rounded anyway")]
    let rate = count as f64 / seconds;
    format!("{count} events in {seconds:.1} s ({rate:.0}/s)")
  }
}
