//! `pa up` and `pa run`: a process with its roles, from the first lock to the last.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use pa_gateway::{Readiness, operations};
use pa_store::ops::nodes::{self, Node};
use pa_store::private_postgres::Event;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::RoleName;
use crate::commands::print;
use crate::config::Config;
use crate::storage::Storage;
use crate::wire::{self, Shared};
use crate::{VERSION, model, observe, owner, roles};

/// How long a graceful stop may take: executions yield, appends land, deciders give their partitions back.
const STOP_MAX: Duration = Duration::from_secs(20);
/// How often this process says that it lives.
const SEEN_EVERY: Duration = Duration::from_secs(3);

/// All roles in one process that owns the data folder.
pub(crate) async fn up(config: Config) -> Result<()> {
  let storage = Storage::own(&config).await?;
  serve(config, storage, RoleName::ALL.into_iter().collect()).await
}

/// Some roles beside other processes.
pub(crate) async fn run(config: Config, chosen: Vec<RoleName>) -> Result<()> {
  let chosen: BTreeSet<RoleName> = chosen.into_iter().collect();
  let name = chosen.iter().map(|role| role.name()).collect::<Vec<_>>().join("-");
  let storage = Storage::shared(&config, &name).await?;
  serve(config, storage, chosen).await
}

/// How the outside reaches a process that listens on `bound`.
pub(crate) fn origin(config: &Config, bound: SocketAddr) -> Result<String> {
  if config.server.public_url.is_empty() { Ok(format!("http://{bound}")) } else { Ok(config.server.public_url.clone()) }
}

async fn serve(config: Config, storage: Storage, chosen: BTreeSet<RoleName>) -> Result<()> {
  let readiness = Readiness::default();
  readiness.not_ready("start", "the process is starting");
  let metrics = observe::metrics();
  let listener = TcpListener::bind(config.listen()?).await.with_context(|| format!("listen on {}", config.server.listen))?;
  let bound = listener.local_addr().context("find the address that it listens on")?;
  let stop = CancellationToken::new();
  let signals = stop.clone();
  let shared = wire::shared(&storage, chosen.contains(&RoleName::Projector), &stop).await?;
  shared.tasks.spawn(async move {
    if let Err(error) = ended().await {
      tracing::error!(error = error.as_ref() as &dyn std::error::Error, "no signal can be heard; stopping");
    }
    tracing::info!("stopping: executions yield, partitions are given back");
    signals.cancel();
  });
  let models = model::start(&config).await?;
  let started = roles::start(&config, &storage, &shared, &chosen, &models, &readiness, &stop).await?;
  register(&config, &storage, &shared, &chosen, bound, &stop).await?;
  let serving = if chosen.contains(&RoleName::Gateway) {
    let gateway = roles::gateway(&config, &storage, &shared, &models, &readiness, &metrics, bound, &stop)?;
    let stop = stop.clone();
    shared.tasks.spawn(async move { gateway.serve(listener, stop).await })
  } else {
    let (router, stop) = (operations(readiness.clone(), metrics.clone()), stop.clone());
    shared.tasks.spawn(async move { pa_gateway::serve(listener, router, stop).await })
  };
  started.caught_up(&stop).await?;
  if chosen.contains(&RoleName::Gateway) && !stop.is_cancelled() {
    announce(&config, &storage, &shared, bound).await?;
  } else {
    print(&format!("listening={}", origin(&config, bound)?))?;
  }
  readiness.ready("start");
  look_after(&storage, &stop).await;
  finish(storage, shared, started, serving).await
}

async fn announce(config: &Config, storage: &Storage, shared: &Shared, bound: SocketAddr) -> Result<()> {
  let account = owner::account(shared).await?;
  owner::agent_ready(shared, account).await?;
  owner::adopt(&shared.control, account, &owner::token(config, &storage.paths)?).await?;
  let origin = origin(config, bound)?;
  print(&format!("listening={origin}"))?;
  print(&format!("sign-in={}", owner::link(&shared.control, account, &origin).await?))
}

async fn register(config: &Config, storage: &Storage, shared: &Shared, chosen: &BTreeSet<RoleName>, bound: SocketAddr, stop: &CancellationToken) -> Result<()> {
  let listen = if chosen.contains(&RoleName::Gateway) { Some(origin(config, bound)?) } else { None };
  let node = Node { holder: shared.holder, roles: chosen.iter().map(|role| role.name().to_owned()).collect(), listen, version: VERSION.to_owned() };
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

/// Until the stop: looks after the private Postgres, and wakes readers when other processes append.
async fn look_after(storage: &Storage, stop: &CancellationToken) {
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
  tokio::select! {
    () = postgres => {}
    () = storage.log.clone().listen(&storage.database) => {}
    () = stop.cancelled() => {}
  }
}

async fn finish(storage: Storage, shared: Shared, started: roles::Started, serving: tokio::task::JoinHandle<()>) -> Result<()> {
  let graceful = async {
    started.stopped().await;
    if let Err(error) = serving.await {
      tracing::error!(%error, "serving ended badly");
    }
    shared.tasks.close();
    shared.tasks.wait().await;
  };
  if tokio::time::timeout(STOP_MAX, graceful).await.is_err() {
    tracing::warn!("not everything ended in time; what is left is picked up by the next start");
  }
  if let Some(postgres) = &storage.postgres {
    postgres.stop().await.context("stop the private Postgres")?;
  }
  tracing::info!("stopped");
  Ok(())
}

async fn ended() -> Result<()> {
  let mut term = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
  let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
  tokio::select! {
    _ = term.recv() => {}
    _ = interrupt.recv() => {}
  }
  Ok(())
}
