//! What the page and the prompt read of the settings.

use std::collections::HashMap;

use pa_domain::AgentId;
use pa_domain::settings::Effort;
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::code::Code as _;
use crate::error::reading;

/// An agent's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
  pub version: i64,
  pub time_zone: String,
  pub language: String,
  pub concurrency: i32,
  pub model: String,
  pub effort: Effort,
  pub name: String,
  pub avatar: String,
  pub changed: i64,
}

#[derive(sqlx::FromRow)]
struct SettingsRow {
  agent: Uuid,
  version: i64,
  time_zone: String,
  language: String,
  concurrency: i32,
  model: String,
  effort: String,
  name: String,
  avatar: String,
  changed: i64,
}

/// The settings of several agents, in their order; `None` for one that does not exist in the read model yet.
pub async fn of_many(pool: &PgPool, agents: &[AgentId]) -> Result<Vec<Option<Settings>>, Error> {
  let wanted: Vec<Uuid> = agents.iter().map(|agent| agent.0).collect();
  let rows: Vec<SettingsRow> =
    sqlx::query_as("SELECT agent, version, time_zone, language, concurrency, model, effort, name, avatar, changed FROM settings WHERE agent = ANY($1)")
      .bind(wanted)
      .fetch_all(pool)
      .await
      .map_err(reading("read the settings of several agents"))?;
  let found: HashMap<Uuid, Settings> = rows.into_iter().map(|row| Ok((row.agent, row.take()?))).collect::<Result<_, Error>>()?;
  Ok(agents.iter().map(|agent| found.get(&agent.0).cloned()).collect())
}

/// An agent's settings; `None` before the agent exists in the read model.
pub async fn of(pool: &PgPool, agent: AgentId) -> Result<Option<Settings>, Error> {
  let row: Option<SettingsRow> =
    sqlx::query_as("SELECT agent, version, time_zone, language, concurrency, model, effort, name, avatar, changed FROM settings WHERE agent = $1")
      .bind(agent.0)
      .fetch_optional(pool)
      .await
      .map_err(reading("read the settings"))?;
  row.map(SettingsRow::take).transpose()
}

impl SettingsRow {
  fn take(self) -> Result<Settings, Error> {
    Ok(Settings {
      version: self.version,
      time_zone: self.time_zone,
      language: self.language,
      concurrency: self.concurrency,
      model: self.model,
      effort: Effort::parse(&self.effort)?,
      name: self.name,
      avatar: self.avatar,
      changed: self.changed,
    })
  }
}
