//! What the page and the prompt read of the settings.

use pa_domain::AgentId;
use pa_domain::settings::Effort;
use sqlx::PgPool;

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

/// An agent's settings; `None` before the agent exists in the read model.
pub async fn of(pool: &PgPool, agent: AgentId) -> Result<Option<Settings>, Error> {
  let row: Option<SettingsRow> =
    sqlx::query_as("SELECT version, time_zone, language, concurrency, model, effort, name, avatar, changed FROM settings WHERE agent = $1")
      .bind(agent.0)
      .fetch_optional(pool)
      .await
      .map_err(reading("read the settings"))?;
  row
    .map(|row| {
      Ok(Settings {
        version: row.version,
        time_zone: row.time_zone,
        language: row.language,
        concurrency: row.concurrency,
        model: row.model,
        effort: Effort::parse(&row.effort)?,
        name: row.name,
        avatar: row.avatar,
        changed: row.changed,
      })
    })
    .transpose()
}
