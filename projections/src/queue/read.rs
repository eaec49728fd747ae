//! What workers, observers and the indicator read of the queue.

use pa_domain::call::Class;
use pa_domain::execution::JobKind;
use pa_domain::{AgentId, CallId, ConversationId, JobId, MessageId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use super::JobState;
use crate::Error;
use crate::code::Code as _;
use crate::error::reading;

/// Rows of one read at most: a worker takes a few jobs at a time, an observer looks again in a second.
const ROWS_MAX: i64 = 500;

/// A job that had its turn and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
  pub agent: AgentId,
  pub id: JobId,
  pub kind: JobKind,
  pub conversation: ConversationId,
  pub reply: MessageId,
  pub state: JobState,
  /// The execution that runs or ran last; 0 before the first.
  pub execution: i32,
  /// Since when it is in this state.
  pub since: Timestamp,
  /// When the running attempt reaches its limit.
  pub limit: Option<Timestamp>,
  pub changed: i64,
}

/// A call that has begun and is not settled.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
  pub agent: AgentId,
  pub id: CallId,
  pub job: JobId,
  pub execution: i32,
  pub step: i32,
  pub index: i32,
  pub tool: String,
  pub class: Class,
  /// The canonical action.
  pub action: String,
  /// The tool's own limit.
  pub limit_millis: i64,
  pub started: Timestamp,
  /// Nobody knows its outcome.
  pub unknown: bool,
}

// A subquery for one value is looked up by its key for each row until the limit is reached; as a join it would be a scan of all leases.

/// Jobs that a worker may claim, longest waiting first: nobody works on them, no living process has claimed them, and no external call of theirs is open.
pub async fn candidates(pool: &PgPool, kind: JobKind, limit: u32) -> Result<Vec<(JobId, AgentId)>, Error> {
  let rows: Vec<(Uuid, Uuid)> = sqlx::query_as(
    "SELECT j.id, j.agent FROM jobs j WHERE j.kind = $1 AND j.state = 'CLAIMABLE' AND j.turn \
     AND (SELECT l.expires_at > now() FROM ops.leases l WHERE l.kind = j.kind AND l.job = j.id) IS NOT TRUE \
     AND (SELECT true FROM open_calls c WHERE c.agent = j.agent AND c.job = j.id AND c.class = 'EXTERNAL' LIMIT 1) IS NULL \
     ORDER BY j.since_ms, j.agent, j.id LIMIT $2",
  )
  .bind(kind.code())
  .bind(i64::from(limit).min(ROWS_MAX))
  .fetch_all(pool)
  .await
  .map_err(reading("look for work"))?;
  Ok(rows.into_iter().map(|(job, agent)| (JobId(job), AgentId(agent))).collect())
}

/// A job; `None` when it has no turn (any more).
pub async fn job(pool: &PgPool, agent: AgentId, id: JobId) -> Result<Option<Job>, Error> {
  let row: Option<JobRow> =
    sqlx::query_as("SELECT agent, id, kind, conversation, reply, state, execution, since_ms, limit_ms, changed FROM jobs WHERE agent = $1 AND id = $2")
      .bind(agent.0)
      .bind(id.0)
      .fetch_optional(pool)
      .await
      .map_err(reading("read a job"))?;
  row.map(JobRow::take).transpose()
}

/// Those of these jobs that are running by the log, such as those whose lease has run out.
pub async fn running(pool: &PgPool, jobs: &[(AgentId, JobId)]) -> Result<Vec<Job>, Error> {
  let (agents, ids): (Vec<Uuid>, Vec<Uuid>) = jobs.iter().map(|(agent, job)| (agent.0, job.0)).unzip();
  let rows: Vec<JobRow> = sqlx::query_as(
    "SELECT j.agent, j.id, j.kind, j.conversation, j.reply, j.state, j.execution, j.since_ms, j.limit_ms, j.changed \
     FROM unnest($1::uuid[], $2::uuid[]) AS u(agent, id) JOIN jobs j ON j.agent = u.agent AND j.id = u.id WHERE j.state = 'RUNNING' LIMIT $3",
  )
  .bind(agents)
  .bind(ids)
  .bind(ROWS_MAX)
  .fetch_all(pool)
  .await
  .map_err(reading("read running jobs"))?;
  rows.into_iter().map(JobRow::take).collect()
}

