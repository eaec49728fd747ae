//! What a running task hands over or keeps before it is finished: files and checkpoints, each asked for by a started call.

use super::evolve::content;
use super::{CheckpointAsked, CheckpointRecorded, DeliveryAsked, OutputDelivered, Task};
use crate::call::{Call, CallStatus};
use crate::codes::reason;
use crate::conversation::kept_file;
use crate::event::Event;
use crate::ids::{self, CallId};
use crate::limits::{CAPTION_CHARS_MAX, CHECKPOINT_BYTES_MAX, KEY_CHARS_MAX, OUTPUTS_MAX};
use crate::settle::{no_change, refused};
use crate::state::Thing;
use crate::text;

pub(super) fn checkpoint(thing: &Thing, asked: &CheckpointAsked) -> Vec<Event> {
  if let Err(reason) = started(thing, asked.call, asked.execution) {
    return vec![refused(reason)];
  }
  let text = text::clean(&asked.text);
  vec![if text.trim().is_empty() {
    refused(reason::TEXT_EMPTY)
  } else if text.len() > CHECKPOINT_BYTES_MAX {
    refused(reason::TEXT_TOO_LONG)
  } else {
    CheckpointRecorded { task: asked.task, execution: asked.execution, call: asked.call, text }.into()
  }]
}

/// Within one revision the same request key recovers the first receipt (DEL-11); what else it would mean is refused (DEL-13).
pub(super) fn deliver(thing: &Thing, asked: &DeliveryAsked) -> Vec<Event> {
  let (task, call) = match started(thing, asked.call, asked.execution) {
    Ok(found) => found,
    Err(reason) => return vec![refused(reason)],
  };
  let revision = task.revision();
  // What was begun before the last instruction is not published (DEL-18).
  if call.begun < revision {
    return vec![refused(reason::STEERED)];
  }
  let (request_key, source) = (text::clean(asked.request_key.trim()), text::clean(&asked.source));
  let is_too_long = request_key.chars().count() > KEY_CHARS_MAX || source.chars().count() > KEY_CHARS_MAX * 16;
  if request_key.is_empty() || is_too_long {
    return vec![refused(reason::VALUE_INVALID)];
  }
  let output = ids::output(asked.task, revision, &request_key);
  let (file, caption) = (kept_file(&asked.file), text::first_chars(&asked.caption, CAPTION_CHARS_MAX));
  match task.outputs.get(&output) {
    Some(known) if *known == content(output, &file, &source, &caption) => return vec![no_change(reason::ALREADY_DONE)],
    Some(_) => return vec![refused(reason::REQUEST_KEY_CONFLICT)],
    None if task.outputs.len() >= OUTPUTS_MAX => return vec![refused(reason::QUEUE_FULL)],
    None => {}
  }
  let conversation = task.asked_in;
  let DeliveryAsked { task, execution, call, .. } = *asked;
  vec![OutputDelivered { output, task, conversation, execution, call, revision, request_key, file, source, caption }.into()]
}

/// The task and the call, if the running execution started it and it isn't settled.
fn started(thing: &Thing, call: CallId, execution: i32) -> Result<(&Task, &Call), &'static str> {
  let task = thing.task().ok_or(reason::NOT_FOUND)?;
  if task.work.running.as_ref().is_none_or(|running| running.execution != execution) {
    return Err(reason::STALE_EXECUTION);
  }
  let call = task.work.calls.get(&call).ok_or(reason::NO_SUCH_CALL)?;
  match call.status {
    CallStatus::Started if call.started_by.last() == Some(&execution) => Ok((task, call)),
    CallStatus::Started => Err(reason::STALE_EXECUTION),
    CallStatus::Held
    | CallStatus::Approved
    | CallStatus::Skipped
    | CallStatus::Settled(_)
    | CallStatus::ReconciledByReport
    | CallStatus::ReconciledByOwner
    | CallStatus::Noted => Err(reason::CALL_SETTLED),
  }
}
