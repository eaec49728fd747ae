//! `pa up` and `pa run`: a process with its roles, from the first lock to the last.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use pa_gateway::{Readiness, operations, starting};
use pa_store::data_dir::DataDir;
use pa_store::ops::nodes::{self, Node};
use pa_store::private_postgres::Event;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::RoleName;
use crate::commands::print;
use crate::config::Config;
use crate::signals::{Interrupted, Signals};
use crate::storage::Storage;
use crate::wire::{self, Shared};
use crate::{model, observe, owner, roles};

/// How long a graceful stop may take: executions yield, appends land, deciders give their partitions back.
const STOP_MAX: Duration = Duration::from_secs(20);
/// Between two tries to let the owner in, at start.
const INVITE_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often this process says that it lives.
const SEEN_EVERY: Duration = Duration::from_secs(3);

/// All roles in one process that owns the data folder.
pub(crate) async fn up(config: Config) -> Result<()> {
  let folder = Storage::own_folder(&config)?;
  serve(config, folder, RoleName::ALL.into_iter().collect()).await
}

/// Some roles beside other processes.
pub(crate) async fn run(config: Config, chosen: Vec<RoleName>) -> Result<()> {
  let chosen: BTreeSet<RoleName> = chosen.into_iter().collect();
  let name = chosen.iter().map(|role| role.name()).collect::<Vec<_>>().join("-");
  let folder = Storage::shared_folder(&config, &name)?;
  serve(config, folder, chosen).await
}

/// How the outside reaches a process that listens on `bound`.
pub(crate) fn origin(config: &Config, bound: SocketAddr) -> String {
  if config.server.public_url.is_empty() { format!("http://{bound}") } else { config.server.public_url.clone() }
}

async fn serve(config: Config, folder: DataDir, chosen: BTreeSet<RoleName>) -> Result<()> {
  let readiness = Readiness::default();
  readiness.not_ready("start", "the process is starting");
  let metrics = observe::metrics();
  let mut signals = Signals::listen()?;
  let listener = TcpListener::bind(config.listen()?).await.with_context(|| format!("can't listen on PA_LISTEN={}", config.server.listen))?;
  let bound = listener.local_addr().context("find the address that it listens on")?;
  let routes = if chosen.contains(&RoleName::Gateway) { starting } else { operations };
  let alive = routes(readiness.clone(), metrics.clone());
  let early = pa_gateway::serve(again(&listener)?, alive, CancellationToken::new());
  let storage = tokio::select! {
    storage = Storage::process(&config, folder, &mut signals) => storage,
    // It ends never.
    () = early => return Ok(()),
  };
  let storage = match storage {
    Err(error) if error.is::<Interrupted>() => return Ok(()),
    storage => storage?,
  };
  let edge = Edge { listener, bound, metrics, readiness };
  let served = work(&config, &storage, &chosen, edge, signals).await;
  let closed = storage.close().await;
  served.and(closed)?;
  tracing::info!("stopped");
  Ok(())
}

/// Where a process answers, before and beside its roles.
struct Edge {
  listener: TcpListener,
  bound: SocketAddr,
  metrics: Arc<dyn Fn() -> String + Send + Sync>,
  readiness: Readiness,
}

/// Runs the roles until they are asked to end, and ends them.
async fn work(config: &Config, storage: &Storage, chosen: &BTreeSet<RoleName>, edge: Edge, signals: Signals) -> Result<()> {
  let Edge { listener, bound, metrics, readiness } = edge;
  // The tail outlives the roles: what they report at their end is read back, too.
  let (stop, end) = (CancellationToken::new(), CancellationToken::new());
  let shared = wire::shared(storage, chosen.contains(&RoleName::Projector), &end).await?;
  shared.tasks.spawn(heed_signals(signals, stop.clone()));
  let models = model::start(config).await?;
  let started = roles::start(config, storage, &shared, chosen, &models, &readiness, &stop)?;
  register(config, storage, &shared, chosen, bound, &end).await?;
  let router = if chosen.contains(&RoleName::Gateway) {
    roles::gateway(config, &shared, &models, &readiness, &metrics, bound, &stop)?.router()
  } else {
    operations(readiness.clone(), metrics)
  };
  let serving = shared.tasks.spawn(pa_gateway::serve(listener, router, stop.clone()));
  let serves = async {
    started.caught_up().await;
    if chosen.contains(&RoleName::Gateway) {
      announce(config, storage, &shared, bound).await?;
    } else {
      print(&format!("listening={}", origin(config, bound)))?;
    }
    readiness.ready("start");
    std::future::pending().await
  };
  let served = tokio::select! {
    failed = serves => failed,
    () = look_after(storage) => Ok(()),
    () = stop.cancelled() => Ok(()),
  };
  readiness.not_ready("stop", "the process is stopping");
  stop.cancel();
  finish(shared, started, serving, end).await;
  served
}

