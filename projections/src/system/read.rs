//! What the system page, `atLeast` and the projector read.

use pa_domain::{AgentId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::error::reading;

/// Parked agents that are listed: beyond a handful something else is wrong.
const PARKED_MAX: i64 = 1_000;

/// How far a partition has been projected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRow {
  pub partition: u16,
  pub next_position: i64,
  /// The term of the decider whose decisions were read last.
  pub epoch: i64,
  pub seq: i64,
}

/// An agent whose read model stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
  pub agent: AgentId,
  /// The ordinal from which on nothing is shown.
  pub from: i64,
  pub error: String,
}

/// Every partition, in order.
pub async fn partitions(pool: &PgPool) -> Result<Vec<PartitionRow>, Error> {
  let rows: Vec<(i16, i64, i64, i64)> = sqlx::query_as("SELECT part, next_position, epoch, seq FROM projection_position ORDER BY part")
    .fetch_all(pool)
    .await
    .map_err(reading("read the positions of the read model"))?;
  rows
    .into_iter()
    .map(|(part, next_position, epoch, seq)| {
      let partition = u16::try_from(part).map_err(|_| Error::Corrupt { expected: "a partition", value: part.to_string() })?;
      Ok(PartitionRow { partition, next_position, epoch, seq })
    })
    .collect()
}

/// Agents that are parked.
pub async fn parked(pool: &PgPool) -> Result<Vec<Parked>, Error> {
  let rows: Vec<(Uuid, i64, String)> = sqlx::query_as("SELECT agent, from_ordinal, error FROM parked ORDER BY agent LIMIT $1")
    .bind(PARKED_MAX)
    .fetch_all(pool)
    .await
    .map_err(reading("read the parked agents"))?;
  Ok(rows.into_iter().map(|(agent, from, error)| Parked { agent: AgentId(agent), from, error }).collect())
}

/// That the read model was emptied and folded anew while it stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
  pub because: String,
  pub at: Timestamp,
}

/// When the read model was last emptied and folded anew, and why, if that happened.
pub async fn rebuilt(pool: &PgPool) -> Result<Option<Rebuilt>, Error> {
  let row: Option<(String, i64)> =
    sqlx::query_as("SELECT because, at_ms FROM rebuilt").fetch_optional(pool).await.map_err(reading("read why the read model was rebuilt"))?;
  Ok(row.map(|(because, at)| Rebuilt { because, at: Timestamp(at) }))
}

/// The agent's newest ordinal in the read model; 0 for none.
pub async fn progress(pool: &PgPool, agent: AgentId) -> Result<i64, Error> {
  let ordinal: Option<i64> = sqlx::query_scalar("SELECT ordinal FROM agent_progress WHERE agent = $1")
    .bind(agent.0)
    .fetch_optional(pool)
    .await
    .map_err(reading("read how far an agent is"))?;
  Ok(ordinal.unwrap_or(0))
}

/// The same for several agents; those without a row are left out.
pub async fn progress_of_many(pool: &PgPool, agents: &[AgentId]) -> Result<Vec<(AgentId, i64)>, Error> {
  let agents: Vec<Uuid> = agents.iter().map(|agent| agent.0).collect();
  let rows: Vec<(Uuid, i64)> = sqlx::query_as("SELECT agent, ordinal FROM agent_progress WHERE agent = ANY($1)")
    .bind(agents)
    .fetch_all(pool)
    .await
    .map_err(reading("read how far agents are"))?;
  Ok(rows.into_iter().map(|(agent, ordinal)| (AgentId(agent), ordinal)).collect())
}
