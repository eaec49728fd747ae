//! When a call may begin: asked by the running execution, for a recorded step, after what stands before it, and before any newer instruction.

use super::{Call, CallAsked, CallSkipped, CallStarted, CallStatus, Class, Outcome, SkipReason};
use crate::codes::reason;
use crate::conversation::{Reply, ReplyStatus};
use crate::event::Event;
use crate::execution::{Step, Work};
use crate::ids::{self, Timestamp};
use crate::limits::{ARGUMENTS_BYTES_MAX, CALL_LIMIT_MILLIS_MAX};
use crate::settle::refused;
use crate::state::Thing;
use crate::text;

/// What an ask leads to.
enum Answer {
  Start,
  Skip(SkipReason),
  Refuse(&'static str),
}

pub(super) fn ask(thing: &Thing, asked: &CallAsked, at: Timestamp) -> Event {
  match thing.reply().map_or(Answer::Refuse(reason::NO_SUCH_CALL), |reply| answer(reply, asked)) {
    Answer::Start => started(asked, at),
    Answer::Skip(reason) => {
      CallSkipped { job: asked.job, call: asked.call, step: asked.step, index: asked.index, tool: text::clean(&asked.tool), reason }.into()
    }
    Answer::Refuse(reason) => refused(reason),
  }
}

fn answer(reply: &Reply, asked: &CallAsked) -> Answer {
  let work = &reply.work;
  let Some(step) = named_step(work, asked) else { return Answer::Refuse(reason::NO_SUCH_CALL) };
  if text::clean(&asked.action).len() > ARGUMENTS_BYTES_MAX {
    return Answer::Refuse(reason::VALUE_INVALID);
  }
  let known = work.calls.get(&asked.call);
  let over = match reply.status {
    ReplyStatus::Pending => None,
    ReplyStatus::Stopped => Some(SkipReason::Stopped),
    ReplyStatus::Answered | ReplyStatus::Failed => Some(SkipReason::Lost),
  };
  let is_running = work.running.as_ref().is_some_and(|running| running.execution == asked.execution);
  if over.is_none() && !is_running {
    return Answer::Refuse(reason::STALE_EXECUTION);
  }
  if let Some(reason) = known.and_then(|call| refusal(call, asked)) {
    return Answer::Refuse(reason);
  }
  if let Some(reason) = over {
    return Answer::Skip(reason);
  }
  // Unstarted calls of a batch are skipped when an instruction came after it (D1), also when the worker has read that instruction meanwhile.
  if asked.seen.min(step.ordinal) < work.instructed {
    return Answer::Skip(SkipReason::Steered);
  }
  if !may_begin(work, asked) {
    return Answer::Refuse(reason::CALL_OUT_OF_ORDER);
  }
  Answer::Start
}

/// The recorded step that asks for exactly this call.
fn named_step<'a>(work: &'a Work, asked: &CallAsked) -> Option<&'a Step> {
  let step = work.steps.get(&asked.step)?;
  let tool = step.tools.get(usize::try_from(asked.index).ok()?)?;
  (*tool == text::clean(&asked.tool) && asked.call == ids::call(asked.job, asked.step, asked.index)).then_some(step)
}

/// Why a call that is known already can't be asked for again; `None` for a repeatable one that an earlier execution left open.
fn refusal(call: &Call, asked: &CallAsked) -> Option<&'static str> {
  match call.status {
    CallStatus::Started if call.started_by.last() == Some(&asked.execution) => Some(reason::CALL_STARTED),
    CallStatus::Started if call.class == Some(Class::Repeatable) && asked.class == Class::Repeatable => None,
    CallStatus::Started => Some(reason::CALL_OPEN),
    CallStatus::Settled(Outcome::Unknown) if call.class == Some(Class::External) => Some(reason::WAITING_FOR_CALL),
    CallStatus::Skipped | CallStatus::Settled(_) | CallStatus::ReconciledByReport | CallStatus::ReconciledByOwner | CallStatus::Noted => {
      Some(reason::CALL_SETTLED)
    }
  }
}

/// Read-only calls of a step run together; any other begins when all before it are settled.
fn may_begin(work: &Work, asked: &CallAsked) -> bool {
  (0..asked.index).all(|index| {
    let before = work.calls.get(&ids::call(asked.job, asked.step, index));
    before.is_some_and(|before| !before.is_open() || (asked.class == Class::Repeatable && before.reads_along()))
  })
}

fn started(asked: &CallAsked, at: Timestamp) -> Event {
  CallStarted {
    job: asked.job,
    execution: asked.execution,
    step: asked.step,
    index: asked.index,
    call: asked.call,
    tool: text::clean(&asked.tool),
    class: asked.class,
    action: text::clean(&asked.action),
    limit_millis: asked.limit_millis.clamp(0, CALL_LIMIT_MILLIS_MAX),
    started_ms: at,
  }
  .into()
}
