//! What can go wrong with the read model.

use pa_domain::AgentId;
use pa_store::Disposition;
use thiserror::Error;

/// A failed read or commit.
#[derive(Debug, Error)]
pub enum Error {
  /// The database refused or could not be reached.
  #[error(transparent)]
  Store(#[from] pa_store::Error),
  /// A row holds what this binary never writes: the schema was changed by hand.
  #[error("the read model holds {value:?} where {expected} belongs")]
  Corrupt { expected: &'static str, value: String },
  /// The database refused the rows of a batch; the batch holds something that can't be stored.
  #[error("the rows of a batch were refused")]
  Refused(#[source] pa_store::Error),
  /// An agent's rows can't be built from the records at hand.
  #[error("agent {agent} is not in the read model")]
  UnknownAgent { agent: AgentId },
}

impl Error {
  /// Says whether the operation may be repeated.
  pub fn disposition(&self) -> Disposition {
    match self {
      Self::Store(error) => error.disposition(),
      Self::Corrupt { .. } | Self::Refused(_) | Self::UnknownAgent { .. } => Disposition::Fail,
    }
  }
}

/// Names what a read was for; for `map_err`.
pub(crate) fn reading(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Error {
  move |source| Error::Store(pa_store::Error::Read { doing, source })
}

/// Names what a write that commits was for; for `map_err`.
pub(crate) fn writing(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Error {
  move |source| Error::Store(pa_store::Error::Write { doing, source })
}
