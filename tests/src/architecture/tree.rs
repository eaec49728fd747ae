//! Reads the files of the product, without what is built or fetched.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are built, fetched or private.
const SKIPPED: [&str; 4] = ["target", "node_modules", "dist", "snapshots"];

/// One text file; its path is relative to the top folder.
pub(super) struct File {
  pub(super) path: String,
  pub(super) text: String,
}

impl File {
  /// The file's name without its extension.
  pub(super) fn stem(&self) -> &str {
    Path::new(&self.path).file_stem().and_then(|stem| stem.to_str()).expect("files have names")
  }

  /// The text without comments that fill a line or end one. Good enough to look for words of code; strings stay.
  pub(super) fn code(&self) -> String {
    let mut code = String::new();
    for line in self.text.lines() {
      let line = if line.trim_start().starts_with("//") { "" } else { line.split(" // ").next().unwrap_or(line) };
      code.push_str(line);
      code.push('\n');
    }
    code
  }
}

/// The top folder of the checkout.
pub(super) fn root() -> PathBuf {
  Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in a folder of the checkout").to_owned()
}

/// Reads a file that must be there.
pub(super) fn read(path: &str) -> String {
  fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file whose name ends in one of these extensions.
pub(super) fn files(extensions: &[&str]) -> Vec<File> {
  let mut found = Vec::new();
  walk(&root(), extensions, &mut found);
  found.sort_by(|a, b| a.path.cmp(&b.path));
  assert!(!found.is_empty(), "no file found: the tree is looked for in the wrong place");
  found
}

/// Every Rust file below a folder.
pub(super) fn rust_below(folder: &str) -> Vec<File> {
  let mut found = files(&["rs"]);
  found.retain(|file| file.path.starts_with(folder));
  found
}

fn walk(folder: &Path, extensions: &[&str], found: &mut Vec<File>) {
  let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
  for entry in entries {
    let entry = entry.expect("a folder can be read to its end");
    let name = entry.file_name().to_string_lossy().into_owned();
    let kind = entry.file_type().expect("an entry has a kind");
    let path = entry.path();
    if kind.is_dir() {
      if !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
        walk(&path, extensions, found);
      }
    } else if kind.is_file() && has_extension(&path, extensions) {
      // Someone may save or move a file while the tests read.
      if let Ok(text) = fs::read_to_string(&path) {
        let relative = path.strip_prefix(root()).expect("the walk stays below the top");
        found.push(File { path: relative.to_string_lossy().into_owned(), text });
      }
    }
  }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
  path.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| extensions.contains(&extension))
}
