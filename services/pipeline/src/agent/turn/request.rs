//! One request to the model: its prompt, its text as it is written, and its record.

use std::sync::Arc;

use pa_domain::execution::{JobKind, ModelCall};
use pa_domain::{AgentId, MessageId, Timestamp};
use pa_eventlog::pieces::{Piece, Pieces};
use pa_model::{Answer, Delta, Finish, Model, Request, Tool};

use super::Turn;
use crate::agent::models::{recorded, wished};
use crate::agent::prompt::Prompt;

/// Attempts of one execution that are told apart; beyond it nothing more is shown while it is written.
const ATTEMPTS_MAX: i32 = 1_000;

/// The text of the reply as it is written. Every request, and every restart of one, is an attempt of its own.
pub(super) struct Stream {
  pieces: Arc<Pieces>,
  agent: AgentId,
  reply: MessageId,
  execution: i32,
  number: i32,
  offset_utf16: i64,
  /// A task writes no reply: what it wrote is shown step by step.
  shown: bool,
}

impl Stream {
  pub(super) fn new(turn: &Turn) -> Self {
    let is = turn.is;
    let pieces = Arc::clone(&turn.worker.pieces);
    Self { pieces, agent: is.agent, reply: is.reply, execution: is.execution, number: 0, offset_utf16: 0, shown: turn.kind() == JobKind::Reply }
  }

  /// Begins a new attempt; what was shown before goes.
  fn begin(&mut self) {
    let shown = self.offset_utf16 > 0;
    self.number += 1;
    self.offset_utf16 = 0;
    if shown {
      self.publish(String::new());
    }
  }

  fn take(&mut self, delta: Delta) {
    match delta {
      Delta::Text(text) if text.is_empty() => {}
      Delta::Text(text) => {
        let text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
        let units: i64 = text.chars().map(|character| character.len_utf16() as i64).sum();
        self.publish(text);
        self.offset_utf16 += units;
      }
      Delta::Restarted => self.begin(),
    }
  }

  fn publish(&self, text: String) {
    if self.shown && self.number < ATTEMPTS_MAX {
      let attempt = self.execution.saturating_mul(ATTEMPTS_MAX).saturating_add(self.number);
      self.pieces.publish(self.agent, &Piece { message: self.reply, attempt, offset_utf16: self.offset_utf16, text: text.into() });
    }
  }
}

/// Asks the model once (with the port's own retries), showing its text as it comes.
pub(super) async fn request(
  turn: &Turn,
  model: &dyn Model,
  prompt: Prompt,
  offered: (Arc<[Tool]>, pa_domain::settings::Effort),
  stream: &mut Stream,
) -> Result<(Answer, ModelCall), pa_model::Error> {
  let (tools, effort) = offered;
  let effort = model.config().effort_for(wished(effort));
  let request = Request { messages: prompt.messages, tools, effort, deadline: turn.deadline, ..Request::default() };
  stream.begin();
  let started = turn.worker.clock.now();
  let mut sink = |delta| stream.take(delta);
  let answer = model.stream(&request, &mut sink).await?;
  let call = ModelCall {
    parts: prompt.parts.recorded(),
    prompt_version: prompt.version.to_owned(),
    tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
    effort: recorded(effort),
    ..record(model, &answer, (started, turn.worker.clock.now()))
  };
  Ok((answer, call))
}

fn record(model: &dyn Model, answer: &Answer, (started_ms, ended_ms): (Timestamp, Timestamp)) -> ModelCall {
  let config = model.config();
  let price_micros = config.price_micros(&answer.usage);
  let currency = price_micros.and_then(|_| config.prices.as_ref().map(|prices| prices.currency.clone()));
  ModelCall {
    model: answer.model.clone().unwrap_or_else(|| config.name.clone()),
    effort: pa_domain::settings::Effort::Fast,
    prompt_version: String::new(),
    parts: Vec::new(),
    tools: Vec::new(),
    finish: match answer.finish {
      Finish::Stop => "STOP",
      Finish::Length => "LENGTH",
      Finish::ToolCalls => "TOOL_CALLS",
      Finish::ContentFilter => "CONTENT_FILTER",
    }
    .to_owned(),
    attempts: i32::try_from(answer.attempts).unwrap_or(i32::MAX),
    started_ms,
    ended_ms,
    input_tokens: answer.usage.input,
    output_tokens: answer.usage.output,
    cached_tokens: answer.usage.cached,
    reasoning_tokens: answer.usage.reasoning,
    price_micros,
    currency,
  }
}
