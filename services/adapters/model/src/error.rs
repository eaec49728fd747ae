//! What can go wrong with a model request, and whether trying again makes sense.
//!
//! Invariant: no error carries the key or an address's credentials; what a server says is shortened and cleaned first.

use std::time::Duration;

/// What the caller may do after an error. A model request changes nothing outside, so its fate never matters and
/// [`Disposition::Unknown`] is never the answer here; it is part of the vocabulary that all adapters share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
  /// Trying again may help, not before `after` if the server asked for that.
  Retry {
    after: Option<Duration>,
  },
  /// Trying again gives the same.
  Fail,
  Unknown,
}

/// The stage of a request in which time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
  Connect,
  FirstByte,
  Idle,
  /// The time of the whole request or of its caller.
  Total,
}

impl Phase {
  fn as_str(self) -> &'static str {
    match self {
      Self::Connect => "connect",
      Self::FirstByte => "first byte",
      Self::Idle => "next piece",
      Self::Total => "end",
    }
  }
}

/// Why a model request gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  #[error("model configuration is unusable: {reason}")]
  Configuration { reason: String },
  #[error("could not build the http client for the model")]
  BuildFailed {
    #[source]
    source: reqwest::Error,
  },
  #[error("could not write the model request as json")]
  WriteFailed {
    #[source]
    source: serde_json::Error,
  },
  #[error("model server could not be reached")]
  Unreachable {
    #[source]
    source: reqwest::Error,
  },
  #[error("model did not reach its {} in time", phase.as_str())]
  TimedOut { phase: Phase },
  #[error("model server limits the rate: {detail}")]
  RateLimited { after: Option<Duration>, detail: String },
  #[error("model server is unavailable with status {status}: {detail}")]
  Unavailable { status: u16, after: Option<Duration>, detail: String },
  #[error("model server refused the request with status {status}: {detail}")]
  BadRequest { status: u16, detail: String },
  #[error("model server refused the key with status {status}: {detail}")]
  Unauthorized { status: u16, detail: String },
  #[error("model account has no credit: {detail}")]
  OutOfCredit { detail: String },
  #[error("model server does not know the model: {detail}")]
  ModelUnknown { detail: String },
  #[error("model server has no chat completions at this address: {detail}")]
  EndpointUnknown { detail: String },
  #[error("prompt is longer than the model's window: {detail}")]
  ContextTooLong { detail: String },
  #[error("model request is too large: {detail}")]
  RequestTooLarge { detail: String },
  #[error("model answer was cut before its end")]
  Cut,
  #[error("model answer is malformed: {what}")]
  Malformed { what: &'static str },
  #[error("model answer goes over a limit: {what}")]
  Oversized { what: &'static str },
}

impl Error {
  /// Says whether trying again makes sense.
  pub fn disposition(&self) -> Disposition {
    match self {
      Self::RateLimited { after, .. } | Self::Unavailable { after, .. } => Disposition::Retry { after: *after },
      // The model writes another answer the next time, so a bad one is worth another try too.
      Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Cut | Self::Malformed { .. } | Self::Oversized { .. } => Disposition::Retry { after: None },
      Self::Configuration { .. }
      | Self::BuildFailed { .. }
      | Self::WriteFailed { .. }
      | Self::BadRequest { .. }
      | Self::Unauthorized { .. }
      | Self::OutOfCredit { .. }
      | Self::ModelUnknown { .. }
      | Self::EndpointUnknown { .. }
      | Self::ContextTooLong { .. }
      | Self::RequestTooLarge { .. } => Disposition::Fail,
    }
  }

  /// Returns a stable name for records, notices and counters.
  pub fn code(&self) -> &'static str {
    match self {
      Self::Configuration { .. } => "configuration",
      Self::BuildFailed { .. } => "build_failed",
      Self::WriteFailed { .. } => "write_failed",
      Self::Unreachable { .. } => "unreachable",
      Self::TimedOut { .. } => "timed_out",
      Self::RateLimited { .. } => "rate_limited",
      Self::Unavailable { .. } => "unavailable",
      Self::BadRequest { .. } => "bad_request",
      Self::Unauthorized { .. } => "unauthorized",
      Self::OutOfCredit { .. } => "out_of_credit",
      Self::ModelUnknown { .. } => "model_unknown",
      Self::EndpointUnknown { .. } => "endpoint_unknown",
      Self::ContextTooLong { .. } => "context_too_long",
      Self::RequestTooLarge { .. } => "request_too_large",
      Self::Cut => "cut",
      Self::Malformed { .. } => "malformed",
      Self::Oversized { .. } => "oversized",
    }
  }
}
