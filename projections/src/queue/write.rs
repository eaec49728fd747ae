//! Changes of jobs and open calls merged by primary key, and the statements that write them.

use pa_domain::AgentId;
use uuid::Uuid;

use super::JobState;
use super::fold::{CallRow, Change, JobPatch, JobRow};
use crate::code::Code as _;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch does to the queue.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) jobs: Merged<Uuid, JobWrite>,
  pub(crate) calls: Merged<Uuid, CallWrite>,
}

/// What a batch does to one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobWrite {
  Put(JobRow),
  Patch(JobPatch),
  Delete,
}

/// What a batch does to one call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallWrite {
  Put(Box<CallRow>),
  Unknown(i64),
  Delete,
}

const PUT_JOBS: &str = "INSERT INTO jobs (agent, id, kind, conversation, reply, state, turn, execution, since_ms, limit_ms, changed) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) AS u(agent, id, kind, conversation, reply, state, turn, execution, since_ms, limit_ms, changed) \
  ON CONFLICT (agent, id) DO UPDATE SET kind = excluded.kind, conversation = excluded.conversation, reply = excluded.reply, state = excluded.state, \
  turn = excluded.turn, execution = excluded.execution, since_ms = excluded.since_ms, limit_ms = excluded.limit_ms, changed = excluded.changed";

// A limit belongs to its state.
const PATCH_JOBS: &str = "UPDATE jobs j SET state = coalesce(u.state, j.state), execution = coalesce(u.execution, j.execution), turn = coalesce(u.turn, j.turn), \
  since_ms = coalesce(u.since_ms, j.since_ms), limit_ms = CASE WHEN u.state IS NULL THEN j.limit_ms ELSE u.limit_ms END, changed = u.changed \
  FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?) AS u(agent, id, state, execution, turn, since_ms, limit_ms, changed) WHERE j.agent = u.agent AND j.id = u.id";

const DELETE_JOBS: &str = "DELETE FROM jobs j USING committed, unnest(?, ?) AS u(agent, id) WHERE j.agent = u.agent AND j.id = u.id";

const PUT_CALLS: &str = "INSERT INTO open_calls (agent, id, job, execution, step, idx, tool, class, action, limit_millis, started_ms, unknown, changed) \
  SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
  AS u(agent, id, job, execution, step, idx, tool, class, action, limit_millis, started_ms, unknown, changed) \
  ON CONFLICT (agent, id) DO UPDATE SET job = excluded.job, execution = excluded.execution, step = excluded.step, idx = excluded.idx, tool = excluded.tool, \
  class = excluded.class, action = excluded.action, limit_millis = excluded.limit_millis, started_ms = excluded.started_ms, unknown = excluded.unknown, \
  changed = excluded.changed";

const UNKNOWN_CALLS: &str = "UPDATE open_calls c SET unknown = true, changed = u.changed FROM committed, unnest(?, ?, ?) AS u(agent, id, changed) \
  WHERE c.agent = u.agent AND c.id = u.id";

const DELETE_CALLS: &str = "DELETE FROM open_calls c USING committed, unnest(?, ?) AS u(agent, id) WHERE c.agent = u.agent AND c.id = u.id";

impl JobRow {
  pub(crate) fn patch(&mut self, later: JobPatch) {
    if let Some(state) = later.state {
      self.state = state;
      self.limit = later.limit;
    }
    self.execution = later.execution.unwrap_or(self.execution);
    self.turn = later.turn.unwrap_or(self.turn);
    self.since = later.since.unwrap_or(self.since);
    self.changed = later.changed;
  }
}

impl JobPatch {
  fn patch(&mut self, later: Self) {
    if later.state.is_some() {
      self.state = later.state;
      self.limit = later.limit;
    }
    self.execution = later.execution.or(self.execution);
    self.turn = later.turn.or(self.turn);
    self.since = later.since.or(self.since);
    self.changed = later.changed;
  }
}

impl Rows {
  pub(crate) fn add(&mut self, agent: AgentId, change: Change) {
    match change {
      Change::Requested(row) => self.jobs.put(agent, row.id.0, JobWrite::Put(row), JobWrite::merge),
      Change::Moved(patch) => self.jobs.put(agent, patch.id.0, JobWrite::Patch(patch), JobWrite::merge),
      Change::Ended(job) => self.jobs.put(agent, job.0, JobWrite::Delete, JobWrite::merge),
      Change::CallOpened(row) => self.calls.put(agent, row.id.0, CallWrite::Put(row), CallWrite::merge),
      Change::CallUnknown { call, changed } => self.calls.put(agent, call.0, CallWrite::Unknown(changed), CallWrite::merge),
      Change::CallSettled(call) => self.calls.put(agent, call.0, CallWrite::Delete, CallWrite::merge),
    }
  }

  pub(crate) fn drop_agent(&mut self, agent: AgentId) {
    self.jobs.forget(agent);
    self.calls.forget(agent);
  }

