//! What an execution of a task does: step by step from the record, until the result stands or the log says that it is over.
//!
//! An instruction takes effect at the next boundary: what runs finishes, what has not begun is skipped by the log, and the next request has the new words. A task ends
//! by `pa_finish`; a model that stops without it is asked once, without tools, for the text (RUN-31), which may say that the task is not done: progress is no result.

use std::sync::Arc;

use pa_domain::TaskId;
use pa_domain::codes::{notice, reason};
use pa_domain::execution::{FinishAsked, ModelCall, ToolCall};
use pa_domain::limits::CALLS_PER_STEP_MAX;
use pa_model::{Answer, Disposition, Tool};
use tokio::time::sleep;

use super::calls::{self, Settling};
use super::failure::Failure;
use super::request::{Stream, request};
use super::work::{Desk, again, bounded, decided_on, fold, reach, recorded, refresh, report_step, tools_tokens};
use super::{End, Turn};
use crate::agent::inner::{self, Audience};
use crate::agent::progress::{Progress, Step};
use crate::agent::prompt::{NOT_DONE, TaskMaterial, assemble_task};
use crate::agent::told::Told;

/// Equal steps after which a model is said to repeat itself: more than any patient look at the same thing.
const EQUAL_STEPS_MAX: usize = 10;
/// Equal lines in one answer after which it is said to write without end.
const EQUAL_LINES_MAX: usize = 40;
/// Pauses between two requests to a model that can't be reached; after the last the task fails. The port has tried each several times by then.
const MODEL_PAUSES_SECS: [u64; 4] = [2, 10, 30, 60];

/// Carries out an execution of a task.
pub(super) async fn attempt(turn: &Turn) -> Result<End, Failure> {
  turn.audience.get_or_init(|| Audience::Task);
  let mut desk = Box::pin(read(turn)).await?;
  let mut stream = Stream::new(turn);
  let staged = stage(&desk).await?;
  let mut task = Task { staged, note: None };
  loop {
    match Box::pin(calls::settle(&mut desk)).await? {
      Settling::Settled => {}
      Settling::Waits => return Ok(End::Waits),
      Settling::Over => return Ok(End::Over),
    }
    if hear(&mut desk).await? {
      task.staged = stage(&desk).await?;
    }
    if let Some(detail) = repeats_itself(&desk.progress) {
      return Ok(End::Looped(detail));
    }
    desk.words_wanted = task.note.is_none() && has_stopped(&desk.progress);
    let (answer, call) = match Box::pin(ask_model(&mut desk, &task, &mut stream)).await? {
      Asked::Answer(answer, call) => (answer, call),
      Asked::Again => continue,
      Asked::Endless(detail) => return Ok(End::Looped(detail)),
    };
    task.note = None;
    if let Some(end) = Box::pin(take(&mut desk, &mut task, answer, *call)).await? {
      return Ok(end);
    }
  }
}

/// What a request needs beside the record.
struct Task {
  /// Where the files of the instructions are.
  staged: Vec<String>,
  /// What the model is told beside the record, once.
  note: Option<&'static str>,
}

enum Asked {
  Answer(Answer, Box<ModelCall>),
  /// With less history.
  Again,
  Endless(String),
}

async fn read(turn: &Turn) -> Result<Desk<'_>, Failure> {
  reach(turn, turn.granted.last_ordinal()).await?;
  let settings = again(|| turn.worker.history.settings(turn.is.agent)).await?;
  let mut progress = recorded(turn).await?;
  fold(&mut progress, &turn.granted);
  if progress.told.is_none() {
    return Err(Failure::new(notice::FAILED, "the record of the task does not say what it is"));
  }
  Ok(Desk::of_task(turn, progress, settings))
}

/// Puts the files of all instructions where the task's tools find them (CAP-38).
async fn stage(desk: &Desk<'_>) -> Result<Vec<String>, Failure> {
  let files: Vec<_> = desk.progress.told.iter().flat_map(Told::files).cloned().collect();
  if files.is_empty() {
    return Ok(Vec::new());
  }
  let turn = desk.turn;
  Ok(again(|| turn.worker.history.stage(turn.is.agent, TaskId::from(turn.is.job), &files)).await?)
}

/// Takes in an instruction that came since the record was read; whether one did.
async fn hear(desk: &mut Desk<'_>) -> Result<bool, Failure> {
  let heard = desk.turn.signals.instructed();
  let known = desk.progress.told.as_ref().map_or(0, |told| told.revision);
  if heard > known {
    refresh(desk, heard).await?;
  }
  Ok(heard > known)
}

/// The model ended its last step without calls, and nothing has come since: what it wrote is made into the result.
fn has_stopped(progress: &Progress) -> bool {
  let Some(told) = &progress.told else { return false };
  progress.steps.last().is_some_and(|step| step.calls.is_empty() && step.knew >= told.revision && step.ordinal > told.since)
}

/// What a model does over and over, since the last instruction or resume (RUN-24).
fn repeats_itself(progress: &Progress) -> Option<String> {
  let since = progress.told.as_ref()?.since;
  let last = progress.steps.last().filter(|step| !step.calls.is_empty())?;
  let asks = |step: &Step| step.calls.iter().map(|call| (call.tool.clone(), call.arguments.clone())).collect::<Vec<_>>();
  let wanted = asks(last);
  let equal = progress.steps.iter().rev().take_while(|step| step.ordinal > since && asks(step) == wanted).count();
  (equal >= EQUAL_STEPS_MAX)
    .then(|| format!("the same calls {equal} times in a row: {}", wanted.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>().join(", ")))
}

