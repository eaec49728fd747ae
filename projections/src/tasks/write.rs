//! Changes of tasks merged by primary key, and the statements that write them.

use pa_domain::AgentId;
use uuid::Uuid;

use super::fold::{Change, Patch, TaskRow};
use crate::code::Code as _;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to tasks.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) rows: Merged<Uuid, TaskWrite>,
}

/// What a batch does to one task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskWrite {
  Start(Box<TaskRow>),
  Patch(Box<Patch>),
}

const START: &str = "INSERT INTO tasks (agent, id, conversation, asked_in, title, goal, started_by, place, changed, state, running, reason, detail, needs_owner, run, \
  execution, revision, instructions, outputs, created_ms, changed_ms, ended_ms, result, result_place, report) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
  AS u(agent, id, conversation, asked_in, title, goal, started_by, place, changed, state, running, reason, detail, needs_owner, run, execution, revision, instructions, \
  outputs, created_ms, changed_ms, ended_ms, result, result_place, report) ON CONFLICT (agent, id) DO NOTHING";

const PATCH: &str = "UPDATE tasks t SET changed = u.changed, changed_ms = u.at, state = coalesce(u.state, t.state), running = coalesce(u.running, t.running), \
  reason = coalesce(u.reason, t.reason), detail = coalesce(u.detail, t.detail), needs_owner = coalesce(u.needs_owner, t.needs_owner), \
  ended_ms = CASE WHEN u.state IS NULL THEN t.ended_ms ELSE u.ended_ms END, run = coalesce(u.run, t.run), execution = coalesce(u.execution, t.execution), \
  revision = coalesce(u.revision, t.revision), instructions = t.instructions + u.instructions, outputs = t.outputs + u.outputs, result = coalesce(u.result, t.result), \
  result_place = coalesce(u.result_place, t.result_place), report = CASE WHEN u.result IS NULL THEN coalesce(u.report, t.report) ELSE u.report END \
  FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
  AS u(agent, id, changed, at, state, reason, detail, needs_owner, ended_ms, running, run, execution, revision, instructions, outputs, result, result_place, report) \
  WHERE t.agent = u.agent AND t.id = u.id";

impl TaskRow {
  fn patch(&mut self, later: Patch) {
    self.changed = later.changed;
    self.changed_at = later.at;
    if let Some(moved) = later.moved {
      self.moved = moved;
    }
    self.running = later.running.unwrap_or(self.running);
    self.run = later.run.unwrap_or(self.run);
    self.execution = later.execution.unwrap_or(self.execution);
    self.revision = later.revision.unwrap_or(self.revision);
    self.instructions += later.instructions;
    self.outputs += later.outputs;
    self.report = if later.result.is_some() { later.report } else { later.report.or(self.report) };
    self.result = later.result.or(self.result);
  }
}

impl Patch {
  fn merge(&mut self, later: Self) {
    self.changed = later.changed;
    self.at = later.at;
    self.moved = later.moved.or_else(|| self.moved.take());
    self.running = later.running.or(self.running);
    self.run = later.run.or(self.run);
    self.execution = later.execution.or(self.execution);
    self.revision = later.revision.or(self.revision);
    self.instructions += later.instructions;
    self.outputs += later.outputs;
    self.report = if later.result.is_some() { later.report } else { later.report.or(self.report) };
    self.result = later.result.or(self.result);
  }
}

impl TaskWrite {
  /// One operation for two on the same key. A task starts once, before all else.
  fn merge(&mut self, later: Self) {
    match (&mut *self, later) {
      (Self::Start(row), Self::Patch(patch)) => row.patch(*patch),
      (Self::Patch(earlier), Self::Patch(later)) => earlier.merge(*later),
      (Self::Patch(_), later @ Self::Start(_)) => *self = later,
      (Self::Start(_), Self::Start(_)) => {}
    }
  }
}

