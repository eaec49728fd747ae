//! From a fact to a line of usage. Pure.

use pa_domain::execution;
use pa_domain::settings::Effort;
use pa_domain::{Event, JobId, Meta, Timestamp};

/// What one recorded step used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
  pub job: JobId,
  pub step: i32,
  pub execution: i32,
  pub model: String,
  pub effort: Effort,
  pub finish: String,
  pub attempts: i32,
  pub started: Timestamp,
  pub ended: Timestamp,
  pub input_tokens: Option<i64>,
  pub output_tokens: Option<i64>,
  pub cached_tokens: Option<i64>,
  pub reasoning_tokens: Option<i64>,
  pub price_micros: Option<i64>,
  pub currency: Option<String>,
  pub at: Timestamp,
  pub changed: i64,
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<UsageRow> {
  match event {
    Event::Execution(execution::Event::StepRecorded(recorded)) => {
      let call = &recorded.model_call;
      Some(UsageRow {
        job: recorded.job,
        step: recorded.step,
        execution: recorded.execution,
        model: call.model.clone(),
        effort: call.effort,
        finish: call.finish.clone(),
        attempts: call.attempts,
        started: call.started_ms,
        ended: call.ended_ms,
        input_tokens: call.input_tokens,
        output_tokens: call.output_tokens,
        cached_tokens: call.cached_tokens,
        reasoning_tokens: call.reasoning_tokens,
        price_micros: call.price_micros,
        currency: call.currency.clone(),
        at: meta.at,
        changed: meta.ordinal,
      })
    }
    Event::Execution(
      execution::Event::ExecutionStarted(_)
      | execution::Event::ExecutionLost(_)
      | execution::Event::ExecutionYielded(_)
      | execution::Event::ExecutionFailed(_)
      | execution::Event::ExecutionStopped(_)
      | execution::Event::ExecutionSuspended(_)
      | execution::Event::ExecutionFinished(_),
    )
    | Event::Account(_)
    | Event::Agent(_)
    | Event::Call(_)
    | Event::Conversation(_)
    | Event::Log(_)
    | Event::Settings(_)
    | Event::Task(_)
    | Event::Timer(_) => None,
  }
}
