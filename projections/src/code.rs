//! Enums as the text that stands in a column.

use pa_domain::Origin;
use pa_domain::account::Role;
use pa_domain::call::{Class, GateKind, SkipReason};
use pa_domain::conversation::ConversationKind;
use pa_domain::execution::JobKind;
use pa_domain::settings::Effort;
use pa_domain::task::{PauseReason, WaitReason, WithdrawReason};
use pa_domain::timer::Purpose;

use crate::Error;

/// An enum that is stored as text.
pub trait Code: Copy + Sized + 'static {
  /// What the column holds, for an error.
  const NAME: &'static str;
  /// Every variant.
  const ALL: &'static [Self];

  /// The stored text.
  fn code(self) -> &'static str;

  /// The variant of a stored text.
  ///
  /// # Errors
  /// [`Error::Corrupt`] for a text that no variant has.
  fn parse(text: &str) -> Result<Self, Error> {
    Self::ALL.iter().copied().find(|variant| variant.code() == text).ok_or_else(|| Error::Corrupt { expected: Self::NAME, value: text.to_owned() })
  }
}

macro_rules! codes {
  ($($type:ty, $name:literal: $($variant:ident = $text:literal),+ $(,)?;)+) => {$(
    impl $crate::code::Code for $type {
      const NAME: &'static str = $name;
      const ALL: &'static [Self] = &[$(Self::$variant),+];
      fn code(self) -> &'static str {
        match self { $(Self::$variant => $text),+ }
      }
    }
  )+};
}
pub(crate) use codes;

codes! {
  ConversationKind, "a kind of conversation": Main = "MAIN", Channel = "CHANNEL", Task = "TASK";
  Origin, "an origin": Owner = "OWNER", Agent = "AGENT", Tool = "TOOL", ThirdParty = "THIRD_PARTY", Platform = "PLATFORM";
  Role, "a role of an account": Owner = "OWNER", Administrator = "ADMINISTRATOR", Member = "MEMBER";
  JobKind, "a kind of job": Reply = "REPLY", Task = "TASK";
  Class, "a class of call": Repeatable = "REPEATABLE", Contained = "CONTAINED", External = "EXTERNAL";
  Effort, "a thinking effort": Fast = "FAST", Low = "LOW", Medium = "MEDIUM", High = "HIGH";
  Purpose, "a purpose of a timer": AttemptLimit = "ATTEMPT_LIMIT";
  GateKind, "a kind of outside effect": Email = "EMAIL", Computer = "COMPUTER", Session = "SESSION";
  SkipReason, "why a call never starts":
    Steered = "STEERED", Paused = "PAUSED", Stopped = "STOPPED", Rejected = "REJECTED", Lost = "LOST", Expired = "EXPIRED";
  WaitReason, "why a task waits": Approval = "APPROVAL", UnknownEffect = "UNKNOWN_EFFECT", Desktop = "DESKTOP", Notice = "NOTICE";
  PauseReason, "why a task is paused": Asked = "ASKED", OutputLooped = "OUTPUT_LOOPED";
  WithdrawReason, "why a card is withdrawn":
    Instructed = "INSTRUCTED", Stopped = "STOPPED", Failed = "FAILED", Changed = "CHANGED", Expired = "EXPIRED";
}
