//! Inputs of a task: the files of its goal and instructions, and no others, laid into its agent's workspace (CAP-38).
//!
//! A file lies at `/workspace/work/inputs/<task>/<name>`. Laying it there again changes nothing, so whatever the task made of it stays.

use std::collections::BTreeSet;

use bytes::Bytes;
use pa_domain::{AgentId, TaskId};

use crate::{FileError, Workspaces};

/// Files that are laid into one task; each was attached by hand.
pub const INPUTS_MAX: usize = 1_000;
/// Bytes of a name: leaves room for a number before the ending.
const NAME_BYTES_MAX: usize = 200;

/// A file of a message.
#[derive(Clone, Debug)]
pub struct Input {
  /// The name that it was sent under, whatever that is.
  pub name: String,
  pub bytes: Bytes,
}

/// Where the inputs of a task lie, in the order of their names; of two equal names the later gets a number.
pub fn input_paths<'a>(task: TaskId, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
  let mut taken = BTreeSet::new();
  let mut paths = Vec::new();
  for name in names {
    let name = plain_name(name);
    let mut candidate = name.clone();
    let mut number = 2;
    while !taken.insert(candidate.to_lowercase()) {
      candidate = numbered(&name, number);
      number += 1;
    }
    paths.push(format!("/workspace/work/inputs/{}/{candidate}", task.0.simple()));
  }
  paths
}

impl Workspaces {
  /// Lays files into a task and answers with their paths, in order. One that is there already stays as it is.
  ///
  /// # Errors
  /// [`FileError`]; what was laid before stays.
  pub async fn stage(&self, agent: AgentId, task: TaskId, inputs: &[Input]) -> Result<Vec<String>, FileError> {
    let inputs = &inputs[..inputs.len().min(INPUTS_MAX)];
    let paths = input_paths(task, inputs.iter().map(|input| input.name.as_str()));
    for (input, path) in inputs.iter().zip(&paths) {
      if !self.exists(agent, path).await? {
        self.write(agent, path, input.bytes.clone(), None, &task.0.simple().to_string()).await?;
      }
    }
    Ok(paths)
  }
}

/// One name without folders, control characters, or a point at its beginning.
fn plain_name(name: &str) -> String {
  let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
  let clean: String = last.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
  let clean = clean.trim().trim_start_matches('.');
  if clean.is_empty() {
    return "file".to_owned();
  }
  if clean.len() <= NAME_BYTES_MAX {
    return clean.to_owned();
  }
  let (stem, ending) = parts(clean);
  let room = NAME_BYTES_MAX - ending.len();
  format!("{}{ending}", &stem[..stem.floor_char_boundary(room)])
}

fn numbered(name: &str, number: usize) -> String {
  let (stem, ending) = parts(name);
  format!("{stem}-{number}{ending}")
}

/// A name and its ending, which is no longer than endings are.
fn parts(name: &str) -> (&str, &str) {
  match name.rfind('.').filter(|at| *at > 0 && name.len() - at <= 12) {
    Some(at) => name.split_at(at),
    None => (name, ""),
  }
}

#[cfg(test)]
mod tests {
  use uuid::Uuid;

  use super::*;

  const TASK: TaskId = TaskId(Uuid::from_u128(9));
  const AGENT: AgentId = AgentId(Uuid::from_u128(5));

  fn names(given: &[&str]) -> Vec<String> {
    let folder = format!("/workspace/work/inputs/{}/", TASK.0.simple());
    input_paths(TASK, given.iter().copied()).into_iter().map(|path| path.strip_prefix(&folder).unwrap().to_owned()).collect()
  }

  #[test]
  fn a_name_from_outside_stays_one_name() {
    assert_eq!(names(&["a.txt", "../../etc/passwd", "C:\\x\\b.csv", "..", "", ".ssh", "x\ny"]), ["a.txt", "passwd", "b.csv", "file", "file-2", "ssh", "x_y"]);
    assert_eq!(names(&["a.txt", "A.TXT", "b/a.txt"]), ["a.txt", "A-2.TXT", "a-3.txt"]);
    let long = names(&[&format!("{}.xlsx", "界".repeat(200))]);
    assert!(long[0].len() <= NAME_BYTES_MAX && long[0].ends_with("界.xlsx"), "{long:?}");
  }

  /// Proves CAP-38.
  #[tokio::test]
  async fn the_files_of_a_message_and_no_others_are_laid_into_its_task_once() {
    let folder = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::new(folder.path().join("workspaces"), None);
    workspaces.create(AGENT).await.unwrap();
    let input = |name: &str, text: &'static str| Input { name: name.into(), bytes: Bytes::from_static(text.as_bytes()) };
    let files = [input("report.csv", "a,b"), input("report.csv", "c,d")];
    let paths = workspaces.stage(AGENT, TASK, &files).await.unwrap();
    assert_eq!(paths, input_paths(TASK, ["report.csv", "report.csv"]));
    assert_eq!(workspaces.read(AGENT, &paths[1], 100).await.unwrap().bytes, "c,d");
    workspaces.write(AGENT, &paths[0], Bytes::from_static(b"worked on"), None, "call").await.unwrap();
    assert_eq!(workspaces.stage(AGENT, TASK, &files).await.unwrap(), paths);
    assert_eq!(workspaces.read(AGENT, &paths[0], 100).await.unwrap().bytes, "worked on");
    let listing = workspaces.list(AGENT, "/workspace", 9).await.unwrap();
    let laid: Vec<_> = listing.entries.iter().filter(|entry| matches!(entry.kind, crate::Kind::File { .. })).collect();
    assert_eq!(laid.len(), 2, "{laid:?}");
  }
}
