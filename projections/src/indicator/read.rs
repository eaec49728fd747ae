//! What the page reads for its indicator.

use pa_domain::{AgentId, MessageId};
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::error::reading;

/// Facts behind the indicator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indicator {
  /// An external call has an outcome that only the owner can tell.
  pub needs_input: bool,
  /// An execution runs.
  pub running: bool,
  pub last_failure: Option<Failure>,
  /// 0 for an agent that has never worked.
  pub changed: i64,
}

/// The newest failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
  /// The message that was not answered.
  pub message: MessageId,
  /// Where it stands in the agent's log.
  pub ordinal: i64,
  pub code: String,
}

/// The row as every statement that reads it names its columns.
#[derive(sqlx::FromRow)]
pub(crate) struct IndicatorRow {
  running: i32,
  failed_message: Option<Uuid>,
  failed_ordinal: Option<i64>,
  failed_code: Option<String>,
  #[sqlx(rename = "indicator")]
  changed: i64,
  needs_input: bool,
}

impl IndicatorRow {
  pub(crate) fn take(self) -> Indicator {
    let last_failure = self.failed_message.zip(self.failed_ordinal).zip(self.failed_code);
    Indicator {
      needs_input: self.needs_input,
      running: self.running > 0,
      last_failure: last_failure.map(|((message, ordinal), code)| Failure { message: MessageId(message), ordinal, code }),
      changed: self.changed,
    }
  }
}

/// An agent's indicator.
pub async fn of(pool: &PgPool, agent: AgentId) -> Result<Indicator, Error> {
  let row: Option<IndicatorRow> = sqlx::query_as(
    "SELECT running, failed_message, failed_ordinal, failed_code, changed AS indicator, \
     EXISTS (SELECT 1 FROM open_calls c WHERE c.agent = $1 AND c.unknown AND c.class = 'EXTERNAL') AS needs_input FROM indicator WHERE agent = $1",
  )
  .bind(agent.0)
  .fetch_optional(pool)
  .await
  .map_err(reading("read the indicator"))?;
  Ok(row.map(IndicatorRow::take).unwrap_or_default())
}
