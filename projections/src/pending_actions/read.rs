//! What the page and the decisions of its owner read of actions.

use pa_domain::call::GateKind;
use pa_domain::{AgentId, CallId, JobId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Kind, State};
use crate::Error;
use crate::code::Code as _;
use crate::error::reading;

/// Actions that are listed: 200 open tasks have at most 16 cards each, and nobody decides on more at a time.
pub const PENDING_MAX: i64 = 500;

/// A card or an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
  /// The card's id, or the call's for an effect.
  pub id: Uuid,
  pub kind: Kind,
  /// The task that asks, or the message that is being answered.
  pub job: JobId,
  /// The task's title; `None` when the job is no task.
  pub title: Option<String>,
  pub call: CallId,
  pub tool: String,
  pub gate: Option<GateKind>,
  /// Whom or what it reaches; empty for an effect that no card of its own was about.
  pub target: String,
  /// What "allow for this task" would cover; `None` when each one is asked for.
  pub scope: Option<String>,
  pub valid_until: Option<Timestamp>,
  /// The canonical action, whole.
  pub action: String,
  pub state: State,
  pub reason: String,
  pub place: i64,
  pub changed: i64,
  pub created: Timestamp,
  pub settled: Option<Timestamp>,
}

// An effect is named by the card that allowed it; what it reaches stands there only if the card was about this very call.

const PENDING: &str = "SELECT a.id, a.kind, a.job, t.title, a.call, a.tool, coalesce(a.gate, c.gate) AS gate, CASE WHEN c.call = a.call THEN c.target ELSE a.target END AS target, \
  a.scope, a.valid_until_ms, a.action, a.state, a.reason, a.place, a.changed, a.created_ms, a.settled_ms \
  FROM pending_actions a LEFT JOIN pending_actions c ON c.agent = a.agent AND c.id = a.card LEFT JOIN tasks t ON t.agent = a.agent AND t.id = a.job \
  WHERE a.agent = $1 AND a.state IN ('PENDING', 'UNKNOWN') ORDER BY a.place LIMIT $2";

const ONE: &str = "SELECT a.id, a.kind, a.job, t.title, a.call, a.tool, coalesce(a.gate, c.gate) AS gate, CASE WHEN c.call = a.call THEN c.target ELSE a.target END AS target, \
  a.scope, a.valid_until_ms, a.action, a.state, a.reason, a.place, a.changed, a.created_ms, a.settled_ms \
  FROM pending_actions a LEFT JOIN pending_actions c ON c.agent = a.agent AND c.id = a.card LEFT JOIN tasks t ON t.agent = a.agent AND t.id = a.job \
  WHERE a.agent = $1 AND a.id = $2";

const CHANGED: &str = "SELECT a.id, a.kind, a.job, t.title, a.call, a.tool, coalesce(a.gate, c.gate) AS gate, CASE WHEN c.call = a.call THEN c.target ELSE a.target END AS target, \
  a.scope, a.valid_until_ms, a.action, a.state, a.reason, a.place, a.changed, a.created_ms, a.settled_ms \
  FROM pending_actions a LEFT JOIN pending_actions c ON c.agent = a.agent AND c.id = a.card LEFT JOIN tasks t ON t.agent = a.agent AND t.id = a.job \
  WHERE a.agent = $1 AND a.changed > $2 AND a.changed <= $3 ORDER BY a.changed LIMIT $4";

/// What waits for the owner, the longest waiting first.
pub async fn pending(pool: &PgPool, agent: AgentId) -> Result<Vec<Action>, Error> {
  let rows: Vec<ActionRow> = sqlx::query_as(PENDING).bind(agent.0).bind(PENDING_MAX).fetch_all(pool).await.map_err(reading("read the pending actions"))?;
  rows.into_iter().map(ActionRow::take).collect()
}

/// One action, also a settled one.
pub async fn one(pool: &PgPool, agent: AgentId, id: Uuid) -> Result<Option<Action>, Error> {
  let row: Option<ActionRow> = sqlx::query_as(ONE).bind(agent.0).bind(id).fetch_optional(pool).await.map_err(reading("read an action"))?;
  row.map(ActionRow::take).transpose()
}

/// Actions whose last change lies in `(after, upto]`, in the order of change.
pub(crate) async fn changed_after(pool: &PgPool, agent: AgentId, after: i64, upto: i64, limit: i64) -> Result<Vec<Action>, Error> {
  let rows: Vec<ActionRow> =
    sqlx::query_as(CHANGED).bind(agent.0).bind(after).bind(upto).bind(limit).fetch_all(pool).await.map_err(reading("read changed actions"))?;
  rows.into_iter().map(ActionRow::take).collect()
}

#[derive(sqlx::FromRow)]
struct ActionRow {
  id: Uuid,
  kind: String,
  job: Uuid,
  title: Option<String>,
  call: Uuid,
  tool: String,
  gate: Option<String>,
  target: String,
  scope: Option<String>,
  valid_until_ms: Option<i64>,
  action: String,
  state: String,
  reason: String,
  place: i64,
  changed: i64,
  created_ms: i64,
  settled_ms: Option<i64>,
}

impl ActionRow {
  fn take(self) -> Result<Action, Error> {
    Ok(Action {
      id: self.id,
      kind: Kind::parse(&self.kind)?,
      job: JobId(self.job),
      title: self.title,
      call: CallId(self.call),
      tool: self.tool,
      gate: self.gate.as_deref().map(GateKind::parse).transpose()?,
      target: self.target,
      scope: self.scope,
      valid_until: self.valid_until_ms.map(Timestamp),
      action: self.action,
      state: State::parse(&self.state)?,
      reason: self.reason,
      place: self.place,
      changed: self.changed,
      created: Timestamp(self.created_ms),
      settled: self.settled_ms.map(Timestamp),
    })
  }
}
