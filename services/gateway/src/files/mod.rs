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

pub(crate) use serve::serve;
pub(crate) use upload::upload;

use crate::http::answer::Refusal;
use crate::http::trace::TraceId;

/// Logs why a file can't be had, and gives what the outside sees of it.
fn failed(trace: TraceId, error: &(dyn std::error::Error + 'static)) -> Refusal {
  tracing::error!(trace.id = %trace, error, "a file can't be stored or served");
  Refusal::Internal(trace)
}
