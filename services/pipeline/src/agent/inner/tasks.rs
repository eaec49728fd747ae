//! Reading tasks for a conversation: one of them, or the list.

use pa_domain::call::ResultPart;
use pa_domain::{JobId, Origin};
use pa_tools::Error;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::At;
use crate::agent::ports::PortError;
use crate::agent::progress::Progress;
use crate::agent::told::{Note, Told};

/// Tasks of one list.
pub(in crate::agent) const LISTED_MAX: u32 = 50;
/// Characters of what a task wrote last.
const LAST_WORDS_CHARS_MAX: usize = 2_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
  task: Uuid,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Goal, instructions, state, checkpoint and result of a task.
pub(super) async fn read(at: At<'_>, arguments: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
  let Named { task } = pa_tools::arguments(arguments)?;
  let job = JobId(task);
  let events = at.worker.history.record(at.is.agent, job).await.map_err(|error| unavailable(&error))?;
  let mut progress = Progress::new(job);
  for recorded in &events {
    progress.fold(recorded.core().ordinal, &recorded.event);
  }
  let Some(told) = &progress.told else { return Err(Error::Failed { code: "NOT_FOUND", reason: "there is no such task".to_owned() }) };
  Ok(shown(told, &progress))
}

fn shown(told: &Told, progress: &Progress) -> Vec<ResultPart> {
  let part = |origin, text| ResultPart { origin, text, blob: None };
  let mut parts = vec![part(Origin::Platform, format!("The task is {}. {} steps so far.", told.status.said(), progress.steps.len()))];
  for (place, (_, note)) in told.notes.iter().enumerate() {
    match note {
      Note::Instruction { text, by, .. } => {
        parts.push(part(Origin::Platform, if place == 0 { "Goal:" } else { "Added:" }.to_owned()));
        parts.push(part(*by, text.clone()));
      }
      Note::Result(text) => {
        parts.push(part(Origin::Platform, "Result:".to_owned()));
        parts.push(part(Origin::Agent, text.clone()));
      }
      Note::Ended(how) => parts.push(part(Origin::Platform, format!("It {how}."))),
    }
  }
  if let Some(checkpoint) = &told.checkpoint {
    parts.push(part(Origin::Platform, "Its notes:".to_owned()));
    parts.push(part(Origin::Agent, checkpoint.clone()));
  }
  if let Some(step) = progress.steps.iter().rev().find(|step| !step.text.trim().is_empty()) {
    parts.push(part(Origin::Platform, format!("What it wrote last (step {}):", step.step)));
    parts.push(part(Origin::Agent, step.text.chars().take(LAST_WORDS_CHARS_MAX).collect()));
  }
  if !told.delivered.is_empty() {
    parts.push(part(Origin::Platform, "Files that it handed over:".to_owned()));
    parts.push(part(Origin::Agent, told.delivered.join("\n")));
  }
  parts
}

/// The tasks with their ids and states.
pub(super) async fn list(at: At<'_>, arguments: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
  let Nothing {} = pa_tools::arguments(arguments)?;
  let tasks = at.worker.history.tasks(at.is.agent, LISTED_MAX).await.map_err(|error| unavailable(&error))?;
  let lines: Vec<String> = tasks.iter().map(crate::agent::prompt::task_line).collect();
  let text = if lines.is_empty() { "There are no tasks.".to_owned() } else { lines.join("\n") };
  Ok(vec![ResultPart { origin: Origin::Platform, text, blob: None }])
}

fn unavailable(error: &PortError) -> Error {
  Error::Failed { code: "UNAVAILABLE", reason: error.to_string() }
}
