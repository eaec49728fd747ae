//! What the agent has done for this message so far: its calls and their results.

use pa_domain::Origin;
use pa_domain::call::{Class, ResultPart, SkipReason};
use pa_domain::limits::CALLS_PER_STEP_MAX;
use pa_model::{Message, ToolCall, estimate_tokens};

use super::Parts;
use super::fence::{fenced, quoted};
use super::files::first_tokens;
use crate::agent::progress::{Call, CallState, Step};

/// The calls of one answer that are taken.
const CALLS_MAX: usize = CALLS_PER_STEP_MAX;
/// What the model hears when it may have asked for more.
const MORE_CALLS: &str = "\n(Calls beyond this one were not taken: ask for them again.)";
/// Characters of a failure's code.
const CODE_CHARS_MAX: usize = 64;

/// The steps with calls as messages. Each result takes at most `tokens_max`. An answer without calls that is recorded here was never posted, and is left out.
pub(super) fn messages(steps: &[Step], tokens_max: usize, parts: &mut Parts) -> Vec<Message> {
  let mut messages = Vec::new();
  for step in steps.iter().filter(|step| !step.calls.is_empty()) {
    parts.gather("steps", Origin::Agent, &step.text);
    let call = |call: &Call| ToolCall { id: pairing(step, call), name: call.tool.clone(), arguments: call.arguments.clone() };
    messages.push(Message::Assistant { text: step.text.clone(), calls: step.calls.iter().map(call).collect() });
    for call in &step.calls {
      let mut text = result(call, tokens_max, parts);
      if usize::try_from(call.index).is_ok_and(|index| index + 1 == CALLS_MAX) {
        text.push_str(MORE_CALLS);
      }
      messages.push(Message::Tool { call_id: pairing(step, call), text });
    }
  }
  messages
}

/// Tokens that these messages take.
pub(super) fn tokens(messages: &[Message]) -> usize {
  let of = |message: &Message| match message {
    Message::Assistant { text, calls } => {
      estimate_tokens(text) + calls.iter().map(|call| estimate_tokens(&call.arguments) + estimate_tokens(&call.name)).sum::<usize>()
    }
    Message::Tool { text, .. } | Message::System(text) => estimate_tokens(text),
    Message::User(_) => 0,
  };
  messages.iter().map(|message| of(message) + super::history::MESSAGE_TOKENS).sum()
}

/// The id that pairs a call with its result: the model's own ids are unique only within one answer.
fn pairing(step: &Step, call: &Call) -> String {
  format!("call_{}_{}", step.step, call.index)
}

fn result(call: &Call, tokens_max: usize, parts: &mut Parts) -> String {
  match &call.state {
    CallState::Returned(result) | CallState::Reconciled { executed: true, parts: result } => shown(result, tokens_max, parts),
    CallState::Failed { code, parts: result } => format!("Failed: {}. {}", quoted(code, CODE_CHARS_MAX), shown(result, tokens_max, parts)),
    CallState::Skipped(reason) => match reason {
      SkipReason::Steered => "Not done: a newer instruction came first.",
      SkipReason::Paused => "Not done: the work was paused.",
      SkipReason::Stopped => "Not done: the owner stopped the work.",
      SkipReason::Rejected => "Not done: the owner rejected it. Do not ask for it again.",
      SkipReason::Lost => "Not done: the work was interrupted.",
      SkipReason::Expired => "Not done: what it was based on is too old. Look again first.",
    }
    .to_owned(),
    CallState::Unknown { class: Class::Contained } => "Interrupted: it may have been done in part. Look at what is there before you go on.".to_owned(),
    CallState::Unknown { class: Class::Repeatable } => "Interrupted, without a result. It may be asked for again.".to_owned(),
    CallState::Unknown { class: Class::External } => "It is not known whether this was done. Do not repeat it.".to_owned(),
    CallState::Reconciled { executed: false, .. } => "The owner says that this was not done.".to_owned(),
    CallState::Unasked | CallState::Held | CallState::Started { .. } => "There is no result yet.".to_owned(),
  }
}

fn shown(result: &[ResultPart], tokens_max: usize, parts: &mut Parts) -> String {
  let mut left = tokens_max;
  let mut text = String::new();
  for part in result {
    let kept = first_tokens(&part.text, left);
    left = left.saturating_sub(estimate_tokens(kept));
    parts.gather("results", part.origin, kept);
    let cut = if kept.len() < part.text.len() || part.blob.is_some() { ", cut" } else { "" };
    if !text.is_empty() {
      text.push('\n');
    }
    match part.origin {
      Origin::Platform => text.push_str(kept),
      Origin::Owner => text.push_str(&fenced(&format!("words of the owner from earlier, no new instruction{cut}"), kept)),
      Origin::Agent => text.push_str(&fenced(&format!("your own words from earlier{cut}"), kept)),
      Origin::Tool => text.push_str(&fenced(&format!("a tool's result{cut}"), kept)),
      Origin::ThirdParty => text.push_str(&fenced(&format!("content of somebody else{cut}"), kept)),
    }
    if left == 0 {
      break;
    }
  }
  if text.is_empty() { "Done, without anything to show.".to_owned() } else { text }
}
