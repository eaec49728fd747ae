//! How an execution finishes, and how the model's answers are recorded.
//!
//! A finish is refused while the model hasn't seen all that counts; what it cost is recorded all the same.

use super::decide::running;
use super::{ExecutionFinished, FinishAsked, ModelCall, PromptPart, Running, StepRecorded, ToolCall, Work};
use crate::codes::reason;
use crate::conversation::{Reply, ReplyPosted, report, turn_after};
use crate::event::Event;
use crate::ids::JobId;
use crate::limits::{ARGUMENTS_BYTES_MAX, CALLS_PER_STEP_MAX, MESSAGE_TEXT_BYTES_MAX};
use crate::settle::refused;
use crate::state::{Root, Thing};
use crate::text;
use crate::timer::TimerCancelled;

pub(super) fn finish(root: &Root, thing: &Thing, asked: &FinishAsked) -> Vec<Event> {
  let Some((reply, running)) = running(thing, asked.execution) else { return vec![refused(reason::STALE_EXECUTION)] };
  let step = match StepOf::finish(&reply.work, asked) {
    Ok(step) => step,
    Err(reason) => return vec![refused(reason)],
  };
  let (text, cut) = text::bounded(&asked.text, MESSAGE_TEXT_BYTES_MAX);
  if let Some(reason) = too_early(reply, asked) {
    return recorded_finish(step, asked, &text).into_iter().chain([refused(reason)]).collect();
  }
  let mut events: Vec<Event> = recorded_finish(step, asked, "").into_iter().collect();
  match report::superseded(root, (asked.job, reply)) {
    Some(superseded) => {
      events.extend([ExecutionFinished { job: asked.job, execution: asked.execution }.into(), TimerCancelled { timer: running.timer }.into(), superseded]);
    }
    None => events.extend(posted(reply, running, asked, text, cut)),
  }
  events.extend(turn_after(root, reply.conversation, asked.job).map(Event::from));
  events
}

/// Which step a final answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepOf {
  /// The next one.
  New,
  /// The last one, asked again after a refusal.
  Again,
}

/// The record of a final answer with this text, if it isn't recorded.
pub(crate) fn recorded_finish(step: StepOf, asked: &FinishAsked, text: &str) -> Option<Event> {
  let record = || recorded((asked.job, asked.execution, asked.step), &asked.model_call, text.to_owned(), Vec::new()).into();
  (step == StepOf::New).then(record)
}

impl StepOf {
  /// Which step the answer is, or why it can't be one.
  pub(crate) fn finish(work: &Work, asked: &FinishAsked) -> Result<Self, &'static str> {
    let (step, last) = (asked.step, work.last_step());
    let asked_again = work.steps.get(&step).is_some_and(|recorded| recorded.tools.is_empty()) && step == last;
    if asked_again {
      Ok(Self::Again)
    } else if step == last + 1 {
      Ok(Self::New)
    } else if (1..=last).contains(&step) {
      Err(reason::STEP_RECORDED)
    } else {
      Err(reason::STEP_OUT_OF_ORDER)
    }
  }
}

fn too_early(reply: &Reply, asked: &FinishAsked) -> Option<&'static str> {
  if asked.seen < reply.work.instructed || reply.work.has_open_call() {
    Some(reason::FINISH_TOO_EARLY)
  } else if asked.text.trim().is_empty() {
    Some(reason::TEXT_EMPTY)
  } else {
    None
  }
}

fn posted(reply: &Reply, running: &Running, asked: &FinishAsked, text: String, cut: bool) -> [Event; 3] {
  let job = asked.job;
  [
    ExecutionFinished { job, execution: asked.execution }.into(),
    TimerCancelled { timer: running.timer }.into(),
    ReplyPosted { job, conversation: reply.conversation, reply: reply.reply, text, incomplete: asked.incomplete || cut }.into(),
  ]
}

/// The record of a model's answer: `of` is (job, execution, step).
pub(super) fn recorded(of: (JobId, i32, i32), model_call: &ModelCall, text: String, calls: Vec<ToolCall>) -> StepRecorded {
  let (job, execution, step) = of;
  StepRecorded { job, execution, step, model_call: cleaned(model_call), text, calls }
}

/// The calls of an answer as they can be stored: the first ones, up to the limits. A worker tells the model about the others.
pub(super) fn bounded_calls(calls: &[ToolCall]) -> Vec<ToolCall> {
  let mut room = ARGUMENTS_BYTES_MAX;
  let mut fits = |call: ToolCall| {
    room = room.checked_sub(call.arguments.len())?;
    Some(call)
  };
  let cleaned =
    |call: &ToolCall| ToolCall { provider_id: text::clean(&call.provider_id), tool: text::clean(&call.tool), arguments: text::clean(&call.arguments) };
  calls.iter().take(CALLS_PER_STEP_MAX).map(cleaned).map_while(&mut fits).collect()
}

fn cleaned(call: &ModelCall) -> ModelCall {
  ModelCall {
    model: text::clean(&call.model),
    prompt_version: text::clean(&call.prompt_version),
    parts: call.parts.iter().map(|part| PromptPart { name: text::clean(&part.name), sha256: text::clean(&part.sha256), ..part.clone() }).collect(),
    tools: call.tools.iter().map(|tool| text::clean(tool)).collect(),
    finish: text::clean(&call.finish),
    currency: call.currency.as_deref().map(text::clean),
    ..call.clone()
  }
}
