//! What the turn of a message or a result does: reads what the prompt needs, settles open calls, asks the model, records what it said, until the reply stands.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{try_join, try_join4};
use pa_domain::codes::{notice, reason};
use pa_domain::conversation::Author;
use pa_domain::execution::{self, FinishAsked, JobKind, ModelCall, StepReported, ToolCall};
use pa_domain::limits::{CALLS_PER_STEP_MAX, MESSAGE_TEXT_BYTES_MAX};
use pa_domain::task::TOOLS_OF_A_PERSON;
use pa_domain::{Event, MessageId};
use pa_eventlog::reader::Decision;
use pa_model::{Answer, Disposition, Finish, Model, Tool, estimate_tokens};
use pa_projections::conversation::{EntryKind, Role, Turn as Said};
use pa_projections::settings::Settings;
use pa_tools::Place;
use tokio::time::{Instant, sleep, sleep_until};

use super::calls::{self, Settling};
use super::exact::keeps_links_and_numbers;
use super::failure::Failure;
use super::plan::offers;
use super::request::{Stream, request};
use super::{End, Turn};
use crate::agent::asks::refusal;
use crate::agent::inner::{self, Audience};
use crate::agent::ports::{PortError, TaskLine};
use crate::agent::progress::Progress;
use crate::agent::prompt::{File, Handling, Material, TURNS_MAX, assemble, handling, history_tokens_max, turn_tokens};

/// How long one wait for the read model takes before it is said that it is behind.
const READ_MODEL_WAIT: Duration = Duration::from_secs(2);
/// Pause before something is asked for again that can't be reached.
const AGAIN_AFTER: Duration = Duration::from_millis(300);
/// A failure of the model so near the attempt's end is the end of the attempt.
const NEAR_END: Duration = Duration::from_millis(100);

/// Tasks in a prompt: what a person has going on; the rest is listed by a tool.
const TASKS_MAX: u32 = 20;

/// Steps of one reply at most: no work is cut by it (RUN-19, RUN-20), since no model takes so many within an attempt's four minutes unless it runs in circles; then
/// each step would make record and prompt longer and cost money.
pub(in crate::agent) const STEPS_MAX: i32 = 500;

/// What a turn has read and found out so far.
pub(super) struct Desk<'t> {
  pub(super) turn: &'t Turn,
  pub(super) progress: Progress,
  pub(super) settings: Option<Settings>,
  pub(super) model: Arc<dyn Model>,
  said: Vec<Said>,
  files: Vec<File>,
  tasks: Vec<TaskLine>,
  pub(super) tools: Arc<[Tool]>,
  /// Percent of the window for history; less after the model found the prompt too long.
  pub(super) history_percent: u8,
  /// The last answer had no words, or of a task no end: the next one is asked for without tools.
  pub(super) words_wanted: bool,
}

/// Carries out a turn.
pub(super) async fn attempt(turn: &Turn) -> Result<End, Failure> {
  let mut desk = Box::pin(read(turn)).await?;
  let mut stream = Stream::new(turn);
  loop {
    match Box::pin(calls::settle(&mut desk)).await? {
      Settling::Settled => {}
      Settling::Waits => return Ok(End::Waits),
      Settling::Over => return Ok(End::Over),
    }
    if desk.progress.next_step() > STEPS_MAX {
      return Err(Failure::new(notice::TOO_MANY_STEPS, format!("the model came to no answer in {STEPS_MAX} steps")));
    }
    let Some((answer, call)) = Box::pin(ask_model(&mut desk, &mut stream)).await? else { continue };
    let end = if answer.is_blank() { blank(&mut desk, &answer, call).await? } else { Box::pin(record(&mut desk, answer, call)).await? };
    if let Some(end) = end {
      return Ok(end);
    }
  }
}

