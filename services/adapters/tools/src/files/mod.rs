//! The files of the agent's workspace: `pa_read_file`, `pa_write_file`, `pa_edit_file`, `pa_list_files`.
//!
//! What may be opened is `pa-workspace`'s business; here stands what a model is told. A file's words are a tool's: whoever wrote it, it never instructs (D30).

mod edit;
mod list;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::time::Duration;

use encoding_rs::Encoding;
use pa_domain::Origin;
use pa_domain::call::ResultPart;
use pa_workspace::FileError;

use crate::Error;

pub use edit::EditFileTool;
pub use list::ListFilesTool;
pub use read::ReadFileTool;
pub use write::WriteFileTool;

/// A disk that answers is quicker.
const LIMIT: Duration = Duration::from_secs(30);
/// What every one of these tools says of paths.
const PATHS: &str = "A path below /workspace; one that does not begin with / begins at /workspace/work.";

/// The media type of a file by its name.
pub fn media_type(name: &str) -> &'static str {
  mime_guess::from_path(name).first_raw().unwrap_or("application/octet-stream")
}

/// What a model is told of a file that can't be used. Nothing was changed.
fn failed(error: &FileError) -> Error {
  let reason = error.to_string();
  match error {
    FileError::Path { .. } => Error::Arguments { reason },
    error => Error::Failed { code: error.code(), reason },
  }
}

/// As [`failed`], for changes: of a disk that fails nobody knows how far it came.
fn failed_to_write(error: &FileError) -> Error {
  match error {
    FileError::Io { .. } => Error::Unknown { reason: error.to_string() },
    error => failed(error),
  }
}

/// The text of a file: UTF-8, or what its mark says.
fn text(path: &str, bytes: &[u8]) -> Result<String, Error> {
  let text = match Encoding::for_bom(bytes) {
    Some((encoding, _)) => Some(encoding.decode(bytes).0.into_owned()),
    None => std::str::from_utf8(bytes).ok().map(str::to_owned),
  };
  text.filter(|text| !text.contains('\0')).ok_or_else(|| Error::Failed {
    code: "FILE_NOT_TEXT",
    reason: format!(
      "{path} is no text in UTF-8 but {} bytes of {}; it can be handed over or worked on by commands, not read here",
      bytes.len(),
      media_type(path)
    ),
  })
}

fn part(origin: Origin, text: String) -> ResultPart {
  ResultPart { origin, text, blob: None }
}