/// Running jobs that no lease stands for and that began before an instant: their worker vanished together with its lease row.
pub async fn running_without_lease(pool: &PgPool, kind: JobKind, began_before: Timestamp, limit: u32) -> Result<Vec<Job>, Error> {
  let rows: Vec<JobRow> = sqlx::query_as(
    "SELECT j.agent, j.id, j.kind, j.conversation, j.reply, j.state, j.execution, j.since_ms, j.limit_ms, j.changed FROM jobs j \
     WHERE j.state = 'RUNNING' AND j.kind = $3 AND j.since_ms < $1 AND (SELECT true FROM ops.leases l WHERE l.kind = j.kind AND l.job = j.id) IS NULL \
     ORDER BY j.since_ms LIMIT $2",
  )
  .bind(began_before.0)
  .bind(i64::from(limit).min(ROWS_MAX))
  .bind(kind.code())
  .fetch_all(pool)
  .await
  .map_err(reading("look for abandoned executions"))?;
  rows.into_iter().map(JobRow::take).collect()
}

/// The open calls of a job.
pub async fn open_calls(pool: &PgPool, agent: AgentId, job: JobId) -> Result<Vec<OpenCall>, Error> {
  let rows: Vec<CallRow> = sqlx::query_as(
    "SELECT agent, id, job, execution, step, idx, tool, class, action, limit_millis, started_ms, unknown FROM open_calls WHERE agent = $1 AND job = $2 \
     ORDER BY step, idx LIMIT $3",
  )
  .bind(agent.0)
  .bind(job.0)
  .bind(ROWS_MAX)
  .fetch_all(pool)
  .await
  .map_err(reading("read the open calls of a job"))?;
  rows.into_iter().map(CallRow::take).collect()
}

/// Open calls whose execution no longer runs and whose outcome is not yet said to be unknown: an observer watches them (D13). Those of a task that is over, which has no
/// row any more, are found with the replies'.
pub async fn open_calls_of_ended(pool: &PgPool, kind: JobKind, limit: u32) -> Result<Vec<OpenCall>, Error> {
  let rows: Vec<CallRow> = sqlx::query_as(
    "SELECT c.agent, c.id, c.job, c.execution, c.step, c.idx, c.tool, c.class, c.action, c.limit_millis, c.started_ms, c.unknown FROM open_calls c \
     WHERE NOT c.unknown \
     AND (SELECT j.state = 'RUNNING' AND j.execution = c.execution FROM jobs j WHERE j.agent = c.agent AND j.id = c.job) IS NOT TRUE \
     AND coalesce((SELECT j.kind FROM jobs j WHERE j.agent = c.agent AND j.id = c.job), 'REPLY') = $2 \
     ORDER BY c.agent, c.id LIMIT $1",
  )
  .bind(i64::from(limit).min(ROWS_MAX))
  .bind(kind.code())
  .fetch_all(pool)
  .await
  .map_err(reading("look for calls of ended executions"))?;
  rows.into_iter().map(CallRow::take).collect()
}

#[derive(sqlx::FromRow)]
struct JobRow {
  agent: Uuid,
  id: Uuid,
  kind: String,
  conversation: Uuid,
  reply: Uuid,
  state: String,
  execution: i32,
  since_ms: i64,
  limit_ms: Option<i64>,
  changed: i64,
}

impl JobRow {
  fn take(self) -> Result<Job, Error> {
    Ok(Job {
      agent: AgentId(self.agent),
      id: JobId(self.id),
      kind: JobKind::parse(&self.kind)?,
      conversation: ConversationId(self.conversation),
      reply: MessageId(self.reply),
      state: JobState::parse(&self.state)?,
      execution: self.execution,
      since: Timestamp(self.since_ms),
      limit: self.limit_ms.map(Timestamp),
      changed: self.changed,
    })
  }
}

#[derive(sqlx::FromRow)]
struct CallRow {
  agent: Uuid,
  id: Uuid,
  job: Uuid,
  execution: i32,
  step: i32,
  idx: i32,
  tool: String,
  class: String,
  action: String,
  limit_millis: i64,
  started_ms: i64,
  unknown: bool,
}

impl CallRow {
  fn take(self) -> Result<OpenCall, Error> {
    Ok(OpenCall {
      agent: AgentId(self.agent),
      id: CallId(self.id),
      job: JobId(self.job),
      execution: self.execution,
      step: self.step,
      index: self.idx,
      tool: self.tool,
      class: Class::parse(&self.class)?,
      action: self.action,
      limit_millis: self.limit_millis,
      started: Timestamp(self.started_ms),
      unknown: self.unknown,
    })
  }
}
