//! Starts the roles of a process and says when they have caught up.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use pa_eventlog::Partition;
use pa_eventlog::pieces::Link;
use pa_eventlog::seal::Keys;
use pa_gateway::{Gateway, Readiness};
use pa_pipeline::decider;
use pa_pipeline::projector::{self, Projector};
use pa_store::Role;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cli::RoleName;
use crate::config::Config;
use crate::model;
use crate::readiness;
use crate::storage::Storage;
use crate::wire::Shared;
use crate::{VERSION, housekeeping, workers};

/// How often it is looked whether a starting process has caught up.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The roles that run.
pub(crate) struct Started {
  deciders: Vec<(Partition, watch::Receiver<decider::Status>)>,
  projector: Option<projector::Status>,
  agent: Option<JoinHandle<()>>,
  /// Deciders end after the workers, so that what workers report at their end is still decided.
  deciding: TaskTracker,
  stop_deciding: CancellationToken,
}

/// Starts every chosen role but the gateway.
pub(crate) fn start(
  config: &Config,
  storage: &Storage,
  shared: &Shared,
  chosen: &BTreeSet<RoleName>,
  models: &model::Models,
  readiness: &Readiness,
  stop: &CancellationToken,
) -> Result<Started> {
  let mut started = Started { deciders: Vec::new(), projector: None, agent: None, deciding: TaskTracker::new(), stop_deciding: CancellationToken::new() };
  link_pieces(shared, stop);
  if chosen.contains(&RoleName::Decider) {
    let parts = shared.decider(storage.database.pool(Role::Decider));
    started.deciders = decider::run(&parts, 0..shared.identity.partitions, &started.deciding, &started.stop_deciding);
  }
  if chosen.contains(&RoleName::Projector) {
    started.projector = Some(project(storage, shared, stop));
  } else {
    let tasks = shared.tasks.clone();
    let (database, shared, stop) = (storage.database.clone(), shared.clone(), stop.clone());
    let follow = async move { pa_projections::live::follow(&database, &shared.schema, &shared.reads, &shared.live, stop.cancelled()).await };
    tasks.spawn(follow);
  }
  if chosen.contains(&RoleName::Agent) {
    started.agent = Some(workers::start(config, shared, models, stop)?);
  }
  if chosen.contains(&RoleName::Scheduler) {
    housekeeping::start(config, storage, shared, stop);
  }
  let (deciders, tails) = (started.deciders.clone(), shared.tail.statuses().to_vec());
  shared.tasks.spawn(readiness::follow(readiness.clone(), deciders, tails, started.projector.clone(), stop.clone()));
  Ok(started)
}

fn link_pieces(shared: &Shared, stop: &CancellationToken) {
  let link = Link {
    log: Arc::clone(&shared.log),
    identity: shared.identity.clone(),
    keys: Arc::clone(&shared.keys) as Arc<dyn Keys>,
    clock: Arc::clone(&shared.clock),
    ids: Arc::clone(&shared.ids),
    process: shared.holder.process,
  };
  shared.tasks.spawn(Arc::clone(&shared.pieces).run(shared.tail.subscribe(), Some(link), stop.clone()));
}

/// The projector's parts, for the role and for the tools.
pub(crate) fn projector_parts(storage: &Storage, shared: &Shared) -> projector::Parts {
  projector::Parts {
    database: storage.database.clone(),
    log: Arc::clone(&shared.log),
    opener: Arc::clone(&shared.opener),
    clock: Arc::clone(&shared.clock),
    live: shared.live.clone(),
    process: shared.holder.process,
  }
}

fn project(storage: &Storage, shared: &Shared, stop: &CancellationToken) -> projector::Status {
  let projector = Arc::new(Projector::new(projector_parts(storage, shared)));
  let (status, stop) = (projector.status(), stop.clone());
  shared.tasks.spawn(async move {
    if let Err(error) = projector.run(stop).await {
      tracing::error!(error = error.as_ref() as &dyn std::error::Error, "the projector ended");
    }
  });
  status
}

/// The edge of this process.
pub(crate) fn gateway(
  config: &Config,
  shared: &Shared,
  models: &model::Models,
  readiness: &Readiness,
  metrics: &pa_gateway::Metrics,
  bound: SocketAddr,
  stop: &CancellationToken,
) -> Result<Gateway> {
  Ok(Gateway::new(pa_gateway::Parts {
    places: config.edge()?.places(bound)?,
    pool: shared.control.clone(),
    reads: shared.reads.clone(),
    read_schema: shared.schema.name().to_owned(),
    log: Arc::clone(&shared.log),
    opener: Arc::clone(&shared.opener),
    appender: shared.appender("pa/gateway"),
    tail: Arc::clone(&shared.tail),
    pieces: Arc::clone(&shared.pieces),
    live: shared.live.clone(),
    blobs: (*shared.blobs).clone(),
    keys: (*shared.keys).clone(),
    clock: Arc::clone(&shared.clock),
    ids: Arc::clone(&shared.ids),
    models: vec![models.offered.clone()],
    readiness: readiness.clone(),
    metrics: metrics.clone(),
    version: VERSION,
    tasks: shared.tasks.clone(),
    shutdown: stop.clone(),
  }))
}

impl Started {
  /// Returns once every decider leads or waits for another process, and the read model has reached the end of the log.
  pub(crate) async fn caught_up(&self) {
    let mut said = tokio::time::Instant::now() + Duration::from_secs(5);
    loop {
      let deciding = self.deciders.iter().all(|(_, status)| matches!(*status.borrow(), decider::Status::Leading(_) | decider::Status::Waiting));
      let reasons = self.projector.as_ref().map(projector::Status::reasons_to_wait).unwrap_or_default();
      if deciding && reasons.is_empty() {
        return;
      }
      if tokio::time::Instant::now() >= said {
        tracing::info!(deciding, reasons = reasons.join("; "), "still catching up with the log");
        said += Duration::from_secs(5);
      }
      tokio::time::sleep(LOOK_EVERY).await;
    }
  }

  /// After the stop: the workers have yielded and the last requests are answered, then the deciders have given their partitions back.
  pub(crate) async fn stopped(self, serving: JoinHandle<()>) {
    let workers = async {
      match self.agent {
        Some(agent) => agent.await,
        None => Ok(()),
      }
    };
    let (worked, served) = tokio::join!(workers, serving);
    for (part, ended) in [("the agent role", worked), ("serving", served)] {
      if let Err(error) = ended {
        tracing::error!(%error, part, "ended badly");
      }
    }
    self.stop_deciding.cancel();
    self.deciding.close();
    self.deciding.wait().await;
  }
}
