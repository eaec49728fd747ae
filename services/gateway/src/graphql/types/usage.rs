//! What model requests used and cost.

use std::sync::Arc;

use async_graphql::{Result, SimpleObject};
use pa_domain::JobId;
use pa_projections::usage::{self as read, Span, Sum};

use crate::graphql::env::Env;

/// What was used together. What a provider did not say is counted as such and is never 0.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Usage {
  /// Model requests that gave an answer.
  pub steps: i64,
  /// Of the steps whose tokens are known.
  pub input_tokens: i64,
  pub output_tokens: i64,
  pub cached_tokens: i64,
  pub reasoning_tokens: i64,
  /// Steps whose tokens nobody knows.
  pub uncounted_steps: i64,
  /// Steps whose price nobody knows.
  pub unpriced_steps: i64,
  pub costs: Vec<Cost>,
}

/// What was paid in one currency.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Cost {
  /// ISO 4217.
  pub currency: String,
  /// Millionths of the currency.
  pub micros: i64,
}

impl Usage {
  pub(crate) async fn of_job(env: &Arc<Env>, job: JobId) -> Result<Self> {
    Self::of(env, Span { job: Some(job), ..Span::default() }).await
  }

  pub(crate) async fn of(env: &Arc<Env>, span: Span) -> Result<Self> {
    read::sum(&env.edge.reads, env.viewer.account, span).await.map(Self::from).map_err(|error| env.failed(error))
  }
}

impl From<Sum> for Usage {
  fn from(sum: Sum) -> Self {
    Self {
      steps: sum.steps,
      input_tokens: sum.input_tokens,
      output_tokens: sum.output_tokens,
      cached_tokens: sum.cached_tokens,
      reasoning_tokens: sum.reasoning_tokens,
      uncounted_steps: sum.uncounted_steps,
      unpriced_steps: sum.unpriced_steps,
      costs: sum.costs.into_iter().map(|cost| Cost { currency: cost.currency, micros: cost.micros }).collect(),
    }
  }
}
