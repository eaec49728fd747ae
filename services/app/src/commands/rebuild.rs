//! `pa rebuild`: the read schema, or one agent's rows, afresh from the log.

use std::process::ExitCode;

use anyhow::Result;
use pa_domain::AgentId;
use pa_pipeline::projector::{build, verify};
use pa_projections::schema::Schemas;
use pa_projections::system;
use uuid::Uuid;

use crate::config::Config;
use crate::roles;

/// Builds the read schema of this binary afresh. 0: every agent that was built stands well, and its chain is whole. 1: one line for each that is parked, and for each
/// event of the log that is not what its agent's chain says or does not count.
pub(crate) async fn run(config: &Config, agent: Option<Uuid>) -> Result<ExitCode> {
  super::with(config, async |storage, shared| {
    super::known(shared, agent).await?;
    let (parts, schemas) = (roles::projector_parts(storage, shared), Schemas::new(&storage.database));
    let built = match agent {
      Some(agent) => build::rebuild_agent(&parts, &schemas, AgentId(agent)).await?,
      None => build::rebuild(&parts, &schemas).await?,
    };
    super::print(&format!("rebuilt from {} facts", built.facts))?;
    let mut code = ExitCode::SUCCESS;
    for parked in system::parked(&shared.reads).await?.into_iter().filter(|parked| agent.is_none_or(|only| parked.agent.0 == only)) {
      super::print(&format!("agent {} is parked from ordinal {}: {}", parked.agent, parked.from, parked.error))?;
      code = ExitCode::FAILURE;
    }
    let only = agent.map(AgentId);
    for difference in verify::chains(&parts).await?.into_iter().filter(|difference| only.is_none_or(|only| difference.agent() == Some(only))) {
      super::print(&difference.to_string())?;
      code = ExitCode::FAILURE;
    }
    Ok(code)
  })
  .await
}
