//! The file tools, over real workspaces.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use pa_domain::call::{Outcome, ResultPart};
use pa_domain::{AgentId, CallId, ConversationId, JobId, Origin};
use pa_workspace::{Workspace, Workspaces};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::{EditFileTool, ListFilesTool, ReadFileTool, WriteFileTool, media_type};
use crate::{Context, Error, Place, Tool, contract};

struct World {
  tools: [Box<dyn Tool>; 4],
  workspace: Workspace,
  context: Context,
  _folder: TempDir,
}

impl World {
  async fn new() -> Self {
    let folder = tempfile::tempdir().unwrap();
    let workspaces = Arc::new(Workspaces::new(folder.path().join("workspaces"), None));
    let id = Uuid::from_u128(7);
    let workspace = workspaces.create(AgentId(id)).await.unwrap();
    let tools: [Box<dyn Tool>; 4] = [
      Box::new(ReadFileTool::new(Arc::clone(&workspaces))),
      Box::new(WriteFileTool::new(Arc::clone(&workspaces))),
      Box::new(EditFileTool::new(Arc::clone(&workspaces))),
      Box::new(ListFilesTool::new(workspaces)),
    ];
    let context = Context { agent: AgentId(id), job: JobId(id), conversation: ConversationId(id), execution: 1, call: CallId(id) };
    Self { tools, workspace, context, _folder: folder }
  }

  async fn call(&self, name: &str, arguments: Value) -> Result<Vec<ResultPart>, Error> {
    let tool = self.tools.iter().find(|tool| tool.name() == name).unwrap();
    let Value::Object(arguments) = arguments else { panic!("an object") };
    tool.call(&self.context, &arguments).await
  }

  /// Our words and the file's.
  async fn said(&self, name: &str, arguments: Value) -> (String, String) {
    let parts = self.call(name, arguments).await.unwrap();
    assert_eq!(parts[0].origin, Origin::Platform);
    assert!(parts[1..].iter().all(|part| part.origin == Origin::Tool));
    (parts[0].text.clone(), parts.get(1).map(|part| part.text.clone()).unwrap_or_default())
  }

  async fn refused(&self, name: &str, arguments: Value) -> (&'static str, String) {
    let error = self.call(name, arguments).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    (error.code(), error.to_string())
  }
}

/// Proves CAP-3.
#[tokio::test]
async fn the_file_tools_keep_the_contract_and_are_for_tasks_only() {
  let world = World::new().await;
  for tool in &world.tools {
    contract::check(tool.as_ref(), &world.context).await;
    assert_eq!(tool.places(), [Place::Task]);
  }
}

/// Proves CAP-3.
#[tokio::test]
async fn a_file_is_written_read_edited_and_listed() {
  let world = World::new().await;
  let (head, path) = world.said("pa_write_file", json!({"path": "a/b.txt", "content": "one\ntwo\nthree"})).await;
  assert_eq!((head.as_str(), path.as_str()), ("Written: 13 bytes.", "/workspace/work/a/b.txt"));
  let (head, text) = world.said("pa_read_file", json!({"path": path})).await;
  assert_eq!((head.as_str(), text.as_str()), ("Lines 1 to 3 of 3.", "/workspace/work/a/b.txt\none\ntwo\nthree"));
  let (head, text) = world.said("pa_read_file", json!({"path": "a/b.txt", "from_line": 2, "lines": 1})).await;
  assert_eq!((head.as_str(), text.as_str()), ("Lines 2 to 2 of 3. More: from_line=3.", "/workspace/work/a/b.txt\ntwo\n"));
  let (head, _) = world.said("pa_edit_file", json!({"path": "a/b.txt", "old": "two\n", "new": ""})).await;
  assert_eq!(head, "Exchanged once.");
  assert_eq!(fs::read_to_string(world.workspace.work.join("a/b.txt")).unwrap(), "one\nthree");
  let (head, text) = world.said("pa_list_files", json!({"path": "/workspace", "depth": 8})).await;
  assert_eq!((head.as_str(), text.as_str()), ("5 entries.", "/workspace\noutputs/\nscratch/\nwork/\nwork/a/\nwork/a/b.txt  9 bytes\n"));
  assert_eq!(world.said("pa_list_files", json!({"path": "/workspace/outputs"})).await.0, "The folder is empty.");
}

