//! Records of executions and of the model's steps.

use serde::{Deserialize, Serialize};

use crate::ids::{ConversationId, JobId, MessageId, Timestamp};
use crate::meta::Origin;
use crate::record::records;
use crate::settings::Effort;

/// What kind of work a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobKind {
  Reply,
  Task,
}

/// Why an execution was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LossReason {
  /// Its lease ran out.
  LeaseExpired,
  /// Its node started again.
  NodeRestarted,
  /// The attempt reached its time limit (D3).
  TimeLimit,
}

/// One part of an assembled prompt: what it was, where it came from, and the hash of its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptPart {
  /// Such as `platform-rules`, `clock`, `history`, `message`, `attachment:<id>`.
  pub name: String,
  pub origin: Origin,
  /// SHA-256 of the text, lower-case hex.
  pub sha256: String,
  /// Estimated tokens.
  pub tokens: i64,
}

/// What one model request was made of and what it used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
  pub model: String,
  pub effort: Effort,
  /// The version of the platform's prompt.
  pub prompt_version: String,
  pub parts: Vec<PromptPart>,
  /// Names of the tools that were offered.
  pub tools: Vec<String>,
  /// How it ended: `STOP`, `LENGTH`, `TOOL_CALLS`, `CONTENT_FILTER`.
  pub finish: String,
  /// Requests made until it succeeded.
  pub attempts: i32,
  pub started_ms: Timestamp,
  pub ended_ms: Timestamp,
  pub input_tokens: Option<i64>,
  pub output_tokens: Option<i64>,
  pub cached_tokens: Option<i64>,
  pub reasoning_tokens: Option<i64>,
  /// Millionths of `currency`; unknown stays unknown, never 0.
  pub price_micros: Option<i64>,
  pub currency: Option<String>,
}

/// A tool call that the model's answer asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
  /// The provider's id of the call, to pair the result with.
  pub provider_id: String,
  pub tool: String,
  /// The arguments as the model wrote them: a JSON object.
  pub arguments: String,
}

/// A worker asks to carry out a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionAsked {
  pub job: JobId,
  pub kind: JobKind,
}

/// Someone saw that an execution is no longer alive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionLossReported {
  pub job: JobId,
  pub execution: i32,
  pub reason: LossReason,
}

/// The worker must stop by itself (a graceful stop): back to the queue, not counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionYieldReported {
  pub job: JobId,
  pub execution: i32,
}

/// The work can't be done, and doing it again would not help.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionFailureReported {
  pub job: JobId,
  pub execution: i32,
  /// A notice code such as `MODEL_REFUSED`, `MODEL_UNAVAILABLE`, `MODEL_NOT_CONFIGURED`.
  pub code: String,
  /// For the audit, without secrets; at most 2,000 characters.
  pub detail: String,
}

/// A model answer that asks for tool calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReported {
  pub job: JobId,
  pub execution: i32,
  /// 1, 2, 3 … over all executions of the job.
  pub step: i32,
  pub model_call: ModelCall,
  pub text: String,
  pub calls: Vec<ToolCall>,
}

/// The worker has the final text and asks to finish with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishAsked {
  pub job: JobId,
  pub execution: i32,
  pub step: i32,
  /// The ordinal of the agent's last event about this job that the worker had read when it asked the model.
  pub seen: i64,
  pub model_call: ModelCall,
  pub text: String,
  pub incomplete: bool,
}

/// The permit to work: only for the worker whose ask caused it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionStarted {
  pub job: JobId,
  pub kind: JobKind,
  pub execution: i32,
  pub conversation: ConversationId,
  /// The reply's id; for a task its own.
  pub reply: MessageId,
  /// The limit of this attempt, stored here and never computed again; 0 for a task, which has none (RUN-19).
  pub limit_ms: Timestamp,
}

/// An execution is over without an end of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionLost {
  pub job: JobId,
  pub execution: i32,
  pub reason: LossReason,
  /// Losses that count so far, this one included.
  pub losses: i32,
}

/// The worker gave the job back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionYielded {
  pub job: JobId,
  pub execution: i32,
}

/// The work could not be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionFailed {
  pub job: JobId,
  pub execution: i32,
  pub code: String,
  pub detail: String,
}

/// The owner stopped it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionStopped {
  pub job: JobId,
  pub execution: i32,
}

/// The job waits or is paused, and its execution is over; what it had started is settled by its class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionSuspended {
  pub job: JobId,
  pub execution: i32,
}

/// The work is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionFinished {
  pub job: JobId,
  pub execution: i32,
}

/// A model answer as recorded, once per step: the first wins. The text of a final answer stands in the event that posts it, and here it is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecorded {
  pub job: JobId,
  pub execution: i32,
  pub step: i32,
  pub model_call: ModelCall,
  pub text: String,
  pub calls: Vec<ToolCall>,
}

records! {
  /// Asks and reports of workers.
  "execution" Input { ExecutionAsked = 2, ExecutionLossReported = 1, ExecutionYieldReported = 1, ExecutionFailureReported = 1, StepReported = 1, FinishAsked = 1 }
}

records! {
  /// Facts about executions.
  #[expect(clippy::large_enum_variant, reason = "events lie in vectors and behind shared pointers; a step is as common as any other")]
  "execution" Event {
    ExecutionStarted = 2, ExecutionLost = 1, ExecutionYielded = 1, ExecutionFailed = 1, ExecutionStopped = 1, ExecutionSuspended = 1, ExecutionFinished = 1,
    StepRecorded = 1,
  }
}

impl Input {
  /// The job that the input is about.
  pub fn job(&self) -> JobId {
    match self {
      Self::ExecutionAsked(input) => input.job,
      Self::ExecutionLossReported(input) => input.job,
      Self::ExecutionYieldReported(input) => input.job,
      Self::ExecutionFailureReported(input) => input.job,
      Self::StepReported(input) => input.job,
      Self::FinishAsked(input) => input.job,
    }
  }
}

impl Event {
  /// The job that the event is about.
  pub fn job(&self) -> JobId {
    match self {
      Self::ExecutionStarted(event) => event.job,
      Self::ExecutionLost(event) => event.job,
      Self::ExecutionYielded(event) => event.job,
      Self::ExecutionFailed(event) => event.job,
      Self::ExecutionStopped(event) => event.job,
      Self::ExecutionSuspended(event) => event.job,
      Self::ExecutionFinished(event) => event.job,
      Self::StepRecorded(event) => event.job,
    }
  }
}
