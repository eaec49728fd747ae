//! Puts the parts together that every role shares.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use futures::future::BoxFuture;
use pa_blobs::Blobs;
use pa_domain::AgentId;
use pa_domain::ids::INSTALLATION;
use pa_eventlog::appender::Appender;
use pa_eventlog::compose::Composer;
use pa_eventlog::fence::FenceState;
use pa_eventlog::meta::partition_of;
use pa_eventlog::opener::Opener;
use pa_eventlog::pieces::Pieces;
use pa_eventlog::seal::Keys;
use pa_eventlog::tail::Tail;
use pa_eventlog::{EventLog, Identity, Partition, Stream};
use pa_pipeline::decider::KeyMaker;
use pa_projections::live::Live;
use pa_store::PgPool;
use pa_store::checkpoint::{self, Scope};
use pa_store::clock::{Clock, Ids, SystemClock, SystemIds};
use pa_store::keys::{KeyRing, Lookup};
use pa_store::lease::Holder;
use pa_store::{ReadSchema, Role};
use pa_workspace::{TaskUser, Workspaces};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::VERSION;
use crate::erasure::Everything;
use crate::files;
use crate::storage::Storage;

/// How often it is looked whether a read model that is being built is there.
const READ_MODEL_LOOK_EVERY: Duration = Duration::from_millis(20);

/// Records that are read at once to look for an agent.
const LOOK_RECORDS: usize = 500;

/// What the stages of one process share.
#[derive(Clone)]
pub(crate) struct Shared {
  pub(crate) log: Arc<dyn EventLog>,
  pub(crate) identity: Identity,
  pub(crate) opener: Arc<Opener>,
  pub(crate) keys: Arc<KeyRing>,
  pub(crate) clock: Arc<dyn Clock>,
  pub(crate) ids: Arc<dyn Ids>,
  pub(crate) tail: Arc<Tail>,
  pub(crate) pieces: Arc<Pieces>,
  pub(crate) live: Live,
  pub(crate) blobs: Arc<Blobs>,
  pub(crate) workspaces: Arc<Workspaces>,
  pub(crate) schema: ReadSchema,
  /// Reads of the read model, by pages and workers.
  pub(crate) reads: PgPool,
  pub(crate) control: PgPool,
  pub(crate) leases: PgPool,
  pub(crate) holder: Holder,
  pub(crate) tasks: TaskTracker,
}

/// Puts the shared parts together. `projects` says whether this process has the projector.
pub(crate) async fn shared(storage: &Storage, projects: bool, stop: &CancellationToken) -> Result<Shared> {
  let log = storage.event_log();
  let identity = log.identity().await?;
  let opener = Arc::new(Opener::new(Arc::clone(&storage.keys) as Arc<dyn Keys>, identity.sealed));
  keys_of_installation(&storage.keys, log.as_ref(), &identity).await?;
  let ids: Arc<dyn Ids> = Arc::new(SystemIds);
  let tasks = TaskTracker::new();
  let states = saved_states(storage, &identity).await?;
  let tail = Tail::start(&log, &opener, states, &tasks, stop);
  let schema = pa_projections::schema::current();
  Ok(Shared {
    holder: Holder { node: storage.node(), process: ids.new_id() },
    pieces: Pieces::new(),
    live: if projects { Live::local() } else { Live::remote() },
    blobs: Arc::new(files::open(storage, ids.as_ref()).await?),
    workspaces: Arc::new(Workspaces::new(storage.paths.workspaces(), nix::unistd::Uid::effective().is_root().then_some(TaskUser::COMPUTER))),
    reads: storage.database.read_pool(Role::Gateway, &schema),
    control: storage.control.clone(),
    leases: storage.database.pool(Role::Leases),
    keys: Arc::clone(&storage.keys),
    clock: Arc::new(SystemClock),
    log,
    identity,
    opener,
    ids,
    tail,
    schema,
    tasks,
  })
}

/// Makes the keys of the installation when its log begins. A log that has records of it was sealed with keys, and others would hide that those are lost.
async fn keys_of_installation(keys: &KeyRing, log: &dyn EventLog, identity: &Identity) -> Result<()> {
  let missing = async || anyhow::Ok(matches!(keys.get(INSTALLATION).await?, Lookup::Missing));
  if missing().await? {
    let known = knows(log, INSTALLATION, identity.partitions).await.context("look for the installation in the log")?;
    // Another process may have made them, and appended, after the first look.
    ensure!(!known || !missing().await?, "agent installation has no key 1, and was not erased: restore the database's backup");
  }
  keys.get_or_create(INSTALLATION).await.context("make the installation's keys")?;
  Ok(())
}

