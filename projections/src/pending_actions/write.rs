//! Changes of actions merged by primary key, and the statements that write them.

use pa_domain::AgentId;
use uuid::Uuid;

use super::fold::{ActionRow, Change, Patch};
use crate::code::Code as _;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to actions.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) rows: Merged<Uuid, ActionWrite>,
}

/// What a batch does to one action.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ActionWrite {
  Put(Box<ActionRow>),
  Patch(Patch),
}

const PUT: &str = "INSERT INTO pending_actions (agent, id, kind, job, call, card, tool, gate, target, scope, valid_until_ms, action, state, reason, place, changed, created_ms, \
  settled_ms) SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
  AS u(agent, id, kind, job, call, card, tool, gate, target, scope, valid_until_ms, action, state, reason, place, changed, created_ms, settled_ms) \
  ON CONFLICT (agent, id) DO UPDATE SET state = excluded.state, reason = excluded.reason, changed = excluded.changed, settled_ms = excluded.settled_ms";

const PATCH: &str = "UPDATE pending_actions a SET changed = u.changed, state = u.state, reason = u.reason, settled_ms = u.settled_ms \
  FROM committed, unnest(?, ?, ?, ?, ?, ?) AS u(agent, id, changed, state, reason, settled_ms) WHERE a.agent = u.agent AND a.id = u.id";

impl ActionWrite {
  /// One operation for two on the same key.
  fn merge(&mut self, later: Self) {
    match (&mut *self, later) {
      (Self::Put(row), Self::Patch(patch)) => {
        row.changed = patch.changed;
        row.state = patch.state;
        row.reason = patch.reason;
        row.settled = patch.settled;
      }
      (Self::Put(row), Self::Put(later)) => {
        row.changed = later.changed;
        row.state = later.state;
        row.reason = later.reason;
        row.settled = later.settled;
      }
      (Self::Patch(_), later) => *self = later,
    }
  }
}

impl Rows {
  pub(crate) fn add(&mut self, agent: AgentId, change: Change) {
    match change {
      Change::Put(row) => self.rows.put(agent, row.id, ActionWrite::Put(row), ActionWrite::merge),
      Change::Patched(patch) => self.rows.put(agent, patch.id, ActionWrite::Patch(patch), ActionWrite::merge),
    }
  }

  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    let (mut put, mut patched) = (Vec::new(), Vec::new());
    for (agent, _, write) in self.rows.iter() {
      match write {
        ActionWrite::Put(row) => put.push((*agent, row.as_ref())),
        ActionWrite::Patch(patch) => patched.push((*agent, patch)),
      }
    }
    if !put.is_empty() {
      parts.part(PUT, rows(&put));
    }
    if !patched.is_empty() {
      parts.part(PATCH, patch(&patched));
    }
  }
}

fn rows<'a>(rows: &[(AgentId, &'a ActionRow)]) -> [Argument<'a>; 18] {
  let of = || rows.iter().map(|(_, row)| *row);
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id).collect()),
    Argument::texts(of().map(|row| row.kind.code())),
    Argument::Uuids(of().map(|row| row.job.0).collect()),
    Argument::Uuids(of().map(|row| row.call.0).collect()),
    Argument::OptionalUuids(of().map(|row| row.card).collect()),
    Argument::texts(of().map(|row| row.tool.as_str())),
    Argument::optional_texts(of().map(|row| row.gate.map(crate::code::Code::code))),
    Argument::texts(of().map(|row| row.target.as_str())),
    Argument::optional_texts(of().map(|row| row.scope.as_deref())),
    Argument::OptionalLongs(of().map(|row| row.valid_until.map(|at| at.0)).collect()),
    Argument::texts(of().map(|row| row.action.as_str())),
    Argument::texts(of().map(|row| row.state.code())),
    Argument::texts(of().map(|row| row.reason.as_str())),
    Argument::Longs(of().map(|row| row.place).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
    Argument::Longs(of().map(|row| row.created.0).collect()),
    Argument::OptionalLongs(of().map(|row| row.settled.map(|at| at.0)).collect()),
  ]
}

fn patch<'a>(rows: &[(AgentId, &'a Patch)]) -> [Argument<'a>; 6] {
  let of = || rows.iter().map(|(_, row)| *row);
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
    Argument::texts(of().map(|row| row.state.code())),
    Argument::texts(of().map(|row| row.reason.as_str())),
    Argument::OptionalLongs(of().map(|row| row.settled.map(|at| at.0)).collect()),
  ]
}
