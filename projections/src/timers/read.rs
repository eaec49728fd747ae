//! What the scheduler reads.

use pa_domain::timer::Purpose;
use pa_domain::{AgentId, ThingId, TimerId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::code::Code as _;
use crate::error::reading;

/// Timers of one read at most: the scheduler reports them and reads again.
const DUE_MAX: i64 = 500;

/// A timer that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
  pub agent: AgentId,
  pub id: TimerId,
  pub purpose: Purpose,
  pub due: Timestamp,
  pub thing: Option<ThingId>,
}

#[derive(sqlx::FromRow)]
struct TimerRow {
  agent: Uuid,
  id: Uuid,
  purpose: String,
  due_ms: i64,
  thing: Option<Uuid>,
}

/// Timers that are due at or before an instant, the earliest first.
pub async fn due(pool: &PgPool, at: Timestamp, limit: u32) -> Result<Vec<Timer>, Error> {
  let rows: Vec<TimerRow> = sqlx::query_as("SELECT agent, id, purpose, due_ms, thing FROM timers WHERE due_ms <= $1 ORDER BY due_ms, agent, id LIMIT $2")
    .bind(at.0)
    .bind(i64::from(limit).min(DUE_MAX))
    .fetch_all(pool)
    .await
    .map_err(reading("look for due timers"))?;
  rows
    .into_iter()
    .map(|row| {
      Ok(Timer {
        agent: AgentId(row.agent),
        id: TimerId(row.id),
        purpose: Purpose::parse(&row.purpose)?,
        due: Timestamp(row.due_ms),
        thing: row.thing.map(ThingId),
      })
    })
    .collect()
}

/// When the first timer is due that is not due at an instant.
pub async fn next_due(pool: &PgPool, after: Timestamp) -> Result<Option<Timestamp>, Error> {
  let due: Option<i64> = sqlx::query_scalar("SELECT due_ms FROM timers WHERE due_ms > $1 ORDER BY due_ms LIMIT 1")
    .bind(after.0)
    .fetch_optional(pool)
    .await
    .map_err(reading("look for the next timer"))?;
  Ok(due.map(Timestamp))
}
