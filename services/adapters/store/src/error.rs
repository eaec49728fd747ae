//! What can go wrong with a statement, and whether it may be tried again.
//!
//! The question that matters is what the database now holds. A statement that read, or wrote inside a transaction that did not commit, changed nothing. A commit,
//! or a statement that commits by itself, whose connection broke has an unknown fate: whoever sent it must look, not repeat.

use sqlx::migrate::MigrateError;
use thiserror::Error;

/// Whether a failed operation may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
  /// Nothing was changed and the cause passes: the same call may be made again.
  Retry,
  /// The same call would fail again.
  Fail,
  /// It may or may not have happened.
  Unknown,
}

/// A failed operation on the database.
#[derive(Debug, Error)]
pub enum Error {
  /// The address of the database can't be understood.
  #[error("the database address is not valid")]
  Address {
    #[source]
    source: sqlx::Error,
  },
  /// A read, or a statement inside a transaction that was not committed.
  #[error("could not {doing}")]
  Read {
    doing: &'static str,
    #[source]
    source: sqlx::Error,
  },
  /// A statement that commits by itself, or a commit.
  #[error("could not {doing}")]
  Write {
    doing: &'static str,
    #[source]
    source: sqlx::Error,
  },
  /// The control tables could not be brought up to date.
  #[error("could not migrate the database")]
  Migrate {
    #[source]
    source: MigrateError,
  },
  /// The control tables were brought up by a newer binary than this one.
  #[error(
    "the data was written by a newer version of pa (it has the migration {migration}, which this version does not know): start that version, or restore a backup of before"
  )]
  Newer { migration: i64 },
  /// The server would lose what it acknowledged.
  #[error("the database is not durable: {setting} is {value}; set it to on and restart the database server")]
  NotDurable { setting: String, value: String },
}

impl Error {
  /// Says whether the operation may be repeated.
  pub fn disposition(&self) -> Disposition {
    match self {
      Self::Read { source, .. } => {
        if passes(source) {
          Disposition::Retry
        } else {
          Disposition::Fail
        }
      }
      Self::Write { source, .. } => {
        if never_sent(source) {
          Disposition::Retry
        } else if connection_broke(source) {
          Disposition::Unknown
        } else if passes(source) {
          Disposition::Retry
        } else {
          Disposition::Fail
        }
      }
      Self::Migrate { source: MigrateError::Execute(source) } if passes(source) => Disposition::Retry,
      Self::Migrate { .. } | Self::Newer { .. } | Self::NotDurable { .. } | Self::Address { .. } => Disposition::Fail,
    }
  }

  /// Says whether the database refused because a disk is full.
  pub fn is_disk_full(&self) -> bool {
    // 53100 disk_full, by SQLSTATE.
    self.database_source().is_some_and(|source| has_code(source, &["53100"]))
  }

  /// Says whether the database can't be reached now (away, starting, or stopping), as opposed to refusing us.
  pub fn is_away(&self) -> bool {
    self.database_source().is_some_and(|source| connection_broke(source) || has_code(source, &["57P01", "57P02", "57P03"]))
  }

  fn database_source(&self) -> Option<&sqlx::Error> {
    match self {
      Self::Read { source, .. } | Self::Write { source, .. } | Self::Migrate { source: MigrateError::Execute(source) } => Some(source),
      Self::Migrate { .. } | Self::Newer { .. } | Self::NotDurable { .. } | Self::Address { .. } => None,
    }
  }
}

/// Names what a read (or a statement inside an open transaction) was for; for `map_err`.
pub fn reading(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Error {
  move |source| Error::Read { doing, source }
}

/// Names what a self-committing statement or a commit was for; for `map_err`. Its fate is unknown when the connection broke.
pub fn writing(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Error {
  move |source| Error::Write { doing, source }
}

/// No connection was had, so nothing was sent.
fn never_sent(source: &sqlx::Error) -> bool {
  match source {
    sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => true,
    // A connection that could not be opened at all.
    sqlx::Error::Io(io) => {
      matches!(io.kind(), std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied)
    }
    sqlx::Error::Database(_) => has_code(source, &["57P03", "53300"]),
    _ => false,
  }
}

fn connection_broke(source: &sqlx::Error) -> bool {
  matches!(
    source,
    sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed
  )
}

fn passes(source: &sqlx::Error) -> bool {
  // 40 serialization and deadlock, 53 resources, 57014 statement time-out, 57P0x shutdown and start, 55P03 lock not available, 08 connection.
  connection_broke(source) || has_code(source, &["40", "53", "57014", "57P0", "55P03", "08"])
}

fn has_code(source: &sqlx::Error, prefixes: &[&str]) -> bool {
  source.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| prefixes.iter().any(|prefix| code.starts_with(prefix)))
}
