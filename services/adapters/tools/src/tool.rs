//! What a tool is.

use std::time::Duration;

use async_trait::async_trait;
use pa_domain::call::{Class, Gate, Outcome, ResultPart};
use pa_domain::{AgentId, CallId, ConversationId, JobId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Where a tool is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
  /// While a message is answered.
  Conversation,
  /// In a task.
  Task,
  /// In a heartbeat check.
  Heartbeat,
}

/// For whom a call is made.
#[derive(Clone, Copy, Debug)]
pub struct Context {
  pub agent: AgentId,
  pub job: JobId,
  pub conversation: ConversationId,
  pub execution: i32,
  /// The same in every execution: an idempotency key for what the call does.
  pub call: CallId,
}

/// A call without a result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  /// The model wrote arguments that the tool can't use; it is told why.
  #[error("the arguments are not usable: {reason}")]
  Arguments { reason: String },
  /// It failed, and certainly had no effect beyond what it says.
  #[error("{code}: {reason}")]
  Failed { code: &'static str, reason: String },
  /// Nobody can tell whether the effect happened.
  #[error("the outcome is not known: {reason}")]
  Unknown { reason: String },
}

impl Error {
  /// What is reported of the call.
  pub fn outcome(&self) -> Outcome {
    match self {
      Self::Arguments { .. } | Self::Failed { .. } => Outcome::Failed,
      Self::Unknown { .. } => Outcome::Unknown,
    }
  }

  /// The code of the failure in the record; empty for an unknown outcome.
  pub fn code(&self) -> &'static str {
    match self {
      Self::Arguments { .. } => "ARGUMENTS_INVALID",
      Self::Failed { code, .. } => code,
      Self::Unknown { .. } => "",
    }
  }
}

/// A tool.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
  /// Its name, `pa_<noun or verb>`: what the model writes, and what stands in the record.
  fn name(&self) -> &'static str;

  /// What it does and when to use it, for the model.
  fn description(&self) -> &'static str;

  /// The JSON schema of its arguments: an object.
  fn parameters(&self) -> Value;

  /// What may be done about a call of unknown outcome (D13).
  fn class(&self) -> Class;

  /// How long one call may take.
  fn time_limit(&self) -> Duration;

  /// Where it is offered.
  fn places(&self) -> &'static [Place];

  /// What the owner's approval of an external call is about: the worker puts it on the card, with the action. `None` for a tool that is not external; an external
  /// one without it can't be made in a task.
  ///
  /// # Errors
  /// The arguments can't be used.
  async fn gate(&self, _context: &Context, _arguments: &Map<String, Value>) -> Result<Option<Gate>, Error> {
    Ok(None)
  }

  /// Makes one call. Dropping the future ends it.
  ///
  /// # Errors
  /// [`Error`] says what is known of the effect.
  async fn call(&self, context: &Context, arguments: &Map<String, Value>) -> Result<Vec<ResultPart>, Error>;
}

/// Reads a tool's arguments into its own struct, which denies unknown fields.
///
/// # Errors
/// [`Error::Arguments`] with what the model can mend.
pub fn arguments<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, Error> {
  serde_json::from_value(Value::Object(arguments.clone())).map_err(|error| Error::Arguments { reason: error.to_string() })
}
