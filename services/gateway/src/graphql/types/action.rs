//! What waits for the owner's word, as the outside sees it.

use async_graphql::{Enum, ID, SimpleObject};
use pa_domain::call::GateKind;
use pa_projections::pending_actions::{self as read, Kind, State};

use super::scalars::{DateTime, Json};

/// An outside effect: one that would be carried out and waits for the owner's decision, or one whose outcome nobody knows. Deciding is about exactly this content: other
/// content is another action.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Action {
  pub id: ID,
  /// The task that asks; null when it belongs to a reply.
  pub task_id: Option<ID>,
  pub task_title: Option<String>,
  pub kind: ActionKind,
  pub state: ActionState,
  /// What kind of effect it is; null when it is not known.
  pub gate: Option<ActionGate>,
  pub tool: String,
  /// Whom or what it reaches; null when only the content says so.
  pub target: Option<String>,
  /// The whole content that would be or was carried out, canonical.
  pub content: Json,
  /// What `ALLOW_FOR_TASK` would cover; null when each one is asked for.
  pub scope: Option<String>,
  /// Until when an approval can count, because of what it is based on.
  pub valid_until: Option<DateTime>,
  pub created_at: DateTime,
  pub settled_at: Option<DateTime>,
  /// Its place among all actions: they are shown in this order.
  pub place: i64,
  /// Ordinal of the last change of this row; a copy with a lower one is older.
  pub changed: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum ActionKind {
  /// Asks to be carried out: `decideAction`.
  Approval,
  /// Was begun: once its outcome is unknown, `reconcileAction`.
  Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum ActionState {
  /// Waits for the owner's decision.
  Pending,
  /// Approved, once.
  Approved,
  /// Approved together with all of its kind in this task.
  Allowed,
  Rejected,
  /// No longer to be decided.
  Withdrawn,
  /// Being carried out.
  Started,
  /// Its outcome is known.
  Settled,
  /// Nobody knows whether it was carried out: waits for the owner's word.
  Unknown,
  /// The unknown outcome was settled afterwards.
  Reconciled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum ActionGate {
  Email,
  Computer,
  Session,
}

impl From<read::Action> for Action {
  fn from(row: read::Action) -> Self {
    // A canonical action is JSON; should one not be, it is shown as the text that it is.
    let content = serde_json::from_str(&row.action).unwrap_or(serde_json::Value::String(row.action));
    Self {
      id: ID::from(row.id),
      task_id: row.title.is_some().then(|| ID::from(row.job)),
      task_title: row.title,
      kind: match row.kind {
        Kind::Card => ActionKind::Approval,
        Kind::Effect => ActionKind::Effect,
      },
      state: row.state.into(),
      gate: row.gate.map(ActionGate::from),
      tool: row.tool,
      target: Some(row.target).filter(|target| !target.is_empty()),
      content: Json(content),
      scope: row.scope,
      valid_until: row.valid_until.map(DateTime),
      created_at: DateTime(row.created),
      settled_at: row.settled.map(DateTime),
      place: row.place,
      changed: row.changed,
    }
  }
}

impl From<State> for ActionState {
  fn from(state: State) -> Self {
    match state {
      State::Pending => Self::Pending,
      State::Approved => Self::Approved,
      State::Allowed => Self::Allowed,
      State::Rejected => Self::Rejected,
      State::Withdrawn => Self::Withdrawn,
      State::Started => Self::Started,
      State::Settled => Self::Settled,
      State::Unknown => Self::Unknown,
      State::Reconciled => Self::Reconciled,
    }
  }
}

impl From<GateKind> for ActionGate {
  fn from(gate: GateKind) -> Self {
    match gate {
      GateKind::Email => Self::Email,
      GateKind::Computer => Self::Computer,
      GateKind::Session => Self::Session,
    }
  }
}
