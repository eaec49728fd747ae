//! What can stop a projector, and what to do about it.

use pa_eventlog::opener;
use pa_eventlog::reader::{self, LogChanged};
use pa_eventlog::{LogError, Partition};
use uuid::Uuid;

/// Projecting failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  #[error(transparent)]
  Read(#[from] reader::Error),
  #[error(transparent)]
  Log(#[from] LogError),
  #[error(transparent)]
  Model(#[from] pa_projections::Error),
  /// The read model was folded from another log.
  #[error("partition {partition} of the read model comes from log {folded_from}, and this is log {log}")]
  OtherLog { partition: Partition, folded_from: Uuid, log: Uuid },
  /// A schema is being built, and somebody else moved it.
  #[error("partition {partition} of a schema under construction was moved by somebody else")]
  Disturbed { partition: Partition },
}

/// What a failure asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
  /// Try again, from the position that the database has.
  Passing,
  /// Fold everything anew.
  Replaced,
  /// An operator must act: another binary, a restored backup.
  Final,
}

impl Error {
  /// Says what to do about it.
  pub fn trouble(&self) -> Trouble {
    match self {
      Self::OtherLog { .. } | Self::Read(reader::Error::Changed(LogChanged::Identity { .. } | LogChanged::Cut { .. } | LogChanged::History { .. })) => {
        Trouble::Replaced
      }
      Self::Read(reader::Error::Log(log)) | Self::Log(log) => of_log(log),
      Self::Read(reader::Error::Stopped { source, .. }) => match source {
        opener::Error::Keys(_) => Trouble::Passing,
        opener::Error::MissingKey { .. } | opener::Error::Newer { .. } | opener::Error::Meta(_) => Trouble::Final,
      },
      // Nothing of the read model is a fact: whatever is wrong with it, the log has it all, and trying again is never wrong.
      Self::Model(_) | Self::Disturbed { .. } => Trouble::Passing,
    }
  }
}

fn of_log(error: &LogError) -> Trouble {
  match error {
    LogError::Away(_) => Trouble::Passing,
    LogError::Unusable(_) => Trouble::Final,
  }
}
