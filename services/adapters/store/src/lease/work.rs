//! Leases on work: who carries out an execution of a job, and that it lives.
//!
//! A claim only chooses who asks; the log grants. So a claim may safely be lost, repeated, or outlived: its row is taken over when it has run out, and a worker
//! works only after it has read the start that its own ask caused. Rows of the queue projection are never locked: the caller brings the candidates it has read.

use pa_domain::{AgentId, JobId, NodeId};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Holder, LEASE_SECONDS};
use crate::Error;
use crate::error::{reading, writing};

/// How many candidates one claim looks at: the head of a queue, enough that workers who compete for it each find some.
pub const CANDIDATES_MAX: usize = 256;

/// A lease on a job's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkLease {
  pub kind: String,
  pub job: JobId,
  pub agent: AgentId,
  pub holder: Holder,
  /// The `ExecutionAsked` of this claim, which is appended after the claim.
  pub ask: Option<Uuid>,
  /// The execution that the log granted, once it is read.
  pub execution: Option<i32>,
}

/// A job that was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
  pub job: JobId,
  pub agent: AgentId,
  /// The id of the ask that this claim leads to.
  pub ask: Uuid,
}

/// Claims a candidate for each of the asks, whose ids are written down with it (best first; what lies beyond [`CANDIDATES_MAX`] is not looked at), in one statement.
/// A job whose lease runs is left alone, also when another claim takes it at this very moment.
pub async fn claim(pool: &PgPool, kind: &str, holder: Holder, candidates: &[(JobId, AgentId)], asks: &[Uuid]) -> Result<Vec<Claim>, Error> {
  let head = &candidates[..candidates.len().min(CANDIDATES_MAX)];
  if head.is_empty() || asks.is_empty() {
    return Ok(Vec::new());
  }
  let jobs: Vec<Uuid> = head.iter().map(|(job, _)| job.0).collect();
  let agents: Vec<Uuid> = head.iter().map(|(_, agent)| agent.0).collect();
  // `locked` takes the run-out rows that nobody else is taking now; new rows are settled by the primary key. Rows are written in the order of their ids, so that
  // two claims of the same new jobs can't wait for each other in a circle.
  let claimed: Vec<(Uuid, Uuid, Uuid)> = sqlx::query_as(
    "WITH wanted AS (
       SELECT job, min(agent::text)::uuid AS agent, min(place) AS place
       FROM unnest($2::uuid[], $3::uuid[]) WITH ORDINALITY AS candidate (job, agent, place) GROUP BY job
     ), locked AS (
       SELECT lease.job FROM ops.leases AS lease
       WHERE lease.kind = $1 AND lease.job = ANY($2) AND lease.expires_at <= clock_timestamp()
       ORDER BY lease.job FOR UPDATE SKIP LOCKED
     ), free AS (
       SELECT wanted.job, wanted.agent, row_number() OVER (ORDER BY wanted.place) AS number FROM wanted
       WHERE EXISTS (SELECT 1 FROM locked WHERE locked.job = wanted.job)
          OR NOT EXISTS (SELECT 1 FROM ops.leases AS lease WHERE lease.kind = $1 AND lease.job = wanted.job)
       ORDER BY wanted.place LIMIT cardinality($6::uuid[])
     )
     INSERT INTO ops.leases AS lease (kind, job, agent, node, process, ask, claimed_at, expires_at)
     SELECT $1, job, agent, $4, $5, ($6::uuid[])[number], clock_timestamp(), clock_timestamp() + make_interval(secs => $7) FROM free ORDER BY job
     ON CONFLICT (kind, job) DO UPDATE
     SET agent = excluded.agent, node = excluded.node, process = excluded.process, ask = excluded.ask, execution = NULL,
         claimed_at = excluded.claimed_at, expires_at = excluded.expires_at
     WHERE lease.expires_at <= clock_timestamp()
     RETURNING lease.job, lease.agent, lease.ask",
  )
  .bind(kind)
  .bind(&jobs)
  .bind(&agents)
  .bind(holder.node.0)
  .bind(holder.process)
  .bind(asks)
  .bind(LEASE_SECONDS)
  .fetch_all(pool)
  .await
  .map_err(writing("claim work"))?;
  Ok(claimed.into_iter().map(|(job, agent, ask)| Claim { job: JobId(job), agent: AgentId(agent), ask }).collect())
}

/// Writes down the execution that the log granted to the ask. `false` when the row is no longer this process's own.
pub async fn started(pool: &PgPool, kind: &str, job: JobId, process: Uuid, execution: i32) -> Result<bool, Error> {
  let done = sqlx::query("UPDATE ops.leases SET execution = $4 WHERE kind = $1 AND job = $2 AND process = $3")
    .bind(kind)
    .bind(job.0)
    .bind(process)
    .bind(execution)
    .execute(pool)
    .await
    .map_err(writing("write down an execution"))?;
  Ok(done.rows_affected() == 1)
}

/// Writes down several executions, as [`started`] does for one.
pub async fn started_many(pool: &PgPool, kind: &str, process: Uuid, executions: &[(JobId, i32)]) -> Result<(), Error> {
  let (jobs, numbers): (Vec<Uuid>, Vec<i32>) = executions.iter().map(|(job, execution)| (job.0, *execution)).unzip();
  sqlx::query(
    "UPDATE ops.leases AS lease SET execution = begun.execution FROM unnest($3::uuid[], $4::int[]) AS begun (job, execution)
     WHERE lease.kind = $1 AND lease.process = $2 AND lease.job = begun.job",
  )
  .bind(kind)
  .bind(process)
  .bind(jobs)
  .bind(numbers)
  .execute(pool)
  .await
  .map_err(writing("write down executions"))?;
  Ok(())
}

