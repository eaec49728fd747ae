//! `pa rebuild`: the read schema, or one agent's rows, afresh from the log.

use anyhow::Result;
use pa_domain::AgentId;
use pa_pipeline::projector::build;
use pa_projections::schema::Schemas;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::Config;
use crate::storage::Storage;
use crate::{roles, wire};

/// Builds the read schema of this binary afresh.
pub(crate) async fn run(config: &Config, agent: Option<Uuid>) -> Result<()> {
  let storage = Storage::tool(config).await?;
  let stop = CancellationToken::new();
  let shared = wire::shared(&storage, false, &stop).await?;
  let (parts, schemas) = (roles::projector_parts(&storage, &shared), Schemas::new(&storage.database));
  let built = match agent {
    Some(agent) => build::rebuild_agent(&parts, &schemas, AgentId(agent)).await?,
    None => build::rebuild(&parts, &schemas).await?,
  };
  super::print(&format!("rebuilt from {} facts", built.facts))?;
  stop.cancel();
  storage.close().await
}
