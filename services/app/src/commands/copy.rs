//! `pa log copy`: the log into another engine, or into another number of partitions.
//!
//! While pa runs, a copy to Kafka brings what is there and says so; called again when pa stands still it goes on from there, settles every input, reads both logs again and
//! compares them, and only then makes the new log the one of this database. Until that last step nothing has changed for the old log.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pa_eventlog::fence::{FenceState, NextInput};
use pa_eventlog::kafka::{self, KafkaLog};
use pa_eventlog::moving::{self, Copied, Ends, Source, Tally, Target, Walk};
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::{EventLog, Identity, Partition, Stream};
use pa_pipeline::decider;
use pa_store::Role;
use pa_store::checkpoint::{self, Scope};
use pa_store::ops::log_identity::LogIdentity;
use pa_store::ops::{moving as rows, nodes};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::landed::{self, Pace};
use crate::config::Config;
use crate::storage::Storage;
use crate::wire::{self, Shared};

/// A process that was killed counts as running for so long.
const STANDS_STILL_WITHIN: Duration = Duration::from_secs(15);
/// Inputs that wait are decided thousands a second; when nothing moves for so long, something is in the way.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where the log goes.
enum Goal {
  Postgres,
  Kafka(Box<kafka::Config>),
}

impl Goal {
  fn of(config: &Config, to: &str) -> Result<Self> {
    if to == "postgres" {
      return Ok(Self::Postgres);
    }
    let place = to.strip_prefix("kafka://").with_context(|| format!("--to {to} is neither postgres nor kafka://HOST:PORT,…[/PREFIX]"))?;
    let (brokers, prefix) = place.split_once('/').unwrap_or((place, &config.kafka.prefix));
    Ok(Self::Kafka(Box::new(config.kafka_at(brokers, prefix)?)))
  }

  async fn open(&self, storage: &Storage, partitions: Partition, sealed: bool) -> Result<Arc<dyn EventLog>> {
    Ok(match self {
      Self::Postgres => PostgresLog::aside(&storage.database, partitions, sealed).await?,
      Self::Kafka(config) => KafkaLog::aside(config, Some(partitions), sealed).await?.context("the topics can't be made")?,
    })
  }

  /// The settings with which pa finds the log there.
  fn settings(&self, partitions: Partition) -> String {
    match self {
      Self::Postgres => format!("PA__LOG__PARTITIONS={partitions}, and without PA_KAFKA_BROKERS"),
      Self::Kafka(config) => format!("PA_KAFKA_BROKERS={} PA_KAFKA_PREFIX={} PA__LOG__PARTITIONS={partitions}", config.brokers, config.prefix),
    }
  }
}

/// Copies, and makes the copy the log of this database when all of it is there.
pub(crate) async fn run(config: &Config, to: &str, partitions: Option<Partition>) -> Result<()> {
  let goal = Goal::of(config, to)?;
  super::with(config, async |storage, shared| {
    let partitions = partitions.unwrap_or(shared.identity.partitions);
    ensure!((1..=1024).contains(&partitions), "--partitions must lie between 1 and 1024");
    let pool = storage.database.pool(Role::Tool);
    let claim = rows::claim(&pool).await?.context("another `pa log copy` works on this log already")?;
    let moved = Move { storage, shared, goal, partitions }.run().await;
    claim.release().await;
    moved
  })
  .await
}

struct Move<'a> {
  storage: &'a Storage,
  shared: &'a Shared,
  goal: Goal,
  partitions: Partition,
}

