//! Why a reply does not come about, as the record and the notice say it.

use pa_eventlog::appender;

use crate::agent::ports::PortError;

/// The model refuses this request.
pub(super) const MODEL_REFUSED: &str = "MODEL_REFUSED";
/// The model's service could not be reached, or gave no usable answer, within the tries that a request has.
pub(super) const MODEL_UNAVAILABLE: &str = "MODEL_UNAVAILABLE";
/// The model's service does not take our key.
pub(super) const MODEL_UNAUTHORIZED: &str = "MODEL_UNAUTHORIZED";
/// The account at the model's service has no credit.
pub(super) const MODEL_OUT_OF_CREDIT: &str = "MODEL_OUT_OF_CREDIT";
/// The configured model or address is none.
pub(super) const MODEL_NOT_CONFIGURED: &str = "MODEL_NOT_CONFIGURED";
/// The message is longer than the model's window, even without any history.
pub(super) const CONTEXT_TOO_LONG: &str = "CONTEXT_TOO_LONG";
/// The model gave no words, also when it was asked for them alone.
pub(super) const MODEL_SAID_NOTHING: &str = "MODEL_SAID_NOTHING";
/// Something of our own is broken.
const FAILED: &str = "FAILED";

/// A failure that trying again would not mend.
#[derive(Debug)]
pub(super) struct Failure {
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
      E::BadRequest { .. } => MODEL_REFUSED,
      E::Unauthorized { .. } => MODEL_UNAUTHORIZED,
      E::OutOfCredit { .. } => MODEL_OUT_OF_CREDIT,
      E::Configuration { .. } | E::BuildFailed { .. } | E::ModelUnknown { .. } | E::EndpointUnknown { .. } => MODEL_NOT_CONFIGURED,
      E::ContextTooLong { .. } | E::RequestTooLarge { .. } => CONTEXT_TOO_LONG,
      E::WriteFailed { .. } => FAILED,
      E::Unreachable { .. } | E::TimedOut { .. } | E::RateLimited { .. } | E::Unavailable { .. } | E::Cut | E::Malformed { .. } | E::Oversized { .. } => {
        MODEL_UNAVAILABLE
      }
    };
    Self::new(code, chain(error))
  }
}

impl From<PortError> for Failure {
  fn from(error: PortError) -> Self {
    Self::new(FAILED, chain(&error))
  }
}

impl From<appender::Error> for Failure {
  fn from(error: appender::Error) -> Self {
    Self::new(FAILED, chain(&error))
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