/// Reads what the prompt needs, from a read model that has everything before this execution's start, and returns when it has the start: what the model says is shown on
/// the row that it made.
async fn read(turn: &Turn) -> Result<Desk<'_>, Failure> {
  let (worker, is) = (&turn.worker, turn.is);
  let material = async {
    reach(turn, turn.granted.ordinal - 1).await?;
    // The settings choose the model, and are read beside the history: that is as long as any model takes it, and a prompt takes its own model's share.
    let tokens_max = history_tokens_max(worker.models.context_tokens_max(), worker.config.history_percent);
    let earlier = async { if is.execution > 1 { recorded(turn).await } else { Ok(Progress::new(is.job)) } };
    let settings = again(|| worker.history.settings(is.agent));
    let tasks = again(|| worker.history.tasks(is.agent, TASKS_MAX));
    try_join4(earlier, settings, read_turns(turn, tokens_max), tasks).await
  };
  let ((mut progress, settings, said, tasks), ()) = try_join(material, reach(turn, turn.granted.last_ordinal())).await?;
  let model = model(turn, settings.as_ref());
  fold(&mut progress, &turn.granted);
  let audience = match said.first().map(|said| (said.message.kind, said.message.role)) {
    Some((EntryKind::Report, _)) => Audience::Result,
    Some((_, Role::Person)) => Audience::Person,
    Some(_) | None => Audience::Owner,
  };
  turn.audience.get_or_init(|| audience);
  let tasks = match audience {
    Audience::Owner => tasks,
    Audience::Person | Audience::Result | Audience::Task => Vec::new(),
  };
  let files = read_files(turn, &said, model.config().sees_pictures).await;
  Ok(Desk { turn, progress, settings, model, said, files, tasks, tools: tools(turn), history_percent: worker.config.history_percent, words_wanted: false })
}

impl<'t> Desk<'t> {
  /// The result that is to be told, if the turn tells one.
  fn result(&self) -> Option<&str> {
    let answered = self.said.first().filter(|_| self.turn.audience() == Audience::Result)?;
    Some(answered.message.text.as_str())
  }

  /// The desk of a task.
  pub(super) fn of_task(turn: &'t Turn, progress: Progress, settings: Option<Settings>) -> Self {
    let (model, history_percent) = (model(turn, settings.as_ref()), turn.worker.config.history_percent);
    let (said, files, tasks) = (Vec::new(), Vec::new(), Vec::new());
    // The log permits no others to a task that somebody else than the owner caused (D35).
    let is_persons = progress.told.as_ref().is_some_and(|told| told.author == Author::Person);
    let may_have = |tool: &Tool| !is_persons || tool.name == inner::FINISH || TOOLS_OF_A_PERSON.contains(&tool.name.as_str());
    let tools = tools(turn).iter().filter(|tool| may_have(tool)).cloned().collect();
    Self { turn, progress, settings, model, said, files, tasks, tools, history_percent, words_wanted: false }
  }
}

fn model(turn: &Turn, settings: Option<&Settings>) -> Arc<dyn Model> {
  Arc::clone(turn.worker.models.get(settings.map_or("", |settings| settings.model.as_str())))
}

/// What is offered, fixed for the execution (CAP-24).
fn tools(turn: &Turn) -> Arc<[Tool]> {
  let tool =
    |tool: &Arc<dyn pa_tools::Tool>| Tool { name: tool.name().to_owned(), description: tool.description().to_owned(), parameters: Arc::new(tool.parameters()) };
  let places = [Place::Conversation, Place::Task];
  let given: Vec<Tool> = places
    .into_iter()
    .filter(|place| (*place == Place::Task) == (turn.kind() == JobKind::Task))
    .flat_map(|place| turn.worker.tools.at(place))
    .filter(|tool| offers(turn, tool.as_ref()))
    .map(tool)
    .collect();
  given.into_iter().chain(inner::offered(turn.audience())).collect()
}

pub(super) async fn reach(turn: &Turn, ordinal: i64) -> Result<(), PortError> {
  while !again(|| turn.worker.history.reached(turn.is.agent, ordinal, READ_MODEL_WAIT)).await? {
    tracing::debug!(agent.id = %turn.is.agent, ordinal, "the read model is behind a running turn");
  }
  Ok(())
}

pub(super) async fn recorded(turn: &Turn) -> Result<Progress, PortError> {
  let events = again(|| turn.worker.history.record(turn.is.agent, turn.is.job)).await?;
  let mut progress = Progress::new(turn.is.job);
  for recorded in events {
    progress.fold(recorded.core().ordinal, &recorded.event);
  }
  Ok(progress)
}

/// Folds a decision of this turn's own into what is known.
pub(super) fn fold(progress: &mut Progress, decision: &Decision) {
  for recorded in decision.events.iter() {
    progress.fold(recorded.core().ordinal, &recorded.event);
  }
}

async fn read_turns(turn: &Turn, tokens_max: usize) -> Result<Vec<Said>, PortError> {
  let upto = MessageId::from(turn.is.job);
  loop {
    let (mut left, mut kept) = (tokens_max, 0);
    let mut keep = |said: &Said| {
      // The message that is answered is always in, and is no history.
      let tokens = if kept == 0 { 0 } else { turn_tokens(said) };
      let fits = tokens <= left && kept <= TURNS_MAX;
      left = left.saturating_sub(tokens);
      kept += 1;
      fits
    };
    match turn.worker.history.turns(turn.is.agent, upto, &mut keep).await {
      Err(PortError::Away(_)) => sleep(AGAIN_AFTER).await,
      other => return other,
    }
  }
}

