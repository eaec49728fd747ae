//! `pa restore DIR`: a backup, brought back into an empty data folder, database and log.
//!
//! Everything that can be wrong is looked at before anything is written: every file's hash, the master key against every wrapped key, and whether the place is empty. While it
//! works the database says that it is an unfinished restore, which no start takes for an installation; called again it goes on. The log becomes this database's last.
//!
//! A log on Kafka that outlived its database is told apart by its identity: it is kept as it is, with all that came after the backup, if the backup has the keys of all
//! its agents and its history is the backup's as far as that goes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use pa_domain::AgentId;
use pa_domain::ids::INSTALLATION;
use pa_eventlog::kafka::KafkaLog;
use pa_eventlog::moving::{self, Ends, Source, Tally, Target};
use pa_eventlog::opener::Opener;
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::seal::Keys;
use pa_eventlog::{EventLog, Identity};
use pa_pipeline::projector::verify;
use pa_projections::schema::Schemas;
use pa_store::clock::{Clock, Ids, SystemClock, SystemIds};
use pa_store::keys::{KeyRing, MasterKey, check_wrapped, secrets};
use pa_store::ops::kept::{self, Table};
use pa_store::ops::log_identity::{self, LogIdentity};
use pa_store::ops::moving as switching;
use pa_workspace::{TaskUser, Workspaces};
use serde::Deserialize;
use uuid::Uuid;

use super::backup::rows_path;
use super::landed::{self, Pace};
use super::manifest::Manifest;
use crate::config::Config;
use crate::signals::Signals;
use crate::storage::Bare;

mod blobs;

/// Rows that are written at once.
const ROWS_AT_ONCE: usize = 500;

/// Brings a backup back and compares the tables with the log. 0: equal. 1: one line for each difference.
pub(crate) async fn run(config: &Config, dir: &Path) -> Result<ExitCode> {
  let manifest = Manifest::read(dir)?;
  manifest.check(dir)?;
  let master = Arc::new(Bare::master_key(config)?);
  let agents = check_keys(dir, &master)?;
  crate::say(&format!("the backup is whole: {} files, and the master key opens all {} wrapped keys", manifest.files.len(), agents.wrapped.len()));
  let mut signals = Signals::listen()?;
  let bare = Bare::open(config, &mut signals).await?;
  let restore = Restore { config, dir, manifest, master, agents, bare: &bare };
  let done = tokio::select! {
    done = restore.run() => done,
    signal = signals.next() => Err(signal.into()),
  };
  let closed = bare.close().await;
  let done = done?;
  closed.map(|()| done)
}

/// Whose keys the backup has.
#[derive(Default)]
struct Agents {
  wrapped: BTreeSet<AgentId>,
  erased: BTreeSet<AgentId>,
}

#[derive(Deserialize)]
struct KeyRow {
  agent: Uuid,
  key_id: i32,
  wrapped: Option<String>,
}

#[derive(Deserialize)]
struct SecretRow {
  id: Uuid,
  agent: Uuid,
  sealed: String,
}

fn rows(dir: &Path, table: Table) -> Result<Vec<String>> {
  let text = fs::read_to_string(dir.join(rows_path(table))).with_context(|| format!("read {}", rows_path(table)))?;
  Ok(text.lines().map(str::to_owned).collect())
}

/// Bytes as Postgres writes them.
fn bytes(text: &str) -> Result<Vec<u8>> {
  hex::decode(text.strip_prefix("\\x").context("not bytes")?).context("not bytes")
}

