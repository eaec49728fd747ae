//! What can go wrong with files.

use std::io;

use pa_store::Disposition;
use thiserror::Error;

/// A failed operation on files.
#[derive(Debug, Error)]
pub enum Error {
  #[error("the file is larger than {bytes_max} bytes")]
  TooLarge { bytes_max: u64 },
  #[error("there is no file {name}")]
  Missing { name: String },
  #[error("the file {name} is damaged: it was changed or cut off after it was written, or is another agent's")]
  Damaged { name: String },
  #[error("the disk is full: could not {doing}")]
  DiskFull {
    doing: &'static str,
    #[source]
    source: object_store::Error,
  },
  /// The sender's side of an upload.
  #[error("the upload broke off")]
  Upload {
    #[source]
    source: io::Error,
  },
  #[error("could not {doing}")]
  Write {
    doing: &'static str,
    #[source]
    source: object_store::Error,
  },
  #[error("could not read {name}")]
  Read {
    name: String,
    #[source]
    source: object_store::Error,
  },
  #[error("could not {doing} {path}")]
  Folder {
    doing: &'static str,
    path: String,
    #[source]
    source: io::Error,
  },
}

impl Error {
  /// Says whether the operation may be repeated. Writing is always repeatable: a name stands for its content.
  pub fn disposition(&self) -> Disposition {
    match self {
      Self::DiskFull { .. } | Self::Write { .. } | Self::Read { .. } | Self::Folder { .. } => Disposition::Retry,
      Self::TooLarge { .. } | Self::Missing { .. } | Self::Damaged { .. } | Self::Upload { .. } => Disposition::Fail,
    }
  }
}

pub(crate) fn writing(doing: &'static str) -> impl FnOnce(object_store::Error) -> Error {
  move |source| if is_disk_full(&source) { Error::DiskFull { doing, source } } else { Error::Write { doing, source } }
}

pub(crate) fn reading(name: &str) -> impl FnOnce(object_store::Error) -> Error {
  let name = name.to_owned();
  move |source| match source {
    object_store::Error::NotFound { .. } => Error::Missing { name },
    source => Error::Read { name, source },
  }
}

/// The store wraps what the system said; the reason is at the bottom.
fn is_disk_full(error: &object_store::Error) -> bool {
  let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
  while let Some(error) = next {
    next = match error.downcast_ref::<io::Error>() {
      Some(io) if matches!(io.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => return true,
      // An I/O error passes over the error that it wraps when it is asked for its source.
      Some(io) => io.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static)),
      None => error.source(),
    };
  }
  false
}
