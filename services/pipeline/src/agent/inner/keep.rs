//! What a running task keeps or hands over: each an ask to the log by its started call, which decides.

use std::sync::Arc;

use pa_domain::call::ResultPart;
use pa_domain::conversation::FileRef;
use pa_domain::log::{self, Settlement};
use pa_domain::task::{self, CheckpointAsked, DeliveryAsked};
use pa_domain::{Event, Input, Origin, TaskId, ids};
use pa_tools::Error;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::At;
use crate::agent::asks::refusal;
use crate::agent::ports::{FileTaken, PortError};

/// Bytes of one delivered file (RUN-35).
const FILE_BYTES_MAX: usize = 20 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Notes {
  notes: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delivery {
  request_key: String,
  path: String,
  filename: Option<String>,
  #[serde(default)]
  caption: String,
}

/// Keeps the model's notes.
pub(super) async fn checkpoint(at: At<'_>, arguments: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
  let Notes { notes } = pa_tools::arguments(arguments)?;
  let task = TaskId::from(at.is.job);
  decided(at, CheckpointAsked { task, execution: at.is.execution, call: at.call, text: notes }).await?;
  Ok(said("Kept."))
}

/// Hands a file over. Its bytes are kept before the log is asked, so that whatever the receipt names is there.
pub(super) async fn deliver(at: At<'_>, arguments: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
  let Delivery { request_key, path, filename, caption } = pa_tools::arguments(arguments)?;
  let agent = at.is.agent;
  let FileTaken { path: source, bytes, media_type } = at.worker.history.take(agent, &path, FILE_BYTES_MAX).await.map_err(|error| match error {
    Ok(refused) => Error::Failed { code: refused.code, reason: refused.reason },
    Err(error) => unavailable(&error),
  })?;
  let own = source.rsplit('/').next().unwrap_or_default().to_owned();
  let name = filename.filter(|name| !name.trim().is_empty()).unwrap_or(own);
  let sha256 = crate::agent::prompt::sha256_of(&bytes);
  let size_bytes = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
  let blob = at.worker.history.keep(agent, bytes).await.map_err(|error| unavailable(&error))?;
  // The same call makes the same file, also when it is asked again.
  let id = ids::named(at.call.0, "file").to_string();
  let file = FileRef { id, name: name.clone(), media_type, size_bytes, sha256, blob, origin: Origin::Agent };
  let task = TaskId::from(at.is.job);
  let asked = DeliveryAsked { task, execution: at.is.execution, call: at.call, request_key, file, source, caption };
  let repeated = decided(at, asked).await?;
  let again = if repeated { " It was delivered before; this is the first receipt." } else { "" };
  Ok(said(&format!("{{\"delivered\":true,\"size_bytes\":{size_bytes},\"name\":{}}}{again}", Value::from(name))))
}

/// Asks the log; whether it had been done before.
async fn decided(at: At<'_>, input: impl Into<Input>) -> Result<bool, Error> {
  let asked = at.worker.asks.ask(at.is.agent, at.is.chain, input).await;
  let decision = asked.map_err(|error| Error::Unknown { reason: error.to_string() })?;
  let Some(decision) = decision else { return Err(Error::Unknown { reason: "the log can't be read".to_owned() }) };
  at.decided.lock().push(Arc::clone(&decision));
  let is_done = |event: &Event| matches!(event, Event::Task(task::Event::CheckpointRecorded(_) | task::Event::OutputDelivered(_)));
  if decision.events.iter().any(|recorded| is_done(&recorded.event)) {
    return Ok(false);
  }
  let repeats = |event: &Event| matches!(event, Event::Log(log::Event::InputSettled(settled)) if settled.outcome == Settlement::NoChange);
  if decision.events.iter().any(|recorded| repeats(&recorded.event)) {
    return Ok(true);
  }
  let reason = refusal(&decision).unwrap_or_default();
  Err(Error::Failed { code: "REFUSED", reason })
}

fn said(text: &str) -> Vec<ResultPart> {
  vec![ResultPart { origin: Origin::Platform, text: text.to_owned(), blob: None }]
}

fn unavailable(error: &PortError) -> Error {
  Error::Failed { code: "UNAVAILABLE", reason: error.to_string() }
}
