//! The state of the installation.

use async_graphql::{Context, ID, Object, Result, SimpleObject};
use pa_eventlog::Stream;
use pa_projections::system as read;
use pa_store::ops::nodes;

use super::scalars::DateTime;
use crate::graphql::env::Env;

/// The state of the installation.
pub(crate) struct System;

/// One partition of the log.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Partition {
  pub id: i32,
  /// The term of its decider.
  pub epoch: i64,
  /// How many events the read model is behind.
  pub lag: i64,
}

/// An agent whose read model stands still.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct ParkedAgent {
  pub agent_id: ID,
  /// The ordinal from which on nothing is shown.
  pub from: i64,
  pub error: String,
}

/// A role that some process has taken.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Role {
  pub name: String,
  pub node: String,
}

/// The model that is used unless the settings name another.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct SystemModel {
  pub name: String,
  /// No real model is configured: answers come from the built-in rehearsal model.
  pub rehearsal: bool,
}

/// The read model was not made from the log as it is now, and was emptied and folded anew from it.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct FoldedAnew {
  pub at: DateTime,
  /// In English, for whoever runs the installation.
  pub because: String,
}

/// The state of the installation.
#[Object]
impl System {
  /// Which log is in use: `postgres` or `kafka`.
  async fn log_kind(&self, context: &Context<'_>) -> Result<String> {
    let env = Env::of(context);
    Ok(env.edge.log.identity().await.map_err(|error| env.failed(error))?.kind)
  }

  #[graphql(complexity = "32 * child_complexity")]
  async fn partitions(&self, context: &Context<'_>) -> Result<Vec<Partition>> {
    let env = Env::of(context);
    let rows = read::partitions(&env.edge.reads).await.map_err(|error| env.failed(error))?;
    let mut partitions = Vec::with_capacity(rows.len());
    for row in rows {
      let end = env.edge.log.end(Stream::Events, row.partition).await.map_err(|error| env.failed(error))?;
      partitions.push(Partition { id: i32::from(row.partition), epoch: row.epoch, lag: (end - row.next_position).max(0) });
    }
    Ok(partitions)
  }

  async fn parked(&self, context: &Context<'_>) -> Result<Vec<ParkedAgent>> {
    let env = Env::of(context);
    let rows = read::parked(&env.edge.reads).await.map_err(|error| env.failed(error))?;
    // Whoever owns the installation sees that something is parked; everybody else sees only their own agent.
    let all = env.is_operator().await?;
    let seen = rows.into_iter().filter(|row| all || row.agent == env.viewer.account);
    Ok(seen.map(|row| ParkedAgent { agent_id: ID::from(row.agent), from: row.from, error: row.error }).collect())
  }

  async fn roles(&self, context: &Context<'_>) -> Result<Vec<Role>> {
    let env = Env::of(context);
    let processes = nodes::alive(&env.edge.pool).await.map_err(|error| env.failed(error))?;
    let roles = processes.into_iter().flat_map(|process| {
      let node = process.holder.node.to_string();
      process.roles.into_iter().map(move |name| Role { name, node: node.clone() })
    });
    Ok(roles.collect())
  }

  async fn version(&self, context: &Context<'_>) -> String {
    Env::of(context).edge.version.to_owned()
  }

  /// The name of the read schema in use.
  async fn read_schema(&self, context: &Context<'_>) -> String {
    Env::of(context).edge.read_schema.clone()
  }

  /// When the read model was last folded anew because the log was another one or had been cut, and why; null when that never happened.
  async fn folded_anew(&self, context: &Context<'_>) -> Result<Option<FoldedAnew>> {
    let env = Env::of(context);
    let rebuilt = read::rebuilt(&env.edge.reads).await.map_err(|error| env.failed(error))?;
    Ok(rebuilt.map(|rebuilt| FoldedAnew { at: DateTime(rebuilt.at), because: rebuilt.because }))
  }

  /// The default model.
  async fn model(&self, context: &Context<'_>) -> SystemModel {
    Env::of(context)
      .edge
      .models
      .first()
      .map_or_else(|| SystemModel { name: String::new(), rehearsal: false }, |model| SystemModel { name: model.name.clone(), rehearsal: model.rehearsal })
  }
}
