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

/// What is to be summed up: every given condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
  /// Only what this task, or the reply to this message, used.
  pub job: Option<JobId>,
  /// From this instant on.
  pub since: Option<Timestamp>,
  /// Before this instant.
  pub until: Option<Timestamp>,
}

/// What was used together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
  /// Recorded steps, each of which was one request that succeeded.
  pub steps: i64,
  /// Of the steps that say so.
  pub input_tokens: i64,
  pub output_tokens: i64,
  pub cached_tokens: i64,
  pub reasoning_tokens: i64,
  /// Steps whose tokens nobody knows.
  pub uncounted_steps: i64,
  /// Steps whose price nobody knows.
  pub unpriced_steps: i64,
  /// By currency, in its order.
  pub costs: Vec<Cost>,
}

/// What was paid in one currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
  pub currency: String,
  /// Millionths.
  pub micros: i64,
}

const SUM: &str = "SELECT currency, count(*), coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(cached_tokens), 0)::bigint, \
  coalesce(sum(reasoning_tokens), 0)::bigint, count(*) FILTER (WHERE input_tokens IS NULL OR output_tokens IS NULL), count(*) FILTER (WHERE price_micros IS NULL), \
  coalesce(sum(price_micros), 0)::bigint FROM usage WHERE agent = $1 AND at_ms >= $2 AND at_ms < $3 GROUP BY currency ORDER BY currency";

const SUM_OF_JOB: &str = "SELECT currency, count(*), coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(cached_tokens), 0)::bigint, \
  coalesce(sum(reasoning_tokens), 0)::bigint, count(*) FILTER (WHERE input_tokens IS NULL OR output_tokens IS NULL), count(*) FILTER (WHERE price_micros IS NULL), \
  coalesce(sum(price_micros), 0)::bigint FROM usage WHERE agent = $1 AND job = $2 AND at_ms >= $3 AND at_ms < $4 GROUP BY currency ORDER BY currency";

/// A currency, or none, with what was used in it.
type SumRow = (Option<String>, i64, i64, i64, i64, i64, i64, i64, i64);

/// What was used in a span, without a limit of rows: one row comes back for each currency.
pub async fn sum(pool: &PgPool, agent: AgentId, span: Span) -> Result<Sum, Error> {
  let query = match span.job {
    Some(job) => sqlx::query_as(SUM_OF_JOB).bind(agent.0).bind(job.0),
    None => sqlx::query_as(SUM).bind(agent.0),
  };
  let (since, until) = (span.since.map_or(i64::MIN, |since| since.0), span.until.map_or(i64::MAX, |until| until.0));
  let rows: Vec<SumRow> = query.bind(since).bind(until).fetch_all(pool).await.map_err(reading("sum up the usage"))?;
  let mut sum = Sum::default();
  for (currency, steps, input, output, cached, reasoning, uncounted, unpriced, micros) in rows {
    sum.steps += steps;
    sum.input_tokens += input;
    sum.output_tokens += output;
    sum.cached_tokens += cached;
    sum.reasoning_tokens += reasoning;
    sum.uncounted_steps += uncounted;
    sum.unpriced_steps += unpriced;
    if let Some(currency) = currency {
      sum.costs.push(Cost { currency, micros });
    }
  }
  Ok(sum)
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