#[tokio::test]
async fn an_edit_that_is_not_clear_changes_nothing_and_says_why() {
  let world = World::new().await;
  let file = world.workspace.work.join("x");
  fs::write(&file, "aaa b\r\nc").unwrap();
  let edit = |old: &str, new: &str| json!({"path": "x", "old": old, "new": new});
  for (old, new, code, hint) in [
    ("a", "z", "EDIT_NOT_UNIQUE", "3 times"),
    ("aa", "z", "EDIT_NOT_UNIQUE", "2 times"),
    ("q", "z", "EDIT_NOT_FOUND", "read the file again"),
    ("b\nc", "z", "EDIT_NOT_FOUND", "line ends"),
    ("aaa  b", "z", "EDIT_NOT_FOUND", "other spaces"),
    ("", "z", "ARGUMENTS_INVALID", "something in it"),
    ("b", "b", "ARGUMENTS_INVALID", "something else"),
  ] {
    let (found, reason) = world.refused("pa_edit_file", edit(old, new)).await;
    assert!(found == code && reason.contains(hint), "{old:?}: {found} {reason}");
  }
  assert_eq!(fs::read_to_string(&file).unwrap(), "aaa b\r\nc");
  let (head, _) = world.said("pa_edit_file", json!({"path": "x", "old": "a", "new": "aa", "all": true})).await;
  assert_eq!((head.as_str(), fs::read_to_string(&file).unwrap().as_str()), ("Exchanged 3 times.", "aaaaaa b\r\nc"));
}

/// Proves DEL-16.
#[tokio::test]
async fn what_is_no_plain_text_of_the_workspace_is_refused_with_a_reason() {
  let world = World::new().await;
  let work = &world.workspace.work;
  symlink("/etc/passwd", work.join("link")).unwrap();
  fs::write(work.join("picture.png"), [0x89, b'P', 0, 1, 2]).unwrap();
  fs::write(work.join("latin"), b"caf\xe9").unwrap();
  fs::write(work.join("wide.txt"), b"\xff\xfeh\0i\0").unwrap();
  fs::File::create(work.join("large")).unwrap().set_len(21 * 1024 * 1024).unwrap();
  for (path, code, hint) in [
    ("link", "FILE_NOT_PLAIN", "a link"),
    ("../../x", "ARGUMENTS_INVALID", ".."),
    ("/etc/passwd", "ARGUMENTS_INVALID", "outside of /workspace"),
    ("missing", "FILE_NOT_FOUND", "there is no /workspace/work/missing"),
    (".", "FILE_IS_FOLDER", "folder"),
    ("picture.png", "FILE_NOT_TEXT", "5 bytes of image/png"),
    ("latin", "FILE_NOT_TEXT", "UTF-8"),
    ("large", "FILE_TOO_LARGE", "at most 20971520"),
  ] {
    let (found, reason) = world.refused("pa_read_file", json!({"path": path})).await;
    assert!(found == code && reason.contains(hint), "{path}: {found} {reason}");
  }
  assert!(world.said("pa_read_file", json!({"path": "wide.txt"})).await.1.ends_with("hi"));
  let (code, _) = world.refused("pa_write_file", json!({"path": "/workspace/AGENTS.md", "content": "x"})).await;
  assert_eq!(code, "FILE_NOT_WRITABLE");
  for arguments in [json!({}), json!({"path": 3}), json!({"path": "a", "lines": -1}), json!({"path": "a", "encoding": "x"})] {
    assert_eq!(world.refused("pa_read_file", arguments).await.0, "ARGUMENTS_INVALID");
  }
}

#[tokio::test]
async fn a_long_file_is_read_piece_by_piece_and_nothing_is_lost() {
  let world = World::new().await;
  let long = "x".repeat(40_000);
  let lines: Vec<String> = (1..=4_000).map(|number| if number == 2_000 { long.clone() } else { format!("line {number} 界") }).collect();
  fs::write(world.workspace.work.join("long"), lines.join("\n")).unwrap();
  let (mut from, mut seen) = (1, Vec::new());
  loop {
    let (head, text) = world.said("pa_read_file", json!({"path": "long", "from_line": from, "lines": 10_000})).await;
    assert!(text.len() < 33_000);
    seen.extend(text.lines().skip(1).map(str::to_owned));
    let Some((_, more)) = head.split_once("from_line=") else { break };
    from = more.trim_end_matches('.').parse().unwrap();
  }
  assert_eq!((seen.len(), seen[1_999].len()), (4_000, 32 * 1024));
  assert!(seen.iter().zip(&lines).enumerate().all(|(at, (seen, line))| at == 1_999 || seen == line));
}

#[test]
fn a_media_type_is_told_by_the_name() {
  let types = ["report.xlsx", "a.PNG", "notes.md", "x", "a.tar.gz"].map(media_type);
  assert_eq!(types[0], "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet");
  assert_eq!(types[1..], ["image/png", "text/markdown", "application/octet-stream", "application/gzip"]);
}