/// Whether the log has a record of an agent. The installation's are the first in their partition, so little is read.
async fn knows(log: &dyn EventLog, agent: AgentId, partitions: Partition) -> Result<bool> {
  let partition = partition_of(agent, partitions);
  for stream in [Stream::Events, Stream::Inputs] {
    let mut from = 0;
    loop {
      let records = log.read(stream, partition, from, LOOK_RECORDS).await?;
      let Some(last) = records.last() else { break };
      from = last.position + 1;
      for stored in records.iter() {
        if stored.meta()?.core.agent == agent {
          return Ok(true);
        }
      }
    }
  }
  Ok(false)
}

/// The version of the decider's state that this program keeps.
pub(crate) fn fold_version() -> i32 {
  let later = i32::try_from(pa_store::fail::generation()).expect("a test's generation is small");
  pa_domain::state::FOLD_VERSION + later
}

/// This program's version with what it keeps beside the log, as processes tell it to each other: `0.1.0+<read schema>.<version of the decider's state>`.
pub(crate) fn build() -> String {
  let schema = pa_projections::schema::current();
  format!("{VERSION}+{}.{}", schema.name().trim_start_matches("read_"), fold_version())
}

/// Where the tail begins to look for the end: the newest of the deciders' checkpoints, which lies at most a thousand records behind it. How far the log was read does not
/// depend on what was folded from it.
async fn saved_states(storage: &Storage, identity: &Identity) -> Result<Vec<FenceState>> {
  let mut states = Vec::with_capacity(usize::from(identity.partitions));
  for part in 0..identity.partitions {
    let part = i16::try_from(part).context("partition")?;
    let mut newest = FenceState::START;
    for fold_version in checkpoint::fold_versions(&storage.control, part).await? {
      if let Some(mark) = checkpoint::load(&storage.control, Scope { part, fold_version }).await?
        && mark.next_position > newest.next_position
      {
        newest = FenceState { next_position: mark.next_position, epoch: mark.epoch, seq: mark.seq, last: mark.last };
      }
    }
    states.push(newest);
  }
  Ok(states)
}

impl Shared {
  /// Returns when the read model is there, which a projector may still be building, or at a stop.
  pub(crate) async fn has_read_model(&self, stop: &CancellationToken) {
    while !stop.is_cancelled() && !self.schema.exists(&self.control).await.unwrap_or(false) {
      tokio::time::sleep(READ_MODEL_LOOK_EVERY).await;
    }
  }

  /// An appender whose records name `source`.
  pub(crate) fn appender(&self, source: &str) -> Appender {
    let keys = Arc::clone(&self.keys) as Arc<dyn Keys>;
    Appender::new(Arc::clone(&self.log), &self.identity, keys, Arc::clone(&self.clock), Arc::clone(&self.ids), source)
  }

  /// A decider's parts.
  pub(crate) fn decider(&self, decider_pool: PgPool) -> pa_pipeline::decider::Parts {
    let store = pa_pipeline::decider::store::PostgresStore::new(decider_pool, self.leases.clone(), self.holder, fold_version());
    pa_pipeline::decider::Parts {
      log: Arc::clone(&self.log),
      opener: Arc::clone(&self.opener),
      keys: Arc::clone(&self.keys) as Arc<dyn Keys>,
      key_maker: Arc::new(Beginning {
        keys: Arc::clone(&self.keys),
        workspaces: Arc::clone(&self.workspaces),
        schema: self.schema.clone(),
        reads: self.reads.clone(),
      }),
      eraser: Arc::new(Everything {
        keys: Arc::clone(&self.keys),
        blobs: Arc::clone(&self.blobs),
        workspaces: Arc::clone(&self.workspaces),
        control: self.control.clone(),
      }),
      composer: Composer::new(self.identity.sealed, "pa/decider"),
      appender: self.appender("pa/decider"),
      store: Arc::new(store),
      clock: Arc::clone(&self.clock),
      ids: Arc::clone(&self.ids),
    }
  }
}

/// What an agent has before it exists in the log.
struct Beginning {
  keys: Arc<KeyRing>,
  workspaces: Arc<Workspaces>,
  schema: ReadSchema,
  reads: PgPool,
}

impl Beginning {
  /// Whether the read model has facts of an agent; one that is not built yet tells nothing.
  async fn has_facts(&self, agent: AgentId) -> Result<bool> {
    Ok(self.schema.exists(&self.reads).await? && pa_projections::system::progress(&self.reads, agent).await? > 0)
  }
}

impl KeyMaker for Beginning {
  fn make(&self, agent: AgentId) -> BoxFuture<'_, Result<()>> {
    async move {
      if matches!(self.keys.get(agent).await?, Lookup::Missing) {
        ensure!(!self.has_facts(agent).await?, "agent {agent} has no key 1, and was not erased: restore the database's backup");
      }
      self.keys.get_or_create(agent).await.context("make an agent's keys")?;
      self.workspaces.create(agent).await.map(|_| ()).context("make an agent's workspace")
    }
    .boxed()
  }
}

#[cfg(test)]
mod tests;
