//! `pa rebuild`: the read schema, or one agent's rows, afresh from the log.

use anyhow::Result;
use pa_domain::AgentId;
use pa_pipeline::projector::build;
use pa_projections::schema::Schemas;
use uuid::Uuid;

use crate::config::Config;
use crate::roles;

/// Builds the read schema of this binary afresh.
pub(crate) async fn run(config: &Config, agent: Option<Uuid>) -> Result<()> {
  super::with(config, async |storage, shared| {
    super::known(shared, agent).await?;
    let (parts, schemas) = (roles::projector_parts(storage, shared), Schemas::new(&storage.database));
    let built = match agent {
      Some(agent) => build::rebuild_agent(&parts, &schemas, AgentId(agent)).await?,
      None => build::rebuild(&parts, &schemas).await?,
    };
    super::print(&format!("rebuilt from {} facts", built.facts))
  })
  .await
}
