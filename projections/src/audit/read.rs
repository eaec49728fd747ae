//! What the audit page reads.

use pa_domain::{AgentId, Origin, ThingId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use crate::Error;
use crate::code::Code as _;
use crate::error::reading;

/// Facts of one page at most.
pub const PAGE_MAX: u32 = 200;

/// Which facts to show; every given condition holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
  /// Full type names, with their version or without; none: all.
  pub types: Vec<String>,
  pub thing: Option<ThingId>,
  /// At or after.
  pub since: Option<Timestamp>,
  /// Before.
  pub until: Option<Timestamp>,
}

/// A fact without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
  pub ordinal: i64,
  pub partition: u16,
  /// Where the log has the body.
  pub position: i64,
  pub id: Uuid,
  /// With its version.
  pub type_name: String,
  pub at: Timestamp,
  pub actor: String,
  pub origin: Origin,
  pub cause: Uuid,
  pub correlation: Uuid,
  pub input_position: i64,
  pub thing: Option<ThingId>,
}

/// Where the log has one of an agent's facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
  pub ordinal: i64,
  pub partition: u16,
  pub position: i64,
}

impl Place {
  /// That of a line.
  pub fn of(row: &Row) -> Self {
    Self { ordinal: row.ordinal, partition: row.partition, position: row.position }
  }
}

/// A page of the audit, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
  pub rows: Vec<Row>,
  pub has_next: bool,
}

/// Finds the first ordinal whose fact is not before an instant, by halving: ordinals have no gaps and `at` never falls.
const FIRST_NOT_BEFORE: &str = "WITH RECURSIVE search(low, high) AS ( \
  SELECT 1::bigint, coalesce((SELECT max(ordinal) FROM audit WHERE agent = $1), 0) + 1 \
  UNION ALL \
  SELECT CASE WHEN a.at_ms < $2 THEN m.mid + 1 ELSE m.low END, CASE WHEN a.at_ms < $2 THEN m.high ELSE m.mid END \
  FROM (SELECT low, high, (low + high) / 2 AS mid FROM search WHERE low < high) m JOIN audit a ON a.agent = $1 AND a.ordinal = m.mid) \
  SELECT low FROM search WHERE low >= high LIMIT 1";

/// The first facts after the ordinal `after` that the filter takes.
pub async fn page(pool: &PgPool, agent: AgentId, filter: &Filter, first: u32, after: Option<i64>) -> Result<Page, Error> {
  let first = first.min(PAGE_MAX);
  let mut above = after.unwrap_or(0);
  if let Some(since) = filter.since {
    above = above.max(first_not_before(pool, agent, since).await? - 1);
  }
  let below = match filter.until {
    Some(until) => first_not_before(pool, agent, until).await?,
    None => i64::MAX,
  };
  let types: Option<Vec<String>> = (!filter.types.is_empty()).then(|| filter.types.iter().flat_map(|name| versions(name)).collect());
  // One text for each combination, so that each has a plan that fits it.
  let statement = match (filter.thing.is_some(), types.is_some()) {
    (false, false) => ALL,
    (true, false) => OF_THING,
    (false, true) => OF_TYPES,
    (true, true) => OF_THING_AND_TYPES,
  };
  let mut query = sqlx::query_as::<_, AuditRow>(statement).bind(agent.0).bind(above).bind(below).bind(i64::from(first) + 1);
  if let Some(thing) = filter.thing {
    query = query.bind(thing.0);
  }
  if let Some(types) = types {
    query = query.bind(types);
  }
  let mut rows = query.fetch_all(pool).await.map_err(reading("read the audit"))?;
  let has_next = rows.len() > first as usize;
  rows.truncate(first as usize);
  Ok(Page { rows: rows.into_iter().map(AuditRow::take).collect::<Result<_, _>>()?, has_next })
}

/// Where the log has the facts behind the ordinal `after`, up to `upto`, in order. The caller bounds how many that are.
pub async fn places(pool: &PgPool, agent: AgentId, after: i64, upto: i64) -> Result<Vec<Place>, Error> {
  let rows: Vec<(i64, i16, i64)> =
    sqlx::query_as("SELECT ordinal, part, position FROM audit WHERE agent = $1 AND ordinal > $2 AND ordinal <= $3 ORDER BY ordinal LIMIT $4")
      .bind(agent.0)
      .bind(after)
      .bind(upto)
      .bind((upto - after).max(0))
      .fetch_all(pool)
      .await
      .map_err(reading("find facts in the log"))?;
  let place = |(ordinal, part, position): (i64, i16, i64)| {
    let partition = u16::try_from(part).map_err(|_| Error::Corrupt { expected: "a partition", value: part.to_string() })?;
    Ok(Place { ordinal, partition, position })
  };
  rows.into_iter().map(place).collect()
}