/// The same listener once more, for whoever answers while the storage is waited for.
fn again(listener: &TcpListener) -> Result<TcpListener> {
  let descriptor = listener.as_fd().try_clone_to_owned().context("share the listener")?;
  TcpListener::from_std(descriptor.into()).context("listen early")
}

async fn heed_signals(mut signals: Signals, stop: CancellationToken) {
  tokio::select! {
    _ = signals.next() => {}
    () = stop.cancelled() => return,
  }
  tracing::info!("stopping: executions yield, partitions are given back");
  stop.cancel();
}

/// Says where the process listens, once its owner can sign in there.
async fn announce(config: &Config, storage: &Storage, shared: &Shared, bound: SocketAddr) -> Result<()> {
  let origin = origin(config, bound);
  let link = loop {
    match invite(config, storage, shared, &origin).await {
      Ok(link) => break link,
      // No decider, no read model or no database yet: other processes may still start.
      Err(error) => tracing::warn!(error = error.as_ref() as &dyn std::error::Error, "the owner can't sign in yet"),
    }
    tokio::time::sleep(INVITE_AGAIN_AFTER).await;
  };
  print(&format!("listening={origin}"))?;
  print(&format!("sign-in={link}"))
}

async fn invite(config: &Config, storage: &Storage, shared: &Shared, origin: &str) -> Result<String> {
  let account = owner::account(shared).await?;
  owner::agent_ready(shared, account).await?;
  owner::adopt(&shared.control, account, &owner::token(config, &storage.paths)?).await?;
  owner::link(&shared.control, account, origin).await
}

async fn register(config: &Config, storage: &Storage, shared: &Shared, chosen: &BTreeSet<RoleName>, bound: SocketAddr, stop: &CancellationToken) -> Result<()> {
  let listen = if chosen.contains(&RoleName::Gateway) { Some(origin(config, bound)) } else { None };
  let node = Node { holder: shared.holder, roles: chosen.iter().map(|role| role.name().to_owned()).collect(), listen, version: wire::build() };
  nodes::register(&shared.control, &node).await?;
  let (pool, log, pieces, process, stop) = (shared.control.clone(), storage.log.clone(), shared.pieces.clone(), shared.holder.process, stop.clone());
  shared.tasks.spawn(async move {
    while !stop.is_cancelled() {
      match nodes::seen(&pool, process).await {
        Ok(others) => {
          log.set_others(others);
          pieces.set_others(others);
        }
        Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "could not say that this process lives"),
      }
      observe::upkeep();
      tokio::select! {
        () = tokio::time::sleep(SEEN_EVERY) => {}
        () = stop.cancelled() => {}
      }
    }
    if let Err(error) = nodes::leave(&pool, process).await {
      tracing::debug!(error = &error as &dyn std::error::Error, "could not sign this process off");
    }
  });
  Ok(())
}

/// For ever: looks after the private Postgres, and wakes readers when other processes append.
async fn look_after(storage: &Storage) {
  let postgres = async {
    match &storage.postgres {
      Some(postgres) => {
        postgres
          .keep_running(|event| match event {
            Event::Died => tracing::error!("the private Postgres died; it is being started again"),
            Event::Running => tracing::info!("the private Postgres runs again"),
            Event::Failed(error) => tracing::error!(error = error as &dyn std::error::Error, "the private Postgres could not be started"),
          })
          .await;
      }
      None => std::future::pending().await,
    }
  };
  tokio::join!(postgres, storage.log.clone().listen(&storage.database));
}

async fn finish(shared: Shared, started: roles::Started, serving: JoinHandle<()>, end: CancellationToken) {
  let graceful = async {
    started.stopped(serving).await;
    end.cancel();
    shared.tasks.close();
    shared.tasks.wait().await;
  };
  if tokio::time::timeout(STOP_MAX, graceful).await.is_err() {
    tracing::warn!("not everything ended in time; what is left is picked up by the next start");
  }
}
