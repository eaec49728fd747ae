//! What is decided on the asks and reports of workers.

use super::attempt::{Attempt, Ending};
use super::finish::{bounded_calls, finish, recorded};
use super::state::attempt_timer;
use super::{
  ExecutionAsked, ExecutionFailureReported, ExecutionLossReported, ExecutionStarted, ExecutionYieldReported, Input, JobKind, Running, StepReported, Work,
};
use crate::codes::reason;
use crate::conversation::{Reply, ReplyStatus, report};
use crate::event::Event;
use crate::ids::{JobId, Timestamp};
use crate::limits::{MESSAGE_TEXT_BYTES_MAX, REPLY_ATTEMPT_GRACE_MILLIS, REPLY_ATTEMPT_MILLIS};
use crate::meta::Meta;
use crate::settle::{no_change, refused};
use crate::state::{Root, Thing};
use crate::task;
use crate::text;
use crate::timer::{Purpose, TimerSet};

pub(crate) fn decide(root: &Root, thing: &Thing, meta: &Meta, input: &Input, at: Timestamp) -> Vec<Event> {
  match input {
    Input::ExecutionAsked(asked) => match asked.kind {
      JobKind::Reply => start(root, thing, meta, asked, at),
      JobKind::Task => task::start_execution(root, thing, asked),
    },
    Input::ExecutionLossReported(ExecutionLossReported { job, execution, reason }) => report(root, thing, meta, (*job, *execution), &Ending::Lost(*reason)),
    Input::ExecutionYieldReported(ExecutionYieldReported { job, execution }) => report(root, thing, meta, (*job, *execution), &Ending::Yielded),
    Input::ExecutionFailureReported(ExecutionFailureReported { job, execution, code, detail }) => {
      report(root, thing, meta, (*job, *execution), &Ending::Failed { code, detail })
    }
    Input::StepReported(reported) => vec![step(thing, reported)],
    Input::FinishAsked(asked) => match thing {
      Thing::Task(task) if is_running(&task.work, asked.execution) => task::finish(root, meta, (asked.job.into(), task), asked),
      Thing::Task(_) | Thing::Reply(_) | Thing::Absent => finish(root, thing, asked),
    },
  }
}

/// The reply and its running execution, if that is execution number `execution`.
pub(crate) fn running(thing: &Thing, execution: i32) -> Option<(&Reply, &Running)> {
  let reply = thing.reply()?;
  let running = reply.work.running.as_ref().filter(|running| running.execution == execution)?;
  Some((reply, running))
}

fn report(root: &Root, thing: &Thing, meta: &Meta, of: (JobId, i32), ending: &Ending<'_>) -> Vec<Event> {
  let (job, execution) = of;
  if let Some(task) = thing.task().filter(|task| is_running(&task.work, execution)) {
    return task::lost(root, meta, (job.into(), task), execution, ending);
  }
  match running(thing, execution) {
    None => vec![no_change(reason::STALE_EXECUTION)],
    Some((reply, running)) => Attempt { root, meta, job, reply, running }.end_early(ending),
  }
}

fn is_running(work: &Work, execution: i32) -> bool {
  work.running.as_ref().is_some_and(|running| running.execution == execution)
}

fn start(root: &Root, thing: &Thing, meta: &Meta, asked: &ExecutionAsked, at: Timestamp) -> Vec<Event> {
  let reply = match startable(root, thing, asked) {
    Ok(reply) => reply,
    Err(reason) => return vec![refused(reason)],
  };
  if let Some(settled) = report::at_its_turn(root, (asked.job, reply)) {
    return settled;
  }
  let limit_ms = at.plus_millis(REPLY_ATTEMPT_MILLIS);
  let started =
    ExecutionStarted { job: asked.job, kind: asked.kind, execution: reply.work.executions + 1, conversation: reply.conversation, reply: reply.reply, limit_ms };
  let timer = TimerSet {
    timer: attempt_timer(meta.id),
    purpose: Purpose::AttemptLimit,
    due_ms: limit_ms.plus_millis(REPLY_ATTEMPT_GRACE_MILLIS),
    thing: Some(asked.job.into()),
  };
  vec![started.into(), timer.into()]
}

fn startable<'a>(root: &Root, thing: &'a Thing, asked: &ExecutionAsked) -> Result<&'a Reply, &'static str> {
  let reply = thing.reply().ok_or(reason::NOT_QUEUED)?;
  match reply.status {
    ReplyStatus::Pending => {}
    ReplyStatus::Stopped => return Err(reason::STOPPED),
    ReplyStatus::Answered | ReplyStatus::Failed | ReplyStatus::Superseded => return Err(reason::ENDED),
  }
  if reply.work.running.is_some() {
    Err(reason::ALREADY_RUNNING)
  } else if !root.has_turn(reply.conversation, asked.job) {
    Err(reason::NOT_QUEUED)
  } else if reply.work.waits_for_call() {
    Err(reason::WAITING_FOR_CALL)
  } else {
    Ok(reply)
  }
}

/// A model answer is recorded once per step; what another execution makes of the same step comes too late.
fn step(thing: &Thing, reported: &StepReported) -> Event {
  let Some(work) = thing.work().filter(|work| is_running(work, reported.execution)) else { return no_change(reason::STALE_EXECUTION) };
  if thing.task().is_some_and(|task| task.status != task::Status::Active) {
    // What the model answers to a task that is paused by now is not gone on with.
    return no_change(reason::PAUSED);
  }
  let next = work.last_step() + 1;
  if reported.step < next {
    return no_change(reason::STEP_RECORDED);
  }
  if reported.step > next {
    return no_change(reason::STEP_OUT_OF_ORDER);
  }
  let (text, _) = text::bounded(&reported.text, MESSAGE_TEXT_BYTES_MAX);
  recorded((reported.job, reported.execution, reported.step), &reported.model_call, text, bounded_calls(&reported.calls)).into()
}