async fn read_files(turn: &Turn, said: &[Said], sees_pictures: bool) -> Vec<File> {
  let attachments = said.first().map_or(&[][..], |said| &said.message.attachments);
  let mut files = Vec::with_capacity(attachments.len());
  for attachment in attachments {
    let (handling, bytes_max) = handling(attachment, sees_pictures);
    let bytes = match handling {
      Handling::Text | Handling::Picture => {
        let read = again(|| turn.worker.history.file(turn.is.agent, &attachment.blob, bytes_max)).await;
        read.unwrap_or_else(|error| {
          tracing::warn!(agent.id = %turn.is.agent, file.id = attachment.id, error = &error as &dyn std::error::Error, "a file can't be opened");
          None
        })
      }
      Handling::Unseen | Handling::TooLarge | Handling::NotYet => None,
    };
    files.push(File { attachment: attachment.clone(), handling, bytes });
  }
  files
}

/// Asks as long as it can't be reached; the turn's own end breaks it off.
pub(super) async fn again<T, F: Future<Output = Result<T, PortError>>>(ask: impl Fn() -> F) -> Result<T, PortError> {
  loop {
    match ask().await {
      Err(PortError::Away(error)) => tracing::debug!(error = &*error as &dyn std::error::Error, "a turn waits for what it can't reach"),
      other => return other,
    }
    sleep(AGAIN_AFTER).await;
  }
}

/// Asks the model; `None` when it is to be asked anew with less history.
async fn ask_model(desk: &mut Desk<'_>, stream: &mut Stream) -> Result<Option<(Answer, ModelCall)>, Failure> {
  let turn = desk.turn;
  let tools: Arc<[Tool]> = if desk.words_wanted { Arc::from([]) } else { Arc::clone(&desk.tools) };
  let prompt = assemble(&Material {
    model: desk.model.config(),
    history_percent: desk.history_percent,
    settings: desk.settings.as_ref(),
    now: turn.worker.clock.now(),
    turns: &desk.said,
    files: &desk.files,
    tasks: &desk.tasks,
    steps: &desk.progress.steps,
    tools_tokens: tools_tokens(&tools),
    words_wanted: desk.words_wanted,
  });
  let effort = desk.settings.as_ref().map_or_else(Default::default, |settings| settings.effort);
  pa_store::fail_point!("agent.before_model");
  let answered = request(turn, &*desk.model, prompt, (tools, effort), stream).await;
  pa_store::fail_point!("agent.after_model");
  match answered {
    Ok(answered) => Ok(Some(answered)),
    Err(pa_model::Error::ContextTooLong { .. } | pa_model::Error::RequestTooLarge { .. }) if desk.history_percent > 0 => {
      desk.history_percent /= 4;
      Ok(None)
    }
    Err(error) => {
      if let Some(deadline) = turn.deadline
        && matches!(error.disposition(), Disposition::Retry { .. })
        && Instant::now() + NEAR_END >= deadline
      {
        sleep_until(deadline + NEAR_END).await;
      }
      Err(Failure::of_model(&error))
    }
  }
}

/// What offered tools take of the window.
pub(super) fn tools_tokens(tools: &[Tool]) -> usize {
  tools.iter().map(|tool| estimate_tokens(&tool.description) + estimate_tokens(&tool.parameters.to_string())).sum()
}

/// An answer without words and calls: recorded, and asked for once more without tools (BB-29).
async fn blank(desk: &mut Desk<'_>, answer: &Answer, model_call: ModelCall) -> Result<Option<End>, Failure> {
  let ended = report_step(desk, model_call, String::new(), Vec::new()).await?;
  if ended.is_some() {
    return Ok(ended);
  }
  if answer.finish == Finish::ContentFilter {
    return Err(Failure::new(notice::MODEL_REFUSED, "the model's filter left nothing of its answer"));
  }
  if std::mem::replace(&mut desk.words_wanted, true) {
    return Err(Failure::new(notice::MODEL_SAID_NOTHING, "the model gave no words, also without tools"));
  }
  Ok(None)
}

