//! Facts behind the indicator.

use async_graphql::{ID, SimpleObject};
use pa_projections::indicator as read;

use super::scalars::Position;

/// Facts behind the indicator; the page adds its own read positions.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Indicator {
  /// Something waits for the owner.
  pub needs_input: bool,
  /// The agent is at work.
  pub running: bool,
  /// The newest failure.
  pub last_failure: Option<IndicatorFailure>,
}

/// A failure and where in the log it stands.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct IndicatorFailure {
  /// The message that was not answered.
  pub message_id: ID,
  pub position: Position,
}

impl From<read::Indicator> for Indicator {
  fn from(row: read::Indicator) -> Self {
    let failure = |failure: read::Failure| IndicatorFailure { message_id: ID::from(failure.message), position: Position::of(failure.ordinal) };
    Self { needs_input: row.needs_input, running: row.running, last_failure: row.last_failure.map(failure) }
  }
}
