//! Why a reply does not come about, as the record and the notice say it.

use pa_domain::codes::notice;
use pa_eventlog::appender;

use crate::agent::ports::PortError;

/// A failure that trying again would not mend.
#[derive(Debug)]
pub(super) struct Failure {
  /// One of [`notice`]'s.
  pub(super) code: &'static str,
  /// For the audit.
  pub(super) detail: String,
}

impl Failure {
  pub(super) fn new(code: &'static str, detail: impl Into<String>) -> Self {
    Self { code, detail: detail.into() }
  }

  /// The failure that an error of the model port means, after its own retries.
  pub(super) fn of_model(error: &pa_model::Error) -> Self {
    use pa_model::Error as E;
    let code = match error {
      E::BadRequest { .. } => notice::MODEL_REFUSED,
      E::Unauthorized { .. } => notice::MODEL_UNAUTHORIZED,
      E::OutOfCredit { .. } => notice::MODEL_OUT_OF_CREDIT,
      E::Configuration { .. } | E::BuildFailed { .. } | E::ModelUnknown { .. } | E::EndpointUnknown { .. } => notice::MODEL_NOT_CONFIGURED,
      E::ContextTooLong { .. } | E::RequestTooLarge { .. } => notice::CONTEXT_TOO_LONG,
      E::WriteFailed { .. } => notice::FAILED,
      E::Unreachable { .. } | E::TimedOut { .. } | E::RateLimited { .. } | E::Unavailable { .. } | E::Cut | E::Malformed { .. } | E::Oversized { .. } => {
        notice::MODEL_UNAVAILABLE
      }
    };
    Self::new(code, chain(error))
  }
}

impl From<PortError> for Failure {
  fn from(error: PortError) -> Self {
    Self::new(notice::FAILED, chain(&error))
  }
}

impl From<appender::Error> for Failure {
  fn from(error: appender::Error) -> Self {
    Self::new(notice::FAILED, chain(&error))
  }
}

fn chain(error: &dyn std::error::Error) -> String {
  let mut text = error.to_string();
  let mut source = error.source();
  while let Some(cause) = source {
    text.push_str(": ");
    text.push_str(&cause.to_string());
    source = cause.source();
  }
  text
}
