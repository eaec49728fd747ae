//! `pa rebuild`: the read schema, or one agent's rows, afresh from the log.

use anyhow::Result;
use pa_domain::AgentId;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::Config;
use crate::storage::Storage;
use crate::wire;

/// Builds the read schema of this binary afresh.
pub(crate) async fn run(config: &Config, agent: Option<Uuid>) -> Result<()> {
  let storage = Storage::tool(config).await?;
  let stop = CancellationToken::new();
  let shared = wire::shared(&storage, false, &stop).await?;
  let summary = match agent {
    Some(agent) => pa_pipeline::projector::rebuild_agent(&storage.database, &shared.log, &shared.opener, AgentId(agent)).await?,
    None => pa_pipeline::projector::rebuild(&storage.database, &shared.log, &shared.opener).await?,
  };
  super::print(&summary.to_string())?;
  stop.cancel();
  storage.close().await
}
