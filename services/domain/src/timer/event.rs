//! Records of timers.

use serde::{Deserialize, Serialize};

use crate::ids::{ThingId, TimerId, Timestamp};
use crate::record::records;

/// What a timer is for; the rules that set it know what to do when it elapses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Purpose {
  /// The limit of one reply attempt (D3).
  AttemptLimit,
}

/// The scheduler says that a timer is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerFired {
  pub timer: TimerId,
  /// The thing that the timer was set for, as `TimerSet` said it.
  pub thing: Option<ThingId>,
}

/// A timer runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerSet {
  pub timer: TimerId,
  pub purpose: Purpose,
  pub due_ms: Timestamp,
  pub thing: Option<ThingId>,
}

/// A timer will not elapse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerCancelled {
  pub timer: TimerId,
}

/// A timer has elapsed; what follows from it stands in the same decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerElapsed {
  pub timer: TimerId,
}

records! {
  /// Reports about timers.
  "timer" Input { TimerFired = 1 }
}

records! {
  /// Facts about timers.
  "timer" Event { TimerSet = 1, TimerCancelled = 1, TimerElapsed = 1 }
}