impl Move<'_> {
  async fn run(self) -> Result<()> {
    let identity = &self.shared.identity;
    let stands_still = self.stands_still().await?;
    if let Goal::Postgres = self.goal {
      ensure!(
        identity.kind != "postgres",
        "the log lies in Postgres already; for another number of partitions copy it to a Kafka, and from there back with --partitions"
      );
      ensure!(stands_still, "pa is running: stop it first (infra/down)");
    }
    if stands_still {
      self.settle().await?;
    }
    let log = self.goal.open(self.storage, self.partitions, identity.sealed).await?;
    let new = log.identity().await?;
    ensure!(new.id != identity.id, "that is where the log lies already");
    ensure!(
      new.partitions == self.partitions,
      "the topics there have {} partitions, and {} are wanted: choose another prefix",
      new.partitions,
      self.partitions
    );
    let ends = Ends::of(self.shared.log.as_ref()).await?;
    let copied = self.pass(&log, &ends).await?;
    ensure!(
      stands_still,
      "pa is running, so more comes on: what was there is copied. Stop it (infra/down) and call this again; it goes on from here, and ends the move"
    );
    if let Some((partition, from, end)) = copied.undecided(&ends).first() {
      bail!("the inputs of partition {partition} from {from} to {end} are not decided: start pa, let it come to rest, stop it, and call this again");
    }
    self.compare(&log, &ends, &copied.tally).await?;
    self.switch(&ends, &new).await?;
    self.derive(&log).await?;
    landed::print_tally(&copied.tally)?;
    super::print(&format!("log={} partitions={} id={}", new.kind, new.partitions, new.id))?;
    super::print(&format!("start pa from now on with {}", self.goal.settings(self.partitions)))?;
    super::print(match identity.kind.as_str() {
      "postgres" => "the old log is kept in Postgres as it was until a log is copied back there",
      _ => "the old topics are kept as they were: delete them when you have seen the new log work",
    })
  }

  /// Whether nobody works on the log. A process that was killed a moment ago is waited for.
  async fn stands_still(&self) -> Result<bool> {
    let deadline = Instant::now() + STANDS_STILL_WITHIN;
    while self.storage.owns_folder() {
      // Whoever was this node is dead: its folder is ours.
      if nodes::alive(&self.shared.control).await?.iter().all(|node| node.holder.node == self.storage.node()) {
        return Ok(true);
      }
      if Instant::now() >= deadline {
        break;
      }
      sleep(LOOK_EVERY).await;
    }
    Ok(false)
  }

  /// Decides what waits, as pa does when it starts. Nothing is worked on: no model is asked and nothing is sent.
  async fn settle(&self) -> Result<()> {
    if self.waiting().await? == 0 {
      return Ok(());
    }
    let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
    let parts = self.shared.decider(self.storage.database.pool(Role::Decider));
    let deciders = decider::run(&parts, 0..self.shared.identity.partitions, &tracker, &stop);
    let settled = self.settled(&deciders).await;
    stop.cancel();
    tracker.close();
    tracker.wait().await;
    settled
  }

  async fn settled(&self, deciders: &[(Partition, tokio::sync::watch::Receiver<decider::Status>)]) -> Result<()> {
    let (mut least, mut moved) = (u64::MAX, Instant::now());
    loop {
      let waiting = self.waiting().await?;
      let leading = deciders.iter().all(|(_, status)| matches!(*status.borrow(), decider::Status::Leading(_)));
      if waiting == 0 && leading {
        return Ok(());
      }
      if waiting < least {
        (least, moved) = (waiting, Instant::now());
      }
      let failing = deciders.iter().find_map(|(partition, status)| match &*status.borrow() {
        decider::Status::Failing(why) => Some(format!("partition {partition}: {why}")),
        decider::Status::Waiting | decider::Status::CatchingUp | decider::Status::Leading(_) => None,
      });
      ensure!(moved.elapsed() < SETTLES_WITHIN, "{waiting} inputs can't be settled ({})", failing.unwrap_or_else(|| "nothing moves".to_owned()));
      sleep(LOOK_EVERY).await;
    }
  }

  /// How many inputs are not decided, read on from the deciders' checkpoints.
  async fn waiting(&self) -> Result<u64> {
    let log = self.shared.log.as_ref();
    let mut waiting = 0;
    for partition in 0..self.shared.identity.partitions {
      let scope = Scope { part: i16::try_from(partition).context("partition")?, fold_version: wire::fold_version() };
      let from = checkpoint::load(&self.shared.control, scope).await?.map_or((FenceState::START, NextInput::START), |mark| {
        let state = FenceState { next_position: mark.next_position, epoch: mark.epoch, seq: mark.seq, last: mark.last };
        (state, NextInput(mark.next_input))
      });
      let mut walk = Walk::from_saved(log, &self.shared.opener, partition, log.end(Stream::Events, partition).await?, from);
      while walk.next().await?.is_some() {}
      let left = log.end(Stream::Inputs, partition).await?.saturating_sub(walk.next_input().0);
      waiting += u64::try_from(left).unwrap_or_default();
    }
    Ok(waiting)
  }

  async fn pass(&self, log: &Arc<dyn EventLog>, ends: &Ends) -> Result<Copied> {
    let shared = self.shared;
    let mut pace = Pace::start("copied");
    let (mut target, held) = Target::take(Arc::clone(log), &shared.opener, shared.clock.now(), shared.holder.process, shared.ids.as_ref()).await?;
    let source = Source { log: shared.log.as_ref(), opener: &shared.opener, ends: ends.clone() };
    let copied = moving::copy(&source, &mut target, &held, |passed| pace.told(passed)).await.context("the copy broke off; call it again, it goes on")?;
    let again = copied.tally.events() - copied.written;
    let there = if again > 0 { format!("; {again} of them were there from an earlier attempt") } else { String::new() };
    super::print(&format!("copied: {}{there}", pace.rate(copied.tally.events())))?;
    Ok(copied)
  }

  /// Reads both logs again, from nothing but themselves, and compares them agent by agent.
  async fn compare(&self, log: &Arc<dyn EventLog>, ends: &Ends, copied: &Tally) -> Result<()> {
    let pace = Pace::start("compared");
    let (opener, new_ends) = (&self.shared.opener, Ends::of(log.as_ref()).await?);
    let (old, new) = (Tally::of(self.shared.log.as_ref(), opener, ends).await?, Tally::of(log.as_ref(), opener, &new_ends).await?);
    if let Some(agent) = old.differing(&new).iter().chain(&old.differing(copied)).next() {
      let count = |tally: &Tally| tally.agents.get(agent).map_or(0, |of| of.events);
      bail!("the copy is not the log: agent {agent} has {} events in the old one and {} in the new one; nothing was exchanged", count(&old), count(&new));
    }
    super::print(&format!("compared, both logs read again: {}, equal", pace.rate(old.events() + new.events())))
  }

  /// The last step: from here on the new log is this database's.
  async fn switch(&self, ends: &Ends, new: &Identity) -> Result<()> {
    let went_on = "the log went on while it was copied: stop every pa that works on it, and call this again";
    ensure!(self.stands_still().await? && Ends::of(self.shared.log.as_ref()).await? == *ends, went_on);
    let row = |of: &Identity| LogIdentity { kind: of.kind.clone(), id: of.id, partitions: i32::from(of.partitions), sealed: of.sealed };
    pa_store::fail_point!("copy.before_switch");
    let exchanged = rows::switch(&self.storage.database.pool(Role::Tool), &row(&self.shared.identity), &row(new)).await?;
    ensure!(exchanged, "this database belongs to another log than the one that was copied");
    Ok(())
  }

  async fn derive(&self, log: &Arc<dyn EventLog>) -> Result<()> {
    let parts = landed::projector_parts(&self.storage.database, log, &self.shared.opener, self.shared.holder.process);
    let why = "the log is copied, and pa folds what is missing when it starts; but now it could not";
    let facts = landed::tables(&parts).await.context(why)?;
    super::print(&format!("tables folded from {facts} facts"))
  }
}
