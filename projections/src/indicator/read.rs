//! What the page reads for its indicator.

use pa_domain::{AgentId, MessageId, TaskId};
use sqlx::PgPool;
use uuid::Uuid;

use super::fold::Failing;
use crate::Error;
use crate::error::reading;

/// Facts behind the indicator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indicator {
  /// A card waits for the owner's decision, an external call has an outcome that only the owner can tell, or a task goes on only with the owner.
  pub needs_input: bool,
  /// An execution runs.
  pub running: bool,
  /// None once what failed last goes on.
  pub last_failure: Option<Failure>,
  /// None once the task goes on.
  pub last_result: Option<LastResult>,
  /// 0 for an agent that has never worked.
  pub changed: i64,
}

/// The newest failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
  pub what: Failing,
  /// Where it stands in the agent's log.
  pub ordinal: i64,
  pub code: String,
}

/// The newest result of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastResult {
  pub task: TaskId,
  /// Where it stands in the agent's log.
  pub ordinal: i64,
  /// The reply that tells it stands in the conversation.
  pub delivered: bool,
}

/// The row as every statement that reads it names its columns.
#[derive(sqlx::FromRow)]
pub(crate) struct IndicatorRow {
  running: i32,
  failed_message: Option<Uuid>,
  /// Only while the task still stands as failed.
  failed_task: Option<Uuid>,
  failed_ordinal: Option<i64>,
  failed_code: Option<String>,
  /// Only while the task still stands as completed.
  result_task: Option<Uuid>,
  result_ordinal: Option<i64>,
  delivered: Option<bool>,
  #[sqlx(rename = "indicator")]
  changed: i64,
  needs_input: bool,
}

impl IndicatorRow {
  pub(crate) fn take(self) -> Indicator {
    let what = self.failed_message.map(|id| Failing::Message(MessageId(id))).or(self.failed_task.map(|id| Failing::Task(TaskId(id))));
    let last_failure = what.zip(self.failed_ordinal).zip(self.failed_code);
    let last_result = self.result_task.zip(self.result_ordinal);
    Indicator {
      needs_input: self.needs_input,
      running: self.running > 0,
      last_failure: last_failure.map(|((what, ordinal), code)| Failure { what, ordinal, code }),
      last_result: last_result.map(|(task, ordinal)| LastResult { task: TaskId(task), ordinal, delivered: self.delivered.unwrap_or(false) }),
      changed: self.changed,
    }
  }
}

/// An agent's indicator.
pub async fn of(pool: &PgPool, agent: AgentId) -> Result<Indicator, Error> {
  let row: Option<IndicatorRow> = sqlx::query_as(
    "SELECT i.changed AS indicator, i.running, i.failed_message, f.id AS failed_task, i.failed_ordinal, i.failed_code, r.id AS result_task, i.result_ordinal, \
     (SELECT e.status = 'POSTED' FROM entries e WHERE e.agent = i.agent AND e.id = r.report) AS delivered, \
     (EXISTS (SELECT 1 FROM pending_actions a WHERE a.agent = i.agent AND a.state IN ('PENDING', 'UNKNOWN')) \
     OR EXISTS (SELECT 1 FROM tasks t WHERE t.agent = i.agent AND t.needs_owner)) AS needs_input \
     FROM indicator i LEFT JOIN tasks f ON f.agent = i.agent AND f.id = i.failed_task AND f.state = 'FAILED' \
     LEFT JOIN tasks r ON r.agent = i.agent AND r.id = i.result_task AND r.state = 'COMPLETED' WHERE i.agent = $1",
  )
  .bind(agent.0)
  .fetch_optional(pool)
  .await
  .map_err(reading("read the indicator"))?;
  Ok(row.map(IndicatorRow::take).unwrap_or_default())
}