impl Rows {
  pub(crate) fn add(&mut self, agent: AgentId, change: Change) {
    match change {
      Change::Started(row) => self.rows.put(agent, row.id.0, TaskWrite::Start(row), TaskWrite::merge),
      Change::Patched(patch) => self.rows.put(agent, patch.id.0, TaskWrite::Patch(patch), TaskWrite::merge),
    }
  }

  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    let (mut started, mut patched) = (Vec::new(), Vec::new());
    for (agent, _, write) in self.rows.iter() {
      match write {
        TaskWrite::Start(row) => started.push((*agent, row.as_ref())),
        TaskWrite::Patch(patch) => patched.push((*agent, patch.as_ref())),
      }
    }
    if !started.is_empty() {
      parts.part(START, start(&started));
    }
    if !patched.is_empty() {
      parts.part(PATCH, patch(&patched));
    }
  }
}

fn start<'a>(rows: &[(AgentId, &'a TaskRow)]) -> [Argument<'a>; 25] {
  let of = || rows.iter().map(|(_, row)| *row);
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id.0).collect()),
    Argument::Uuids(of().map(|row| row.conversation.0).collect()),
    Argument::Uuids(of().map(|row| row.asked_in.0).collect()),
    Argument::texts(of().map(|row| row.title.as_str())),
    Argument::texts(of().map(|row| row.goal.as_str())),
    Argument::texts(of().map(|row| row.started_by.code())),
    Argument::Longs(of().map(|row| row.place).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
    Argument::texts(of().map(|row| row.moved.state.code())),
    Argument::Booleans(of().map(|row| row.running).collect()),
    Argument::texts(of().map(|row| row.moved.reason.as_str())),
    Argument::texts(of().map(|row| row.moved.detail.as_str())),
    Argument::Booleans(of().map(|row| row.moved.needs_owner).collect()),
    Argument::Ints(of().map(|row| row.run).collect()),
    Argument::Ints(of().map(|row| row.execution).collect()),
    Argument::Longs(of().map(|row| row.revision).collect()),
    Argument::Ints(of().map(|row| row.instructions).collect()),
    Argument::Ints(of().map(|row| row.outputs).collect()),
    Argument::Longs(of().map(|row| row.created.0).collect()),
    Argument::Longs(of().map(|row| row.changed_at.0).collect()),
    Argument::OptionalLongs(of().map(|row| row.moved.ended.map(|at| at.0)).collect()),
    Argument::OptionalUuids(of().map(|row| row.result.map(|(entry, _)| entry)).collect()),
    Argument::OptionalLongs(of().map(|row| row.result.map(|(_, ordinal)| ordinal)).collect()),
    Argument::OptionalUuids(of().map(|row| row.report.map(|reply| reply.0)).collect()),
  ]
}

fn patch<'a>(rows: &[(AgentId, &'a Patch)]) -> [Argument<'a>; 18] {
  let of = || rows.iter().map(|(_, row)| *row);
  let moved = || of().map(|row| row.moved.as_ref());
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id.0).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
    Argument::Longs(of().map(|row| row.at.0).collect()),
    Argument::optional_texts(moved().map(|moved| moved.map(|moved| moved.state.code()))),
    Argument::optional_texts(moved().map(|moved| moved.map(|moved| moved.reason.as_str()))),
    Argument::optional_texts(moved().map(|moved| moved.map(|moved| moved.detail.as_str()))),
    Argument::OptionalBooleans(moved().map(|moved| moved.map(|moved| moved.needs_owner)).collect()),
    Argument::OptionalLongs(moved().map(|moved| moved.and_then(|moved| moved.ended).map(|at| at.0)).collect()),
    Argument::OptionalBooleans(of().map(|row| row.running).collect()),
    Argument::OptionalInts(of().map(|row| row.run).collect()),
    Argument::OptionalInts(of().map(|row| row.execution).collect()),
    Argument::OptionalLongs(of().map(|row| row.revision).collect()),
    Argument::Ints(of().map(|row| row.instructions).collect()),
    Argument::Ints(of().map(|row| row.outputs).collect()),
    Argument::OptionalUuids(of().map(|row| row.result.map(|(entry, _)| entry)).collect()),
    Argument::OptionalLongs(of().map(|row| row.result.map(|(_, ordinal)| ordinal)).collect()),
    Argument::OptionalUuids(of().map(|row| row.report.map(|reply| reply.0)).collect()),
  ]
}
