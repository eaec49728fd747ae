//! The agent role: one stage that answers messages and one that carries tasks out, over the same history and tools.

use std::sync::Arc;

use anyhow::{Context, Result};
use pa_domain::execution::JobKind;
use pa_eventlog::seal::Keys;
use pa_pipeline::agent::ports::SystemBootClock;
use pa_pipeline::agent::postgres::{HistoryParts, PostgresQueue, ReadHistory};
use pa_pipeline::agent::{self, AgentParts, Models};
use pa_tools::{HistoryTool, Tool, Tools};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::model;
use crate::tools;
use crate::wire::Shared;

/// Starts both stages; what is given back ends when both have.
pub(crate) fn start(config: &Config, shared: &Shared, models: &model::Models, stop: &CancellationToken) -> Result<JoinHandle<()>> {
  let history = Arc::new(ReadHistory::new(HistoryParts {
    reads: shared.reads.clone(),
    live: shared.live.clone(),
    log: Arc::clone(&shared.log),
    opener: Arc::clone(&shared.opener),
    blobs: Arc::clone(&shared.blobs),
    workspaces: Arc::clone(&shared.workspaces),
    keys: Arc::clone(&shared.keys) as Arc<dyn Keys>,
  }));
  let mut offered = tools(config, shared, &history)?;
  offered.extend(of_tests(config));
  let tools = Tools::new(offered).context("offer the tools")?;
  let models = Models::new(Arc::clone(&models.model), []);
  let config = agent::Config {
    replies_max: config.agent.replies_max,
    tasks_max: config.agent.tasks_max,
    history_percent: u8::try_from(config.model.history_percent).context("model.history_percent")?,
  };
  let parts = |kind| AgentParts {
    queue: Arc::new(PostgresQueue::new(kind, shared.leases.clone(), shared.reads.clone(), &shared.live, shared.holder, Arc::clone(&shared.clock))),
    history: Arc::clone(&history) as _,
    models: models.clone(),
    tools: tools.clone(),
    appender: shared.appender("pa/agent"),
    tail: Arc::clone(&shared.tail),
    pieces: Arc::clone(&shared.pieces),
    clock: Arc::clone(&shared.clock),
    boot: Arc::new(SystemBootClock),
    ids: Arc::clone(&shared.ids),
    holder: shared.holder,
    config: config.clone(),
  };
  let (replies, tasks) = (parts(JobKind::Reply), parts(JobKind::Task));
  let (shared, stop) = (shared.clone(), stop.clone());
  Ok(shared.tasks.clone().spawn(async move {
    shared.has_read_model(&stop).await;
    tokio::join!(agent::run(replies, stop.clone()), agent::run(tasks, stop.clone()));
  }))
}

/// What is offered to models, each tool where it says.
fn tools(config: &Config, shared: &Shared, history: &Arc<ReadHistory>) -> Result<Vec<Arc<dyn Tool>>> {
  let mut tools = tools::offered(&config.tools.web, &shared.workspaces)?;
  tools.push(Arc::new(HistoryTool::new(Arc::clone(history) as _)));
  Ok(tools)
}

/// Tools that only the program under test has.
#[cfg(feature = "testing")]
fn of_tests(config: &Config) -> Vec<Arc<dyn Tool>> {
  use pa_tools::testing::{EffectTool, ProcessGroupTool};

  let url = config.testing.effects_url.as_str();
  if url.is_empty() {
    return Vec::new();
  }
  vec![Arc::new(EffectTool::email(url)), Arc::new(EffectTool::computer(url)), Arc::new(ProcessGroupTool)]
}

#[cfg(not(feature = "testing"))]
fn of_tests(_: &Config) -> Vec<Arc<dyn Tool>> {
  Vec::new()
}
