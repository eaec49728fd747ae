//! Paths as the agent writes them: `/workspace/…`, or relative to `/workspace/work`. They have no `..`, so a path never leads upwards, whatever links are there.

use std::fmt;

use super::FileError;

/// How task code sees its agent's folder.
const ROOT: &str = "/workspace";
/// Where relative paths begin: the folder that task code starts in.
const START: &str = "work";
/// Bytes of a path: what the system takes.
const PATH_BYTES_MAX: usize = 4_000;
/// Bytes of one name: what file systems have.
const NAME_BYTES_MAX: usize = 255;
/// Folders inside each other: each is opened on the way.
const DEPTH_MAX: usize = 64;

/// A path inside a workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkspacePath {
  names: Vec<String>,
}

impl WorkspacePath {
  /// Reads a path.
  ///
  /// # Errors
  /// [`FileError::Path`] says what is wrong with it.
  pub fn parse(path: &str) -> Result<Self, FileError> {
    let refused = |why| Err(FileError::Path { path: path.chars().take(NAME_BYTES_MAX).collect(), why });
    if path.trim().is_empty() {
      return refused("it is empty");
    }
    if path.len() > PATH_BYTES_MAX {
      return refused("it is too long");
    }
    if path.chars().any(char::is_control) {
      return refused("it has control characters");
    }
    let (begin, rest) = match path.strip_prefix(ROOT) {
      Some(rest) if rest.is_empty() || rest.starts_with('/') => (None, rest),
      _ if path.starts_with('/') => return refused("it lies outside of /workspace"),
      _ => (Some(START), path),
    };
    let named = rest.split('/').filter(|name| !name.is_empty() && *name != ".");
    let names: Vec<String> = begin.into_iter().chain(named).map(str::to_owned).collect();
    if names.iter().any(|name| name == "..") {
      return refused("it has .. in it");
    }
    if names.iter().any(|name| name.len() > NAME_BYTES_MAX) {
      return refused("a name in it is too long");
    }
    if names.len() > DEPTH_MAX {
      return refused("it is nested too deep");
    }
    Ok(Self { names })
  }

  /// The names on the way, from the workspace's root.
  pub(super) fn names(&self) -> &[String] {
    &self.names
  }

  /// The folder that it lies in and its own name; `None` for the root.
  pub(super) fn split(&self) -> Option<(&[String], &str)> {
    self.names.split_last().map(|(name, folder)| (folder, name.as_str()))
  }
}

impl fmt::Display for WorkspacePath {
  fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    formatter.write_str(ROOT)?;
    self.names.iter().try_for_each(|name| write!(formatter, "/{name}"))
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn a_path_is_absolute_in_the_workspace_or_relative_to_work() {
    for (given, meant) in [
      ("report.md", "/workspace/work/report.md"),
      ("./a//b/./c.txt", "/workspace/work/a/b/c.txt"),
      ("/workspace/outputs/x", "/workspace/outputs/x"),
      ("/workspace", "/workspace"),
      ("/workspace/", "/workspace"),
      (".", "/workspace/work"),
      ("界/a b.txt", "/workspace/work/界/a b.txt"),
      ("..hidden/...", "/workspace/work/..hidden/..."),
    ] {
      assert_eq!(WorkspacePath::parse(given).unwrap().to_string(), meant, "{given}");
    }
  }

  #[test]
  fn a_path_that_leads_elsewhere_is_refused() {
    let (long, deep) = ("x".repeat(300), "a/".repeat(100));
    for given in [
      "",
      " ",
      "..",
      "a/../b",
      "/workspace/..",
      "/workspace/work/../../x",
      "/etc/passwd",
      "/workspaces/x",
      "/workspacework",
      "a\0b",
      "a\nb",
      &long,
      &deep,
      "/proc/self/root",
    ] {
      assert!(matches!(WorkspacePath::parse(given), Err(FileError::Path { .. })), "{given}");
    }
  }
}