/// Opens every wrapped key and every secret, and keeps none.
fn check_keys(dir: &Path, master: &MasterKey) -> Result<Agents> {
  let why = "nothing was written: the master key is not the one of this backup";
  let mut agents = Agents::default();
  for row in rows(dir, Table::AgentKeys)? {
    let row: KeyRow = serde_json::from_str(&row).context("a wrapped key of the backup")?;
    let agent = AgentId(row.agent);
    match &row.wrapped {
      Some(wrapped) => {
        check_wrapped(master, agent, row.key_id, &bytes(wrapped)?).context(why)?;
        agents.wrapped.insert(agent);
      }
      None => {
        agents.erased.insert(agent);
      }
    }
  }
  for row in rows(dir, Table::Secrets)? {
    let row: SecretRow = serde_json::from_str(&row).context("a secret of the backup")?;
    secrets::check_sealed(master, row.id, AgentId(row.agent), &bytes(&row.sealed)?).context(why)?;
  }
  Ok(agents)
}

struct Restore<'a> {
  config: &'a Config,
  dir: &'a Path,
  manifest: Manifest,
  master: Arc<MasterKey>,
  agents: Agents,
  bare: &'a Bare,
}

impl Restore<'_> {
  async fn run(self) -> Result<ExitCode> {
    let kept = self.log_that_outlived().await?;
    self.claim_place().await?;
    self.rows().await?;
    let files = blobs::enter(self.dir, &self.manifest, &self.bare.paths.shared).await?;
    self.workspaces().await?;
    super::print(&format!("files={files} agents={} erased={}", self.agents.wrapped.len(), self.agents.erased.len()))?;
    let opener = self.opener();
    let log = match kept {
      Some(log) => log,
      None => self.log(&opener).await?,
    };
    let identity = log.identity().await?;
    let (old, new) = (switching::restoring(self.manifest.id), row(&identity));
    pa_store::fail_point!("restore.before_switch");
    ensure!(switching::switch(&self.bare.control_tools, &old, &new).await?, "another restore works on this database");
    super::print(&format!("log={} partitions={} id={}", identity.kind, identity.partitions, identity.id))?;
    self.verify(&log, &opener).await
  }

  fn opener(&self) -> Arc<Opener> {
    let keys = Arc::new(KeyRing::new(self.bare.control.clone(), Arc::clone(&self.master))) as Arc<dyn Keys>;
    Arc::new(Opener::new(keys, self.manifest.log.sealed))
  }

  /// The very log of the backup, still there while its database is gone.
  async fn log_that_outlived(&self) -> Result<Option<Arc<dyn EventLog>>> {
    let Some(kafka) = self.config.kafka() else { return Ok(None) };
    let Some(log) = KafkaLog::aside(&kafka, None, self.manifest.log.sealed).await? else { return Ok(None) };
    let identity = log.identity().await?;
    if identity.id != self.manifest.log.id {
      return Ok(None);
    }
    let log: Arc<dyn EventLog> = log;
    let elsewhere = "to bring the backup back without what came after it, choose another PA_KAFKA_PREFIX";
    let opener = self.opener();
    let (now, cut) = (Ends::of(log.as_ref()).await?, self.manifest.ends());
    let shorter = now.events.iter().zip(&cut.events).any(|(now, cut)| now < cut);
    ensure!(!shorter, "the log on Kafka is older than the backup: it ends before it; {elsewhere}");
    let as_of_backup = Tally::of(log.as_ref(), &opener, &cut).await?;
    ensure!(hex::encode(as_of_backup.hash()) == self.manifest.hash, "the log on Kafka has another history than the backup; {elsewhere}");
    let tally = Tally::of(log.as_ref(), &opener, &now).await?;
    let missing: Vec<_> = tally.agents.keys().filter(|agent| !self.agents.wrapped.contains(agent) && !self.agents.erased.contains(agent)).collect();
    if let Some(agent) = missing.first() {
      bail!(
        "the log on Kafka is newer than the backup, and {} of its agents are not in it, {agent} among them: without their keys nothing of them can be read; \
         restore a newer backup, or {elsewhere}",
        missing.len()
      );
    }
    super::print(&format!("the log on Kafka is that of the backup, with {} events more: it is kept as it is", tally.events() - as_of_backup.events()))?;
    Ok(Some(log))
  }

  /// Makes sure that nothing is there, or only what an earlier attempt left, and says in the database what is going on.
  async fn claim_place(&self) -> Result<()> {
    let pool = &self.bare.control_tools;
    let standing = log_identity::load(pool).await?;
    let goes_on = standing.as_ref() == Some(&switching::restoring(self.manifest.id));
    ensure!(goes_on || standing.is_none(), "there is an installation here already: a backup is brought back into an empty data folder and an empty database");
    if !goes_on {
      blobs::ensure_none(&self.bare.paths.shared).await?;
    }
    let claimed = switching::begin_restore(pool, self.manifest.id).await?;
    ensure!(claimed, "the database is not empty: a backup is brought back into an empty one");
    Ok(())
  }

  async fn rows(&self) -> Result<()> {
    for table in Table::ALL {
      for some in rows(self.dir, table)?.chunks(ROWS_AT_ONCE) {
        kept::write(&self.bare.control_tools, table, some).await?;
      }
    }
    Ok(())
  }

  async fn workspaces(&self) -> Result<()> {
    let user = nix::unistd::Uid::effective().is_root().then_some(TaskUser::COMPUTER);
    let workspaces = Workspaces::new(self.bare.paths.workspaces(), user);
    for agent in self.agents.wrapped.iter().filter(|agent| **agent != INSTALLATION) {
      workspaces.create(*agent).await.context("make an agent's workspace")?;
    }
    Ok(())
  }

  /// Fills an empty log, of either kind and with the configured number of partitions, and compares it with the backup.
  async fn log(&self, opener: &Arc<Opener>) -> Result<Arc<dyn EventLog>> {
    let (partitions, sealed) = (self.config.log.partitions, self.manifest.log.sealed);
    ensure!(sealed == self.config.log.sealed, "the backup's log has PA__LOG__SEALED={sealed}, which stays for its life: set it so");
    let log: Arc<dyn EventLog> = match self.config.kafka() {
      None => PostgresLog::aside(&self.bare.database, partitions, sealed).await?,
      Some(kafka) => KafkaLog::aside(&kafka, Some(partitions), sealed).await?.context("the topics can't be made")?,
    };
    let there = log.identity().await?.partitions;
    ensure!(
      there == partitions,
      "the topics have {there} partitions and {partitions} are configured: set PA__LOG__PARTITIONS, or choose another PA_KAFKA_PREFIX"
    );
    let archive = self.manifest.archive(self.dir)?;
    let source = Source { log: &archive, opener, ends: self.manifest.ends() };
    let mut pace = Pace::start("restored");
    let (mut target, held) = Target::take(Arc::clone(&log), opener, SystemClock.now(), SystemIds.new_id(), &SystemIds).await?;
    let copied = moving::copy(&source, &mut target, &held, |passed| pace.told(passed)).await.context("the restore broke off; call it again, it goes on")?;
    let carried = moving::carry(&source, &target, &copied.inputs_from).await?;
    let written = Tally::of(log.as_ref(), opener, &Ends::of(log.as_ref()).await?).await?;
    ensure!(hex::encode(written.hash()) == self.manifest.hash, "the log that was written is not the backup's; nothing was exchanged");
    landed::print_tally(&written)?;
    super::print(&format!("restored: {}; {carried} inputs that were not decided yet", pace.rate(written.events())))?;
    Ok(log)
  }

  async fn verify(&self, log: &Arc<dyn EventLog>, opener: &Arc<Opener>) -> Result<ExitCode> {
    let parts = landed::projector_parts(&self.bare.database, log, opener, SystemIds.new_id());
    let facts = landed::tables(&parts).await?;
    let differences = verify::verify(&parts, &Schemas::new(&self.bare.database)).await?;
    for difference in &differences {
      super::print(&difference.to_string())?;
    }
    if differences.is_empty() {
      super::print(&format!("tables folded from {facts} facts, compared with the log: equal"))?;
      return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
  }
}

fn row(of: &Identity) -> LogIdentity {
  LogIdentity { kind: of.kind.clone(), id: of.id, partitions: i32::from(of.partitions), sealed: of.sealed }
}