  /// Whether a worker may find something that it did not find before: a job that waits, or one whose open call is settled.
  pub(crate) fn offers_work(&self) -> bool {
    let waits = |write: &JobWrite| match write {
      JobWrite::Put(row) => row.state == JobState::Claimable && row.turn,
      JobWrite::Patch(patch) => patch.state == Some(JobState::Claimable) && patch.turn != Some(false),
      JobWrite::Delete => false,
    };
    self.jobs.iter().any(|(_, _, write)| waits(write)) || self.calls.iter().any(|(_, _, write)| *write == CallWrite::Delete)
  }

  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    let (mut put, mut patched, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for (agent, id, write) in self.jobs.iter() {
      match write {
        JobWrite::Put(row) => put.push((*agent, row)),
        JobWrite::Patch(patch) => patched.push((*agent, patch)),
        JobWrite::Delete => deleted.push((*agent, *id)),
      }
    }
    if !put.is_empty() {
      parts.part(PUT_JOBS, put_jobs(&put));
    }
    if !patched.is_empty() {
      parts.part(PATCH_JOBS, patch_jobs(&patched));
    }
    if !deleted.is_empty() {
      parts.part(DELETE_JOBS, keys(&deleted));
    }
    self.call_statements(parts);
  }

  fn call_statements<'a>(&'a self, parts: &mut Parts<'a>) {
    let (mut put, mut unknown, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for (agent, id, write) in self.calls.iter() {
      match write {
        CallWrite::Put(row) => put.push((*agent, row.as_ref())),
        CallWrite::Unknown(changed) => unknown.push((*agent, *id, *changed)),
        CallWrite::Delete => deleted.push((*agent, *id)),
      }
    }
    if !put.is_empty() {
      parts.part(PUT_CALLS, put_calls(&put));
    }
    if !unknown.is_empty() {
      let columns = [
        Argument::Uuids(unknown.iter().map(|(agent, _, _)| agent.0).collect()),
        Argument::Uuids(unknown.iter().map(|(_, id, _)| *id).collect()),
        Argument::Longs(unknown.iter().map(|(_, _, changed)| *changed).collect()),
      ];
      parts.part(UNKNOWN_CALLS, columns);
    }
    if !deleted.is_empty() {
      parts.part(DELETE_CALLS, keys(&deleted));
    }
  }
}

impl JobWrite {
  /// One operation for two on the same key. A row that was deleted is not there to be patched; one that is put after a deletion overwrites every column.
  fn merge(&mut self, later: Self) {
    match (&mut *self, later) {
      (Self::Put(earlier), Self::Patch(later)) => earlier.patch(later),
      (Self::Patch(earlier), Self::Patch(later)) => earlier.patch(later),
      (Self::Delete, Self::Patch(_)) => (),
      (_, later @ (Self::Put(_) | Self::Delete)) => *self = later,
    }
  }
}

impl CallWrite {
  fn merge(&mut self, later: Self) {
    match (&mut *self, later) {
      (Self::Put(row), Self::Unknown(changed)) => {
        row.unknown = true;
        row.changed = changed;
      }
      (Self::Unknown(earlier), Self::Unknown(later)) => *earlier = later,
      (Self::Delete, Self::Unknown(_)) => (),
      (_, later @ (Self::Put(_) | Self::Delete)) => *self = later,
    }
  }
}

fn keys<'a>(rows: &[(AgentId, Uuid)]) -> [Argument<'a>; 2] {
  [Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()), Argument::Uuids(rows.iter().map(|(_, id)| *id).collect())]
}

fn put_jobs<'a>(rows: &[(AgentId, &'a JobRow)]) -> [Argument<'a>; 11] {
  let of = || rows.iter().map(|(_, row)| *row);
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id.0).collect()),
    Argument::texts(of().map(|row| row.kind.code())),
    Argument::Uuids(of().map(|row| row.conversation.0).collect()),
    Argument::Uuids(of().map(|row| row.reply.0).collect()),
    Argument::texts(of().map(|row| row.state.code())),
    Argument::Booleans(of().map(|row| row.turn).collect()),
    Argument::Ints(of().map(|row| row.execution).collect()),
    Argument::Longs(of().map(|row| row.since.0).collect()),
    Argument::OptionalLongs(of().map(|row| row.limit.map(|limit| limit.0)).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
  ]
}

fn patch_jobs<'a>(rows: &[(AgentId, &'a JobPatch)]) -> [Argument<'a>; 8] {
  let of = || rows.iter().map(|(_, row)| *row);
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id.0).collect()),
    Argument::optional_texts(of().map(|row| row.state.map(JobState::code))),
    Argument::OptionalInts(of().map(|row| row.execution).collect()),
    Argument::OptionalBooleans(of().map(|row| row.turn).collect()),
    Argument::OptionalLongs(of().map(|row| row.since.map(|since| since.0)).collect()),
    Argument::OptionalLongs(of().map(|row| row.limit.map(|limit| limit.0)).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
  ]
}

fn put_calls<'a>(rows: &[(AgentId, &'a CallRow)]) -> [Argument<'a>; 13] {
  let of = || rows.iter().map(|(_, row)| *row);
  [
    Argument::Uuids(rows.iter().map(|(agent, _)| agent.0).collect()),
    Argument::Uuids(of().map(|row| row.id.0).collect()),
    Argument::Uuids(of().map(|row| row.job.0).collect()),
    Argument::Ints(of().map(|row| row.execution).collect()),
    Argument::Ints(of().map(|row| row.step).collect()),
    Argument::Ints(of().map(|row| row.index).collect()),
    Argument::texts(of().map(|row| row.tool.as_str())),
    Argument::texts(of().map(|row| row.class.code())),
    Argument::texts(of().map(|row| row.action.as_str())),
    Argument::Longs(of().map(|row| row.limit_millis).collect()),
    Argument::Longs(of().map(|row| row.started.0).collect()),
    Argument::Booleans(of().map(|row| row.unknown).collect()),
    Argument::Longs(of().map(|row| row.changed).collect()),
  ]
}
