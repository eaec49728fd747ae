//! What the page and the audit read of usage.

use pa_domain::settings::Effort;
use pa_domain::{AgentId, JobId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::code::Code as _;
use crate::error::reading;

/// Steps of one job that are read at most; a reply has a handful.
const STEPS_MAX: i64 = 500;

/// What one recorded step used; what is `None` is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
  pub job: JobId,
  pub step: i32,
  pub execution: i32,
  pub model: String,
  pub effort: Effort,
  pub finish: String,
  pub attempts: i32,
  pub started: Timestamp,
  pub ended: Timestamp,
  pub input_tokens: Option<i64>,
  pub output_tokens: Option<i64>,
  pub cached_tokens: Option<i64>,
  pub reasoning_tokens: Option<i64>,
  pub price_micros: Option<i64>,
  pub currency: Option<String>,
  pub at: Timestamp,
}

#[derive(sqlx::FromRow)]
struct UsageRow {
  job: Uuid,
  step: i32,
  execution: i32,
  model: String,
  effort: String,
  finish: String,
  attempts: i32,
  started_ms: i64,
  ended_ms: i64,
  input_tokens: Option<i64>,
  output_tokens: Option<i64>,
  cached_tokens: Option<i64>,
  reasoning_tokens: Option<i64>,
  price_micros: Option<i64>,
  currency: Option<String>,
  at_ms: i64,
}

/// The steps of a job, in order.
pub async fn of_job(pool: &PgPool, agent: AgentId, job: JobId) -> Result<Vec<Usage>, Error> {
  let rows: Vec<UsageRow> = sqlx::query_as(
    "SELECT job, step, execution, model, effort, finish, attempts, started_ms, ended_ms, input_tokens, output_tokens, cached_tokens, reasoning_tokens, price_micros, \
     currency, at_ms FROM usage WHERE agent = $1 AND job = $2 ORDER BY step LIMIT $3",
  )
  .bind(agent.0)
  .bind(job.0)
  .bind(STEPS_MAX)
  .fetch_all(pool)
  .await
  .map_err(reading("read the usage of a job"))?;
  rows.into_iter().map(UsageRow::take).collect()
}

impl UsageRow {
  fn take(self) -> Result<Usage, Error> {
    Ok(Usage {
      job: JobId(self.job),
      step: self.step,
      execution: self.execution,
      model: self.model,
      effort: Effort::parse(&self.effort)?,
      finish: self.finish,
      attempts: self.attempts,
      started: Timestamp(self.started_ms),
      ended: Timestamp(self.ended_ms),
      input_tokens: self.input_tokens,
      output_tokens: self.output_tokens,
      cached_tokens: self.cached_tokens,
      reasoning_tokens: self.reasoning_tokens,
      price_micros: self.price_micros,
      currency: self.currency,
      at: Timestamp(self.at_ms),
    })
  }
}
