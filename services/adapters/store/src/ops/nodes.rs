//! The processes of this installation: whether anybody else needs a wake-up, and who runs what.

use pa_domain::NodeId;
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::error::{reading, writing};
use crate::lease::Holder;

/// A process that was not seen for this long is gone: as long as a lease.
const ALIVE_SECONDS: f64 = 10.0;

/// Rows of ended processes are litter after a day.
const LITTER_AFTER: &str = "1 day";

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
  pub holder: Holder,
  pub roles: Vec<String>,
  pub listen: Option<String>,
  pub version: String,
}

/// Writes down a process that starts, and sweeps out those long gone.
pub async fn register(pool: &PgPool, node: &Node) -> Result<(), Error> {
  sqlx::query("DELETE FROM ops.nodes WHERE seen_at < clock_timestamp() - $1::interval")
    .bind(LITTER_AFTER)
    .execute(pool)
    .await
    .map_err(writing("sweep out processes"))?;
  sqlx::query(
    "INSERT INTO ops.nodes (process, node, roles, listen, version) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (process) DO UPDATE SET roles = excluded.roles, listen = excluded.listen, seen_at = clock_timestamp()",
  )
  .bind(node.holder.process)
  .bind(node.holder.node.0)
  .bind(&node.roles)
  .bind(&node.listen)
  .bind(&node.version)
  .execute(pool)
  .await
  .map_err(writing("register a process"))?;
  Ok(())
}

/// Says that the process is still there, and answers whether another one is; to be called as often as leases are renewed.
pub async fn seen(pool: &PgPool, process: Uuid) -> Result<bool, Error> {
  sqlx::query_scalar(
    "WITH own AS (UPDATE ops.nodes SET seen_at = clock_timestamp() WHERE process = $1)
     SELECT EXISTS (SELECT 1 FROM ops.nodes WHERE process <> $1 AND seen_at > clock_timestamp() - make_interval(secs => $2))",
  )
  .bind(process)
  .bind(ALIVE_SECONDS)
  .fetch_one(pool)
  .await
  .map_err(writing("say that a process is alive"))
}

/// Says that the process can lead partitions now, and answers with how many processes can, this one included.
pub async fn can_lead(pool: &PgPool, process: Uuid) -> Result<usize, Error> {
  let others: i64 = sqlx::query_scalar(
    "WITH own AS (UPDATE ops.nodes SET leads_at = clock_timestamp() WHERE process = $1)
     SELECT count(*) FROM ops.nodes WHERE process <> $1 AND leads_at > clock_timestamp() - make_interval(secs => $2)",
  )
  .bind(process)
  .bind(ALIVE_SECONDS)
  .fetch_one(pool)
  .await
  .map_err(writing("say that a process can lead"))?;
  Ok(usize::try_from(others).unwrap_or_default() + 1)
}

/// Removes a process that ends.
pub async fn leave(pool: &PgPool, process: Uuid) -> Result<(), Error> {
  sqlx::query("DELETE FROM ops.nodes WHERE process = $1").bind(process).execute(pool).await.map_err(writing("remove a process"))?;
  Ok(())
}

type Row = (Uuid, Uuid, Vec<String>, Option<String>, String);

/// The processes that are there now.
pub async fn alive(pool: &PgPool) -> Result<Vec<Node>, Error> {
  let rows: Vec<Row> = sqlx::query_as(
    "SELECT node, process, roles, listen, version FROM ops.nodes
     WHERE seen_at > clock_timestamp() - make_interval(secs => $1) ORDER BY started_at",
  )
  .bind(ALIVE_SECONDS)
  .fetch_all(pool)
  .await
  .map_err(reading("read the processes"))?;
  let node = |(node, process, roles, listen, version): Row| Node { holder: Holder { node: NodeId(node), process }, roles, listen, version };
  Ok(rows.into_iter().map(node).collect())
}