/// The ordinal of the last fact of the decision that a fact belongs to; `None` when there is no such fact yet. A decision has one cause and at most 64 facts.
pub async fn whole_decision(pool: &PgPool, agent: AgentId, ordinal: i64) -> Result<Option<i64>, Error> {
  sqlx::query_scalar(
    "SELECT max(a.ordinal) FROM audit f JOIN audit a ON a.agent = $1 AND a.ordinal >= $2 AND a.ordinal < $2 + 64 AND a.cause = f.cause WHERE f.agent = $1 AND f.ordinal = $2",
  )
  .bind(agent.0)
  .bind(ordinal)
  .fetch_one(pool)
  .await
  .map_err(reading("find the end of a decision"))
}

/// The ordinal of the last fact at or before an instant; 0 for none.
pub async fn last_until(pool: &PgPool, agent: AgentId, at: Timestamp) -> Result<i64, Error> {
  Ok(first_not_before(pool, agent, Timestamp(at.0.saturating_add(1))).await? - 1)
}

/// Where the log has what an input was settled as, if it led to nothing else: for whoever asks again under the same key.
pub async fn settlement_of(pool: &PgPool, agent: AgentId, input: Uuid) -> Result<Option<Row>, Error> {
  let row: Option<AuditRow> = sqlx::query_as(SETTLEMENT_OF)
    .bind(agent.0)
    .bind(versions("pa.log.InputSettled"))
    .bind(input)
    .fetch_optional(pool)
    .await
    .map_err(reading("read what an input was settled as"))?;
  row.map(AuditRow::take).transpose()
}

// The newest first: who asks again does so soon.
const SETTLEMENT_OF: &str = "SELECT ordinal, part, position, id, type, at_ms, actor, origin, cause, correlation, input_position, thing FROM audit \
  WHERE agent = $1 AND type = ANY($2) AND cause = $3 ORDER BY ordinal DESC LIMIT 1";
const ALL: &str = "SELECT ordinal, part, position, id, type, at_ms, actor, origin, cause, correlation, input_position, thing FROM audit \
  WHERE agent = $1 AND ordinal > $2 AND ordinal < $3 ORDER BY ordinal LIMIT $4";
const OF_THING: &str = "SELECT ordinal, part, position, id, type, at_ms, actor, origin, cause, correlation, input_position, thing FROM audit \
  WHERE agent = $1 AND ordinal > $2 AND ordinal < $3 AND thing = $5 ORDER BY ordinal LIMIT $4";
// Each type's own part of the index is read in order, and only as far as the page needs.
const OF_TYPES: &str = "SELECT a.* FROM unnest($5::text[]) AS t(type) CROSS JOIN LATERAL ( \
  SELECT ordinal, part, position, id, type, at_ms, actor, origin, cause, correlation, input_position, thing FROM audit \
  WHERE agent = $1 AND type = t.type COLLATE \"C\" AND ordinal > $2 AND ordinal < $3 ORDER BY ordinal LIMIT $4) a ORDER BY a.ordinal LIMIT $4";
const OF_THING_AND_TYPES: &str = "SELECT ordinal, part, position, id, type, at_ms, actor, origin, cause, correlation, input_position, thing FROM audit \
  WHERE agent = $1 AND ordinal > $2 AND ordinal < $3 AND thing = $5 AND type = ANY($6) ORDER BY ordinal LIMIT $4";

async fn first_not_before(pool: &PgPool, agent: AgentId, at: Timestamp) -> Result<i64, Error> {
  sqlx::query_scalar(FIRST_NOT_BEFORE).bind(agent.0).bind(at.0).fetch_one(pool).await.map_err(reading("find an instant in the audit"))
}

/// A name with its version, or every version that there can be of a name without one.
fn versions(name: &str) -> Vec<String> {
  let versioned = name.rsplit_once(".v").is_some_and(|(_, version)| !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()));
  if versioned {
    return vec![name.to_owned()];
  }
  let newest = pa_domain::Event::types().find(|(known, _)| *known == name).map_or(0, |(_, version)| *version);
  (1..=newest).map(|version| format!("{name}.v{version}")).collect()
}

#[derive(sqlx::FromRow)]
struct AuditRow {
  ordinal: i64,
  part: i16,
  position: i64,
  id: Uuid,
  #[sqlx(rename = "type")]
  type_name: String,
  at_ms: i64,
  actor: String,
  origin: String,
  cause: Uuid,
  correlation: Uuid,
  input_position: i64,
  thing: Option<Uuid>,
}

impl AuditRow {
  fn take(self) -> Result<Row, Error> {
    Ok(Row {
      ordinal: self.ordinal,
      partition: u16::try_from(self.part).map_err(|_| Error::Corrupt { expected: "a partition", value: self.part.to_string() })?,
      position: self.position,
      id: self.id,
      type_name: self.type_name,
      at: Timestamp(self.at_ms),
      actor: self.actor,
      origin: Origin::parse(&self.origin)?,
      cause: self.cause,
      correlation: self.correlation,
      input_position: self.input_position,
      thing: self.thing.map(ThingId),
    })
  }
}
