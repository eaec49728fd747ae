//! Facts behind the indicator.

use async_graphql::{ID, SimpleObject};
use pa_projections::indicator::{self as read, Failing};

use super::scalars::Position;

/// Facts behind the indicator; the page adds its own read positions.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Indicator {
  /// Something waits for the owner.
  pub needs_input: bool,
  /// The agent is at work.
  pub running: bool,
  /// The newest failure, as long as what failed has not gone on.
  pub last_failure: Option<IndicatorFailure>,
  /// The newest result of a task, as long as the task has not gone on.
  pub last_result: Option<IndicatorResult>,
}

/// A failure and where in the log it stands: of a message that was not answered, or of a task.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct IndicatorFailure {
  /// The message that was not answered.
  pub message_id: Option<ID>,
  /// The task that could not be done.
  pub task_id: Option<ID>,
  pub position: Position,
}

/// A result and where in the log it stands.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct IndicatorResult {
  pub task_id: ID,
  pub position: Position,
  /// The reply that tells it stands in the conversation.
  pub delivered: bool,
}

impl From<read::Indicator> for Indicator {
  fn from(row: read::Indicator) -> Self {
    let failure = |failure: read::Failure| {
      let (message_id, task_id) = match failure.what {
        Failing::Message(message) => (Some(ID::from(message)), None),
        Failing::Task(task) => (None, Some(ID::from(task))),
      };
      IndicatorFailure { message_id, task_id, position: Position::of(failure.ordinal) }
    };
    let result =
      |result: read::LastResult| IndicatorResult { task_id: ID::from(result.task), position: Position::of(result.ordinal), delivered: result.delivered };
    Self { needs_input: row.needs_input, running: row.running, last_failure: row.last_failure.map(failure), last_result: row.last_result.map(result) }
  }
}