/// A line that an answer says over and over.
fn repeated_line(text: &str) -> Option<String> {
  let (mut before, mut times) = ("", 0);
  for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
    times = if line == before { times + 1 } else { 1 };
    before = line;
    if times >= EQUAL_LINES_MAX {
      return Some(format!("the same line {times} times in a row: {}", line.chars().take(200).collect::<String>()));
    }
  }
  None
}

async fn ask_model(desk: &mut Desk<'_>, task: &Task, stream: &mut Stream) -> Result<Asked, Failure> {
  let turn = desk.turn;
  let tools: Arc<[Tool]> = if desk.words_wanted { Arc::from([]) } else { Arc::clone(&desk.tools) };
  let effort = desk.settings.as_ref().map_or_else(Default::default, |settings| settings.effort);
  let mut pauses = MODEL_PAUSES_SECS.into_iter();
  loop {
    let prompt = assemble_task(&TaskMaterial {
      model: desk.model.config(),
      room_percent: desk.history_percent,
      settings: desk.settings.as_ref(),
      now: turn.worker.clock.now(),
      progress: &desk.progress,
      staged: &task.staged,
      note: task.note,
      tools_tokens: tools_tokens(&tools),
      words_wanted: desk.words_wanted,
    });
    pa_store::fail_point!("agent.before_model");
    let answered = request(turn, &*desk.model, prompt, (Arc::clone(&tools), effort), stream).await;
    pa_store::fail_point!("agent.after_model");
    match answered {
      Ok((answer, call)) => return Ok(Asked::Answer(answer, Box::new(call))),
      Err(pa_model::Error::ContextTooLong { .. } | pa_model::Error::RequestTooLarge { .. }) if desk.history_percent > 0 => {
        desk.history_percent /= 4;
        return Ok(Asked::Again);
      }
      Err(pa_model::Error::Oversized { .. }) => return Ok(Asked::Endless("the model wrote without end".to_owned())),
      Err(error) => {
        let pause = pauses.next().filter(|_| matches!(error.disposition(), Disposition::Retry { .. }));
        let Some(pause) = pause else { return Err(Failure::of_model(&error)) };
        tracing::debug!(error = &error as &dyn std::error::Error, pause, "a task waits for its model");
        sleep(std::time::Duration::from_secs(pause)).await;
      }
    }
  }
}

/// Records an answer; `None` when there is more to do.
async fn take(desk: &mut Desk<'_>, task: &mut Task, answer: Answer, call: ModelCall) -> Result<Option<End>, Failure> {
  if desk.words_wanted {
    return words(desk, answer, call).await;
  }
  if let Some(detail) = repeated_line(&answer.text) {
    let ended = report_step(desk, call, answer.text, Vec::new()).await?;
    return Ok(Some(ended.unwrap_or(End::Looped(detail))));
  }
  if let [only] = answer.calls.as_slice()
    && only.name == inner::FINISH
    && let Ok(result) = inner::result_of(&only.arguments)
  {
    return finish(desk, task, result, call).await;
  }
  let call_of = |call: pa_model::ToolCall| ToolCall { provider_id: call.id, tool: call.name, arguments: call.arguments };
  let calls = answer.calls.into_iter().take(CALLS_PER_STEP_MAX).map(call_of).collect();
  report_step(desk, call, answer.text, calls).await
}

async fn finish(desk: &mut Desk<'_>, task: &mut Task, result: String, model_call: ModelCall) -> Result<Option<End>, Failure> {
  let (ended, refused) = decided_on(desk, asked(desk, result, model_call, false)).await?;
  match refused.as_deref() {
    Some(reason::TEXT_TOO_LONG) => {
      task.note = Some("The result was too long and was not taken. Write it into a file, hand that over with pa_deliver, and finish with a summary.");
      Ok(None)
    }
    Some(_) | None => Ok(ended),
  }
}

/// The text that was asked for without tools.
async fn words(desk: &mut Desk<'_>, answer: Answer, model_call: ModelCall) -> Result<Option<End>, Failure> {
  let text = answer.text.trim();
  let (text, incomplete) = match text.strip_prefix(NOT_DONE) {
    Some(rest) => (rest.trim_start_matches([':', ' ', '\n']).to_owned(), true),
    None => (text.to_owned(), false),
  };
  if text.trim().is_empty() {
    return Err(Failure::new(notice::MODEL_SAID_NOTHING, "the model ended without a result, and gave no words when it was asked for them"));
  }
  let (text, cut) = bounded(text);
  Ok(decided_on(desk, asked(desk, text, model_call, incomplete || cut)).await?.0)
}

fn asked(desk: &Desk<'_>, text: String, model_call: ModelCall, incomplete: bool) -> FinishAsked {
  pa_store::fail_point!("agent.before_finish");
  let is = desk.turn.is;
  let seen = desk.progress.told.as_ref().map_or(0, |told| told.revision);
  FinishAsked { job: is.job, execution: is.execution, step: desk.progress.next_step(), seen, model_call, text, incomplete }
}
