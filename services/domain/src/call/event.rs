//! Records of tool calls.

use serde::{Deserialize, Serialize};

use crate::ids::{ActionId, CallId, JobId, Timestamp};
use crate::meta::Origin;
use crate::record::records;

/// What may be done about a call whose outcome is not known (D13); declared by the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Class {
  /// Reads, and internal tools with the same key: may be repeated.
  Repeatable,
  /// Commands and workspace writes in the agent's own computer: never repeated by itself.
  Contained,
  /// Email, computer input, session writes: unknown until the owner says executed or not executed.
  External,
}

/// Why a call that was asked for never starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SkipReason {
  Steered,
  Paused,
  Stopped,
  Rejected,
  Lost,
  /// What it was based on is too old.
  Expired,
}

/// How a started call ended, as its worker or an observer reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
  Returned,
  Failed,
  /// Nobody can tell whether the effect happened.
  Unknown,
}

/// One part of a tool's result, with where it comes from (D30).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPart {
  pub origin: Origin,
  pub text: String,
  /// The name of the blob that holds the whole, when the text was longer than a record may carry.
  pub blob: Option<String>,
}

/// What kind of outside effect a card is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GateKind {
  Email,
  Computer,
  Session,
}

/// What an approval of an external call is about, as its tool says it; the action itself stands beside it, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
  pub kind: GateKind,
  /// Whom or what it reaches: recipients and subject; device, application and window; the session.
  pub target: String,
  /// What "allow this kind for this task" would cover: application and computer, or the type of session operation. None: each one is asked for (email).
  pub scope: Option<String>,
  /// Until when what it is based on counts, such as a picture of the desktop.
  pub valid_until_ms: Option<Timestamp>,
}

/// A worker asks for the permit to make a call now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallAsked {
  pub job: JobId,
  pub execution: i32,
  pub step: i32,
  pub index: i32,
  pub call: CallId,
  pub tool: String,
  pub class: Class,
  /// The canonical action: JSON with sorted keys (D34).
  pub action: String,
  /// The tool's own time limit.
  pub limit_millis: i64,
  /// The ordinal of the agent's last event about this job that the worker had read.
  pub seen: i64,
  /// For an external call of a task: what the owner's approval is about.
  pub gate: Option<Gate>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallOutcomeReported {
  pub job: JobId,
  pub execution: i32,
  pub call: CallId,
  pub outcome: Outcome,
  /// A reason code for a failure; empty otherwise.
  pub code: String,
  pub parts: Vec<ResultPart>,
}

/// The owner says whether a call with an unknown outcome was executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallReconcileGiven {
  pub job: JobId,
  pub call: CallId,
  pub executed: bool,
}

/// The permit: this call may begin, once, in the process whose ask caused this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
  pub job: JobId,
  pub execution: i32,
  pub step: i32,
  pub index: i32,
  pub call: CallId,
  pub tool: String,
  pub class: Class,
  pub action: String,
  pub limit_millis: i64,
  /// When the ask was decided; observers wait from what they themselves saw.
  pub started_ms: Timestamp,
  /// The card by which the owner allowed it, if it needed one.
  pub card: Option<ActionId>,
}

/// The call waits for the owner's decision on a card, which shows all of this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallHeld {
  pub job: JobId,
  pub execution: i32,
  pub step: i32,
  pub index: i32,
  pub call: CallId,
  pub card: ActionId,
  pub tool: String,
  pub class: Class,
  pub gate: Gate,
  /// The canonical action, whole: an approval is about exactly this.
  pub action: String,
  pub limit_millis: i64,
}

/// The call will not begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallSkipped {
  pub job: JobId,
  pub call: CallId,
  pub step: i32,
  pub index: i32,
  pub tool: String,
  pub reason: SkipReason,
}

/// The call gave a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallReturned {
  pub job: JobId,
  pub execution: i32,
  pub call: CallId,
  pub parts: Vec<ResultPart>,
}

/// The call failed, and certainly so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallFailed {
  pub job: JobId,
  pub execution: i32,
  pub call: CallId,
  pub code: String,
  pub parts: Vec<ResultPart>,
}

/// Whether the effect happened is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallUnknown {
  pub job: JobId,
  pub execution: i32,
  pub call: CallId,
}

/// An unknown outcome is settled: by a late report or by the owner's word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallReconciled {
  pub job: JobId,
  pub call: CallId,
  pub executed: bool,
  /// The owner said so; otherwise a late report did.
  pub by_owner: bool,
  pub parts: Vec<ResultPart>,
}

/// A report that came after the owner's word: noted, and nothing follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallOutcomeNoted {
  pub job: JobId,
  pub execution: i32,
  pub call: CallId,
  pub outcome: Outcome,
  pub parts: Vec<ResultPart>,
}

records! {
  /// Asks and reports about calls.
  "call" Input { CallAsked = 2, CallOutcomeReported = 1, CallReconcileGiven = 1 }
}

records! {
  /// Facts about calls.
  "call" Event { CallStarted = 2, CallHeld = 1, CallSkipped = 2, CallReturned = 1, CallFailed = 1, CallUnknown = 1, CallReconciled = 1, CallOutcomeNoted = 1 }
}

impl Input {
  /// The job that the call belongs to.
  pub fn job(&self) -> JobId {
    match self {
      Self::CallAsked(input) => input.job,
      Self::CallOutcomeReported(input) => input.job,
      Self::CallReconcileGiven(input) => input.job,
    }
  }
}

impl Event {
  /// The job that the call belongs to.
  pub fn job(&self) -> JobId {
    match self {
      Self::CallStarted(event) => event.job,
      Self::CallHeld(event) => event.job,
      Self::CallSkipped(event) => event.job,
      Self::CallReturned(event) => event.job,
      Self::CallFailed(event) => event.job,
      Self::CallUnknown(event) => event.job,
      Self::CallReconciled(event) => event.job,
      Self::CallOutcomeNoted(event) => event.job,
    }
  }
}
