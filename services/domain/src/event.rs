//! All inputs and events of all contexts, and how a codec reaches their bodies without the rules knowing it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ids::{ThingId, derived};
use crate::{account, agent, call, conversation, execution, log, settings, task, timer};
use uuid::Uuid;

/// Encodes one record body; implemented by the log's codec.
pub trait BodyEncoder {
  type Ok;
  type Error;
  /// Encodes `body` as the current version of `type_name`.
  fn encode<T: Serialize>(self, type_name: &'static str, body: &T) -> Result<Self::Ok, Self::Error>;
}

/// Decodes one record body; implemented by the log's codec.
pub trait BodyDecoder {
  type Error;
  /// Decodes a body that was written with any version, as the current struct.
  fn decode<T: DeserializeOwned>(self) -> Result<T, Self::Error>;
}

macro_rules! contexts {
  ($(#[$doc:meta])* $enum:ident: $($variant:ident($path:path)),+ $(,)?) => {
    $(#[$doc])*
    #[derive(Clone, Debug, PartialEq)]
    pub enum $enum { $($variant($path)),+ }

    impl $enum {
      /// The record's type without its version.
      pub fn type_name(&self) -> &'static str { match self { $(Self::$variant(inner) => inner.type_name()),+ } }
      /// The record's type as `CloudEvents` carry it.
      pub fn versioned_type(&self) -> &'static str { match self { $(Self::$variant(inner) => inner.versioned_type()),+ } }
      /// Every type of this enum with its current version.
      pub fn types() -> impl Iterator<Item = &'static (&'static str, u16)> {
        let all: &[&'static [(&'static str, u16)]] = &[$(<$path>::TYPES),+];
        all.to_vec().into_iter().flatten()
      }
      /// Encodes the body.
      pub fn encode<E: BodyEncoder>(&self, encoder: E) -> Result<E::Ok, E::Error> {
        match self { $(Self::$variant(inner) => inner.encode(encoder)),+ }
      }
      /// Decodes the body of type `type_name` (`pa.<context>.<Name>`, without version); `None` for a type that nobody here knows.
      pub fn decode<D: BodyDecoder>(type_name: &str, decoder: D) -> Option<Result<Self, D::Error>> {
        let mut decoder = Some(decoder);
        $(
          if <$path>::TYPES.iter().any(|(name, _)| *name == type_name) {
            return <$path>::decode(type_name, decoder.take()?).map(|body| body.map(Self::$variant));
          }
        )+
        None
      }
    }

    $(impl From<$path> for $enum { fn from(inner: $path) -> Self { Self::$variant(inner) } })+
  };
}

contexts! {
  /// What comes in: commands and reports.
  Input: Account(account::Input), Agent(agent::Input), Call(call::Input), Conversation(conversation::Input), Execution(execution::Input), Log(log::Input),
  Settings(settings::Input), Task(task::Input), Timer(timer::Input),
}

contexts! {
  /// What was concluded: facts.
  Event: Account(account::Event), Agent(agent::Event), Call(call::Event), Conversation(conversation::Event), Execution(execution::Event), Log(log::Event),
  Settings(settings::Event), Task(task::Event), Timer(timer::Event),
}

impl Input {
  /// A command: a rule may refuse it.
  pub fn is_command(&self) -> bool {
    !self.is_report()
  }

  /// A report from outside: it happened, so it can't be refused.
  pub fn is_report(&self) -> bool {
    match self {
      Self::Account(_) | Self::Agent(_) | Self::Log(_) | Self::Settings(_) => false,
      Self::Timer(timer::Input::TimerFired(_)) => true,
      Self::Task(input) => input.is_report(),
      Self::Conversation(input) => match input {
        conversation::Input::MessageReceived(_) | conversation::Input::ResultReported(_) => true,
        conversation::Input::MessageGiven(_) | conversation::Input::ReplyStopAsked(_) | conversation::Input::MessageRetryAsked(_) => false,
      },
      Self::Execution(input) => match input {
        execution::Input::ExecutionAsked(_) | execution::Input::FinishAsked(_) => false,
        execution::Input::ExecutionLossReported(_)
        | execution::Input::ExecutionYieldReported(_)
        | execution::Input::ExecutionFailureReported(_)
        | execution::Input::StepReported(_) => true,
      },
      Self::Call(input) => match input {
        call::Input::CallOutcomeReported(_) => true,
        call::Input::CallAsked(_) | call::Input::CallReconcileGiven(_) => false,
      },
    }
  }

  /// The one thing that the input names or, for a new message, makes; `id` is the input's own id.
  pub fn thing(&self, id: Uuid) -> Option<ThingId> {
    match self {
      Self::Conversation(input) => input.thing(id),
      Self::Execution(input) => Some(input.job().into()),
      Self::Call(input) => Some(input.job().into()),
      Self::Task(input) => Some(input.task().into()),
      Self::Timer(timer::Input::TimerFired(fired)) => fired.thing,
      Self::Account(_) | Self::Agent(_) | Self::Log(_) | Self::Settings(_) => None,
    }
  }
}

impl Event {
  /// The thing whose state the event changes, if it changes one.
  pub fn thing(&self) -> Option<ThingId> {
    match self {
      Self::Conversation(event) => event.thing(),
      Self::Execution(event) => Some(event.job().into()),
      Self::Call(event) => Some(event.job().into()),
      Self::Task(event) => event.thing(),
      Self::Account(_) | Self::Agent(_) | Self::Log(_) | Self::Settings(_) | Self::Timer(_) => None,
    }
  }
}

/// The id of the message that a `MessageGiven` or `MessageReceived` with input id `input` becomes.
pub fn message_of(input: Uuid) -> crate::ids::MessageId {
  crate::ids::MessageId(derived(input, 0))
}
