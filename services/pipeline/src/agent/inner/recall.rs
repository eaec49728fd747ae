//! `pa_history` of a task: its earlier steps, whole, page by page.

use pa_domain::Origin;
use pa_domain::call::ResultPart;
use pa_tools::Error;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::At;
use crate::agent::progress::{Call, CallState, Progress, Step};

/// Characters of one page: a long result is read in several.
const PAGE_CHARS: usize = 16_000;
/// Bytes of a result that was kept whole beside the log.
const WHOLE_BYTES_MAX: usize = 32 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
  step: i32,
  call: Option<i32>,
  #[serde(default)]
  offset: usize,
}

pub(super) async fn recall(at: At<'_>, progress: &Progress, given: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
  let Arguments { step, call, offset } = pa_tools::arguments(given)?;
  let not_found = |what: String| Error::Failed { code: "NOT_FOUND", reason: what };
  let step = progress.steps.iter().find(|known| known.step == step).ok_or_else(|| not_found(format!("there is no step {step}")))?;
  match call {
    None => Ok(whole(step)),
    Some(index) => {
      let call = step.calls.iter().find(|known| known.index == index).ok_or_else(|| not_found(format!("step {} has no call {index}", step.step)))?;
      page(at, call, offset).await
    }
  }
}

/// What was written, the calls, and the beginning of each result.
fn whole(step: &Step) -> Vec<ResultPart> {
  let part = |origin, text| ResultPart { origin, text, blob: None };
  let mut parts = vec![part(Origin::Platform, format!("Step {}.", step.step))];
  if !step.text.is_empty() {
    parts.push(part(Origin::Agent, step.text.clone()));
  }
  let room = PAGE_CHARS / step.calls.len().max(1);
  for call in &step.calls {
    parts.push(part(Origin::Platform, format!("Call {}: {}", call.index, call.tool)));
    parts.push(part(Origin::Agent, call.arguments.clone()));
    for result in results(call) {
      let text: String = result.text.chars().take(room).collect();
      let is_cut = text.len() < result.text.len() || result.blob.is_some();
      parts.push(part(result.origin, text));
      if is_cut {
        parts.push(part(Origin::Platform, format!("It goes on: step={}, call={}, offset={room}.", step.step, call.index)));
      }
    }
  }
  parts
}

/// One page of a call's result, from the blob where the record has only its beginning.
async fn page(at: At<'_>, call: &Call, offset: usize) -> Result<Vec<ResultPart>, Error> {
  let mut parts = Vec::new();
  let (mut before, mut room) = (offset, PAGE_CHARS);
  for result in results(call) {
    let text = match &result.blob {
      None => result.text.clone(),
      Some(blob) => {
        let bytes = at.worker.history.file(at.is.agent, blob, WHOLE_BYTES_MAX).await;
        let bytes = bytes.map_err(|error| Error::Failed { code: "UNAVAILABLE", reason: error.to_string() })?;
        bytes.map_or_else(|| result.text.clone(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
      }
    };
    let length = text.chars().count();
    let shown: String = text.chars().skip(before).take(room).collect();
    before = before.saturating_sub(length);
    room = room.saturating_sub(shown.chars().count());
    if !shown.is_empty() {
      parts.push(ResultPart { origin: result.origin, text: shown, blob: None });
    }
    if room == 0 {
      let next = format!("It may go on: offset={}.", offset + PAGE_CHARS);
      parts.push(ResultPart { origin: Origin::Platform, text: next, blob: None });
      break;
    }
  }
  if parts.is_empty() {
    parts.push(ResultPart { origin: Origin::Platform, text: "There is nothing more.".to_owned(), blob: None });
  }
  Ok(parts)
}

fn results(call: &Call) -> &[ResultPart] {
  match &call.state {
    CallState::Returned(parts) | CallState::Failed { parts, .. } | CallState::Reconciled { parts, .. } => parts,
    CallState::Unasked | CallState::Held | CallState::Started { .. } | CallState::Skipped(_) | CallState::Unknown { .. } => &[],
  }
}
