//! Files: uploads before they are attached, and what they become.
//!
//! Invariants
//! - The id of an upload stays the file's id after attaching.
//! - A file is served to its owner only, as a download unless it is a picture that no browser runs, and never as a page of ours.
//! - Nothing of a file is in memory but the chunk that passes.
//!
//! Read next: `upload.rs`, then `serve.rs`.

mod headers;
mod name;
mod serve;
mod upload;

use pa_blobs::FILE_BYTES_MAX;
use pa_store::Disposition;

use crate::http::answer::Refusal;
use crate::http::trace::TraceId;

pub(crate) use serve::serve;
pub(crate) use upload::upload;

/// [`FILE_BYTES_MAX`] as lengths in memory are counted.
fn bytes_max() -> usize {
  usize::try_from(FILE_BYTES_MAX).expect("a small constant")
}

/// What the outside sees of a file that can't be stored or served; what is ours to mend is logged.
fn failed(trace: TraceId, error: &pa_blobs::Error) -> Refusal {
  let logged = error as &(dyn std::error::Error + 'static);
  match error {
    pa_blobs::Error::TooLarge { .. } => Refusal::TooLarge { bytes_max: bytes_max() },
    pa_blobs::Error::Missing { .. } => serve::NO_SUCH_FILE,
    pa_blobs::Error::Upload { .. } => Refusal::Bad("the upload broke off"),
    pa_blobs::Error::DiskFull { .. } => {
      tracing::error!(trace.id = %trace, error = logged, "a file does not fit on the disk");
      Refusal::StorageFull
    }
    pa_blobs::Error::Write { .. } | pa_blobs::Error::Read { .. } | pa_blobs::Error::Folder { .. } => {
      tracing::warn!(trace.id = %trace, error = logged, "files can't be reached");
      Refusal::Unavailable
    }
    pa_blobs::Error::Damaged { .. } => {
      tracing::error!(trace.id = %trace, error = logged, "a file can't be served");
      Refusal::Internal(trace)
    }
  }
}

/// What the outside sees when the read model can't say where a file lies.
fn unread(trace: TraceId, error: &pa_projections::Error) -> Refusal {
  tracing::warn!(trace.id = %trace, error = error as &(dyn std::error::Error + 'static), "a file can't be looked up");
  if error.disposition() == Disposition::Fail { Refusal::Internal(trace) } else { Refusal::Unavailable }
}