/// Ends several leases, as [`release`] does for one.
pub async fn release_many(pool: &PgPool, kind: &str, process: Uuid, jobs: &[JobId]) -> Result<(), Error> {
  let jobs: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
  sqlx::query("DELETE FROM ops.leases WHERE kind = $1 AND process = $2 AND job = ANY($3)")
    .bind(kind)
    .bind(process)
    .bind(jobs)
    .execute(pool)
    .await
    .map_err(writing("release work leases"))?;
  Ok(())
}

/// Renews the leases of these jobs and names those that are still this process's own; a job that is not among them has lost its lease.
pub async fn renew(pool: &PgPool, process: Uuid, jobs: &[JobId]) -> Result<Vec<JobId>, Error> {
  let jobs: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
  let jobs: Vec<Uuid> = sqlx::query_scalar(
    "UPDATE ops.leases SET expires_at = clock_timestamp() + make_interval(secs => $3)
     WHERE process = $1 AND job = ANY($2) RETURNING job",
  )
  .bind(process)
  .bind(&jobs)
  .bind(LEASE_SECONDS)
  .fetch_all(pool)
  .await
  .map_err(writing("renew work leases"))?;
  Ok(jobs.into_iter().map(JobId).collect())
}

/// Ends a lease after its execution has ended, or was refused. `false` when it was no longer this process's own.
pub async fn release(pool: &PgPool, kind: &str, job: JobId, process: Uuid) -> Result<bool, Error> {
  let done = sqlx::query("DELETE FROM ops.leases WHERE kind = $1 AND job = $2 AND process = $3")
    .bind(kind)
    .bind(job.0)
    .bind(process)
    .execute(pool)
    .await
    .map_err(writing("release a work lease"))?;
  Ok(done.rows_affected() == 1)
}

type LeaseRow = (String, Uuid, Uuid, Uuid, Uuid, Option<Uuid>, Option<i32>);

fn lease((kind, job, agent, node, process, ask, execution): LeaseRow) -> WorkLease {
  WorkLease { kind, job: JobId(job), agent: AgentId(agent), holder: Holder { node: NodeId(node), process }, ask, execution }
}

/// Leases that have run out, oldest first: their executions are to be reported lost by whoever was connected for a whole lease time itself.
pub async fn expired(pool: &PgPool, limit: i64) -> Result<Vec<WorkLease>, Error> {
  let rows: Vec<LeaseRow> = sqlx::query_as(
    "SELECT kind, job, agent, node, process, ask, execution FROM ops.leases
     WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1",
  )
  .bind(limit)
  .fetch_all(pool)
  .await
  .map_err(reading("read the run-out work leases"))?;
  Ok(rows.into_iter().map(lease).collect())
}

/// Leases that earlier processes of this node left behind: a node that starts reports their executions lost at once.
pub async fn of_node(pool: &PgPool, holder: Holder) -> Result<Vec<WorkLease>, Error> {
  let rows: Vec<LeaseRow> = sqlx::query_as(
    "SELECT kind, job, agent, node, process, ask, execution FROM ops.leases
     WHERE node = $1 AND process <> $2 ORDER BY claimed_at",
  )
  .bind(holder.node.0)
  .bind(holder.process)
  .fetch_all(pool)
  .await
  .map_err(reading("read this node's earlier work leases"))?;
  Ok(rows.into_iter().map(lease).collect())
}

type LiveRow = (Uuid, Uuid, Uuid, Uuid, Option<Uuid>, Option<i32>, bool);

/// The leases that these jobs have now, whoever holds them, with whether they run.
pub async fn of_jobs(pool: &PgPool, kind: &str, jobs: &[JobId]) -> Result<Vec<(WorkLease, bool)>, Error> {
  let jobs: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
  let rows: Vec<LiveRow> = sqlx::query_as(
    "SELECT job, agent, node, process, ask, execution, expires_at > clock_timestamp() FROM ops.leases
     WHERE kind = $1 AND job = ANY($2)",
  )
  .bind(kind)
  .bind(&jobs)
  .fetch_all(pool)
  .await
  .map_err(reading("read work leases"))?;
  let with_life = |(job, agent, node, process, ask, execution, live): LiveRow| (lease((kind.to_owned(), job, agent, node, process, ask, execution)), live);
  Ok(rows.into_iter().map(with_life).collect())
}

/// Removes a lease whose loss has been reported, unless somebody has claimed the job meanwhile.
pub async fn forget(pool: &PgPool, lost: &WorkLease) -> Result<bool, Error> {
  let done = sqlx::query("DELETE FROM ops.leases WHERE kind = $1 AND job = $2 AND process = $3 AND ask IS NOT DISTINCT FROM $4")
    .bind(&lost.kind)
    .bind(lost.job.0)
    .bind(lost.holder.process)
    .bind(lost.ask)
    .execute(pool)
    .await
    .map_err(writing("forget a lost work lease"))?;
  Ok(done.rows_affected() == 1)
}
