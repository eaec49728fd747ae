//! When a call may begin: asked by the running execution, for a recorded step, after what stands before it, and before any newer instruction.

use super::{Call, CallAsked, CallFailed, CallSkipped, CallStarted, CallStatus, Class, Outcome, SkipReason};
use crate::codes::reason;
use crate::conversation::{Reply, ReplyStatus};
use crate::event::Event;
use crate::execution::{Step, Work};
use crate::ids::{self, ActionId, Timestamp};
use crate::limits::{ARGUMENTS_BYTES_MAX, CALL_LIMIT_MILLIS_MAX};
use crate::settle::refused;
use crate::state::Thing;
use crate::task::Orders;
use crate::text;

/// What an ask leads to.
pub(crate) enum Answer {
  Start,
  Skip(SkipReason),
  Refuse(&'static str),
}

/// What of a job's state bears on all of its calls.
#[derive(Default)]
pub(crate) struct Standing {
  /// The job isn't at work, so nothing of it begins.
  pub(crate) over: Option<SkipReason>,
  /// The ordinal before which unasked calls no longer begin, and why: a pause or a stop.
  pub(crate) halted: Option<(i64, SkipReason)>,
  /// The call may be held before those ahead of it are settled.
  pub(crate) may_be_held: bool,
}

/// Decides on the ask of a turn's call.
pub(super) fn ask(thing: &Thing, asked: &CallAsked, at: Timestamp) -> Vec<Event> {
  let Some(reply) = thing.reply() else { return vec![refused(reason::NO_SUCH_CALL)] };
  match answer(&reply.work, &standing(reply), asked) {
    Answer::Start => match Orders::of(&asked.tool).map(|orders| orders.of_call(reply, asked)) {
      None => vec![started(asked, None, at)],
      Some(Ok(order)) => vec![started(asked, None, at), order],
      // It is paired at once: the model learns why, and the turn goes on.
      Some(Err(reason)) => vec![started(asked, None, at), failed(asked, reason)],
    },
    Answer::Skip(reason) => vec![skipped(asked, reason)],
    Answer::Refuse(reason) => vec![refused(reason)],
  }
}

fn standing(reply: &Reply) -> Standing {
  let over = match reply.status {
    ReplyStatus::Pending => None,
    ReplyStatus::Stopped => Some(SkipReason::Stopped),
    ReplyStatus::Answered | ReplyStatus::Failed | ReplyStatus::Superseded => Some(SkipReason::Lost),
  };
  Standing { over, ..Standing::default() }
}

/// Whether the call may begin now, whatever the job is for.
pub(crate) fn answer(work: &Work, standing: &Standing, asked: &CallAsked) -> Answer {
  let Some(step) = named_step(work, asked) else { return Answer::Refuse(reason::NO_SUCH_CALL) };
  if text::clean(&asked.action).len() > ARGUMENTS_BYTES_MAX {
    return Answer::Refuse(reason::VALUE_INVALID);
  }
  let known = work.calls.get(&asked.call);
  let is_running = work.running.as_ref().is_some_and(|running| running.execution == asked.execution);
  if standing.over.is_none() && !is_running {
    return Answer::Refuse(reason::STALE_EXECUTION);
  }
  if let Some(reason) = known.and_then(|call| refusal(call, asked)) {
    return Answer::Refuse(reason);
  }
  if let Some(reason) = standing.over {
    // An approval is kept while its task is paused.
    let is_approved = known.is_some_and(|call| call.status == CallStatus::Approved);
    return if is_approved { Answer::Refuse(reason::STALE_EXECUTION) } else { Answer::Skip(reason) };
  }
  // Unstarted calls of a batch are skipped when an instruction came after it (D1), also when the worker has read that instruction meanwhile.
  if asked.seen.min(step.ordinal) < work.instructed {
    return Answer::Skip(SkipReason::Steered);
  }
  if let Some((_, reason)) = standing.halted.filter(|(ordinal, _)| known.is_none() && step.ordinal < *ordinal) {
    return Answer::Skip(reason);
  }
  if may_begin(work, asked) || (standing.may_be_held && may_be_held(work, asked)) { Answer::Start } else { Answer::Refuse(reason::CALL_OUT_OF_ORDER) }
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
    CallStatus::Held => Some(reason::CALL_HELD),
    CallStatus::Approved => None,
    CallStatus::Settled(Outcome::Unknown) if call.class == Some(Class::External) => Some(reason::WAITING_FOR_CALL),
    CallStatus::Skipped | CallStatus::Settled(_) | CallStatus::ReconciledByReport | CallStatus::ReconciledByOwner | CallStatus::Noted => {
      Some(reason::CALL_SETTLED)
    }
  }
}

/// A card may be opened beside others, and while calls before it read.
fn may_be_held(work: &Work, asked: &CallAsked) -> bool {
  (0..asked.index).all(|index| {
    let before = work.calls.get(&ids::call(asked.job, asked.step, index));
    before.is_some_and(|before| !before.is_open() || before.is_carded() || before.reads_along())
  })
}

/// Read-only calls of a step run together; any other begins when all before it are settled.
pub(crate) fn may_begin(work: &Work, asked: &CallAsked) -> bool {
  (0..asked.index).all(|index| {
    let before = work.calls.get(&ids::call(asked.job, asked.step, index));
    before.is_some_and(|before| !before.is_open() || (asked.class == Class::Repeatable && before.reads_along()))
  })
}

/// The permit, with the card by which it was allowed if it needed one.
pub(crate) fn started(asked: &CallAsked, card: Option<ActionId>, at: Timestamp) -> Event {
  CallStarted {
    job: asked.job,
    execution: asked.execution,
    step: asked.step,
    index: asked.index,
    call: asked.call,
    tool: text::clean(&asked.tool),
    class: asked.class,
    action: text::clean(&asked.action),
    limit_millis: limit(asked),
    started_ms: at,
    card,
  }
  .into()
}

/// The call failed as it began: nothing of it can be done.
fn failed(asked: &CallAsked, code: &str) -> Event {
  CallFailed { job: asked.job, execution: asked.execution, call: asked.call, code: code.to_owned(), parts: Vec::new() }.into()
}

/// The call will not begin.
pub(crate) fn skipped(asked: &CallAsked, reason: SkipReason) -> Event {
  CallSkipped { job: asked.job, call: asked.call, step: asked.step, index: asked.index, tool: text::clean(&asked.tool), reason }.into()
}

/// The tool's own time limit, as far as observers wait for it.
pub(crate) fn limit(asked: &CallAsked) -> i64 {
  asked.limit_millis.clamp(0, CALL_LIMIT_MILLIS_MAX)
}