/// Records an answer; `None` when there is more to do.
async fn record(desk: &mut Desk<'_>, answer: Answer, model_call: ModelCall) -> Result<Option<End>, Failure> {
  // Without tools there is nothing to call; what a model asks for then is left out.
  if answer.calls.is_empty() || desk.words_wanted {
    return if answer.text.trim().is_empty() { blank(desk, &answer, model_call).await } else { finish(desk, answer, model_call).await };
  }
  let call = |call: pa_model::ToolCall| ToolCall { provider_id: call.id, tool: call.name, arguments: call.arguments };
  let calls = answer.calls.into_iter().take(CALLS_PER_STEP_MAX).map(call).collect();
  report_step(desk, model_call, answer.text, calls).await
}

pub(super) async fn report_step(desk: &mut Desk<'_>, model_call: ModelCall, text: String, calls: Vec<ToolCall>) -> Result<Option<End>, Failure> {
  let is = desk.turn.is;
  let step = StepReported { job: is.job, execution: is.execution, step: desk.progress.next_step(), model_call, text: bounded(text).0, calls };
  decided(desk, step).await
}

async fn finish(desk: &mut Desk<'_>, answer: Answer, model_call: ModelCall) -> Result<Option<End>, Failure> {
  let is = desk.turn.is;
  let (text, cut) = bounded(answer.text);
  let incomplete = cut || matches!(answer.finish, Finish::Length | Finish::ContentFilter);
  let (text, incomplete) = match desk.result() {
    // What was left out or changed is made good by the result itself (REP-25).
    Some(result) if incomplete || !keeps_links_and_numbers(result, &text) => (result.to_owned(), false),
    Some(_) | None => (text, incomplete),
  };
  let step = desk.progress.next_step();
  pa_store::fail_point!("agent.before_finish");
  decided(desk, FinishAsked { job: is.job, execution: is.execution, step, seen: desk.progress.seen, model_call, text, incomplete }).await
}

/// Appends what the model said and takes in what was decided on it.
async fn decided(desk: &mut Desk<'_>, input: impl Into<pa_domain::Input>) -> Result<Option<End>, Failure> {
  match decided_on(desk, input).await? {
    (None, Some(refused)) if refused == reason::TEXT_TOO_LONG => Err(Failure::new(notice::FAILED, "the reply is too long")),
    (end, _) => Ok(end),
  }
}

/// The same, with the reason if it was refused and there is something to do about it.
pub(super) async fn decided_on(desk: &mut Desk<'_>, input: impl Into<pa_domain::Input>) -> Result<(Option<End>, Option<String>), Failure> {
  let turn = desk.turn;
  let Some(decision) = turn.worker.asks.ask(turn.is.agent, turn.is.chain, input).await? else { return Ok((Some(End::Over), None)) };
  fold(&mut desk.progress, &decision);
  let finished = decision.events.iter().any(|recorded| matches!(&recorded.event, Event::Execution(execution::Event::ExecutionFinished(_))));
  if finished {
    return Ok((Some(End::Finished), None));
  }
  let refused = refusal(&decision);
  match refused.as_deref() {
    None | Some(reason::TEXT_TOO_LONG) => Ok((None, refused)),
    // Something was recorded that this turn has not seen, or a call is open: it goes on from the record.
    Some(reason::FINISH_TOO_EARLY | reason::STEP_RECORDED | reason::STEP_OUT_OF_ORDER) => {
      refresh(desk, decision.last_ordinal()).await?;
      Ok((None, refused))
    }
    Some(refused @ reason::VALUE_INVALID) => Err(Failure::new(notice::FAILED, format!("what the model said was refused: {refused}"))),
    Some(reason::TEXT_EMPTY) => Err(Failure::new(notice::MODEL_SAID_NOTHING, "the model's words were none")),
    // The execution is over, or the agent is set aside: either way nothing of this turn counts any more.
    Some(_) => Ok((Some(End::Over), None)),
  }
}

/// Reads the record anew, from a read model that has everything up to `ordinal`.
pub(super) async fn refresh(desk: &mut Desk<'_>, ordinal: i64) -> Result<(), PortError> {
  reach(desk.turn, ordinal).await?;
  desk.progress = recorded(desk.turn).await?;
  fold(&mut desk.progress, &desk.turn.granted);
  Ok(())
}

/// Text as it can be stored, and whether something was cut off.
pub(super) fn bounded(text: String) -> (String, bool) {
  let text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
  let kept = text.floor_char_boundary(MESSAGE_TEXT_BYTES_MAX);
  if kept == text.len() { (text, false) } else { (text[..kept].to_owned(), true) }
}
