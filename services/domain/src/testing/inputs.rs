//! Inputs as tests send them, with what doesn't matter filled in.

use uuid::Uuid;

use crate::account::{AccountAddAsked, Role};
use crate::agent::{AgentCreateAsked, AgentEraseAsked};
use crate::call::{CallAsked, CallOutcomeReported, CallReconcileGiven, Class, Outcome, ResultPart};
use crate::conversation::{Author, FileRef, MessageGiven, MessageReceived, MessageRetryAsked, ReplyStopAsked};
use crate::event::Input;
use crate::execution::{
  ExecutionAsked, ExecutionFailureReported, ExecutionLossReported, ExecutionYieldReported, FinishAsked, JobKind, LossReason, ModelCall, StepReported, ToolCall,
};
use crate::ids::{self, CallId, ConversationId, JobId, TimerId, Timestamp};
use crate::log::{HeldInput, QuarantineReleaseAsked};
use crate::meta::Origin;
use crate::settings::Effort;
use crate::timer::TimerFired;

/// Makes an account's agent.
pub fn create(owner_name: &str) -> Input {
  AgentCreateAsked { owner_name: owner_name.to_owned() }.into()
}

/// Adds an account.
pub fn add_account(name: &str) -> Input {
  AccountAddAsked { name: name.to_owned(), role: Role::Member }.into()
}

/// Erases an agent.
pub fn erase(confirmation: &str) -> Input {
  AgentEraseAsked { confirmation: confirmation.to_owned() }.into()
}

/// Releases held inputs.
pub fn release(drop_first: bool) -> Input {
  QuarantineReleaseAsked { drop_first }.into()
}

/// The owner writes in the main conversation.
pub fn message(text: &str) -> Input {
  MessageGiven { conversation: None, text: text.to_owned(), attachments: Vec::new() }.into()
}

/// The owner writes in a conversation.
pub fn message_in(conversation: ConversationId, text: &str) -> Input {
  MessageGiven { conversation: Some(conversation), text: text.to_owned(), attachments: Vec::new() }.into()
}

/// A test's channel conversation.
pub fn channel(number: u64) -> ConversationId {
  ConversationId(Uuid::from_u128((0xc4a7_u128 << 112) | u128::from(number)))
}

/// Someone writes in a channel conversation.
pub fn received(conversation: ConversationId, text: &str) -> MessageReceived {
  MessageReceived {
    conversation,
    connection: "lark-1".to_owned(),
    title: "Grace".to_owned(),
    author: Author::Person,
    author_name: "Grace".to_owned(),
    text: text.to_owned(),
    attachments: Vec::new(),
  }
}

/// A file on a message.
pub fn file(name: &str) -> FileRef {
  FileRef {
    id: "0b5f".to_owned(),
    name: name.to_owned(),
    media_type: "text/plain".to_owned(),
    size_bytes: 5,
    sha256: "00".repeat(32),
    blob: "b1".to_owned(),
    origin: Origin::ThirdParty,
  }
}

/// The owner stops a reply that was shown this far.
pub fn stop(job: JobId, shown: &str) -> Input {
  ReplyStopAsked { message: job.into(), shown: shown.to_owned() }.into()
}

/// The owner wants an answer after all.
pub fn retry(job: JobId) -> Input {
  MessageRetryAsked { message: job.into() }.into()
}

/// A worker asks for a job.
pub fn ask(job: JobId) -> Input {
  ExecutionAsked { job, kind: JobKind::Reply }.into()
}

/// An execution's lease ran out.
pub fn loss(job: JobId, execution: i32) -> Input {
  ExecutionLossReported { job, execution, reason: LossReason::LeaseExpired }.into()
}

/// A worker gives a job back.
pub fn give_back(job: JobId, execution: i32) -> Input {
  ExecutionYieldReported { job, execution }.into()
}

/// A worker can't do a job.
pub fn failure(job: JobId, execution: i32, code: &str) -> Input {
  ExecutionFailureReported { job, execution, code: code.to_owned(), detail: "status 400".to_owned() }.into()
}

/// A request to a model.
pub fn model_call() -> ModelCall {
  ModelCall {
    model: "rehearsal".to_owned(),
    effort: Effort::Fast,
    prompt_version: "1".to_owned(),
    parts: Vec::new(),
    tools: Vec::new(),
    finish: "STOP".to_owned(),
    attempts: 1,
    started_ms: Timestamp(1),
    ended_ms: Timestamp(2),
    input_tokens: Some(10),
    output_tokens: Some(5),
    cached_tokens: None,
    reasoning_tokens: None,
    price_micros: None,
    currency: None,
  }
}

/// A model answer that asks for calls of these tools.
pub fn step(job: JobId, execution: i32, step: i32, tools: &[&str]) -> Input {
  let call = |tool: &&str| ToolCall { provider_id: format!("call-{tool}"), tool: (*tool).to_owned(), arguments: "{}".to_owned() };
  StepReported { job, execution, step, model_call: model_call(), text: String::new(), calls: tools.iter().map(call).collect() }.into()
}

/// A final answer, of a worker that had read up to ordinal `seen`.
pub fn finish(job: JobId, execution: i32, step: i32, seen: i64, text: &str) -> FinishAsked {
  FinishAsked { job, execution, step, seen, model_call: model_call(), text: text.to_owned(), incomplete: false }
}

/// A worker asks for the permit to make a call of a tool; it has read everything.
pub fn call(job: JobId, execution: i32, at: (i32, i32), tool: &str, class: Class) -> CallAsked {
  let (step, index) = at;
  CallAsked {
    job,
    execution,
    step,
    index,
    call: ids::call(job, step, index),
    tool: tool.to_owned(),
    class,
    action: "{}".to_owned(),
    limit_millis: 10_000,
    seen: i64::MAX,
    gate: None,
  }
}

/// How a call ended.
pub fn outcome(job: JobId, execution: i32, call: CallId, outcome: Outcome) -> CallOutcomeReported {
  let parts = match outcome {
    Outcome::Returned | Outcome::Failed => vec![ResultPart { origin: Origin::Tool, text: "result".to_owned(), blob: None }],
    Outcome::Unknown => Vec::new(),
  };
  CallOutcomeReported { job, execution, call, outcome, code: String::new(), parts }
}

/// The owner's word about a call.
pub fn reconcile(job: JobId, call: CallId, executed: bool) -> Input {
  CallReconcileGiven { job, call, executed }.into()
}

/// A job's timer is due.
pub fn fire(timer: TimerId, job: JobId) -> Input {
  TimerFired { timer, thing: Some(job.into()) }.into()
}

/// An input as it is held.
pub fn held(position: i64) -> HeldInput {
  HeldInput {
    position,
    id: ids::RecordId(super::input_id(position.unsigned_abs())),
    type_name: "pa.conversation.MessageGiven.v1".to_owned(),
    meta: vec![1, 2, 3],
    value: vec![4, 5, 6],
  }
}
