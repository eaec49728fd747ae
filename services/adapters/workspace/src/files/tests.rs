//! The files of a workspace under whatever task code may do to it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bytes::Bytes;
use pa_domain::AgentId;
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use tempfile::TempDir;
use uuid::Uuid;

use super::{FileError, Kind};
use crate::{Workspace, Workspaces};

const AGENT: AgentId = AgentId(Uuid::from_u128(5));
const INSIDE: &str = "inside";
const SECRET: &str = "secret of somebody else";
const MAX: u64 = 1_000;

/// A workspace beside a folder that it must not lead to.
struct World {
  workspaces: Workspaces,
  workspace: Workspace,
  outside: PathBuf,
  _folder: TempDir,
}

impl World {
  async fn new() -> Self {
    let folder = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::new(folder.path().join("workspaces"), None);
    let workspace = workspaces.create(AGENT).await.unwrap();
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), SECRET).unwrap();
    Self { workspaces, workspace, outside, _folder: folder }
  }

  async fn read(&self, path: &str) -> Result<String, FileError> {
    let content = self.workspaces.read(AGENT, path, MAX).await?;
    Ok(String::from_utf8(content.bytes.to_vec()).unwrap())
  }

  async fn write(&self, path: &str, text: &'static str) -> Result<String, FileError> {
    self.workspaces.write(AGENT, path, Bytes::from_static(text.as_bytes()), None, "call").await
  }

  /// Names in the folder outside with what is in them.
  fn outside(&self) -> Vec<(String, String)> {
    let entries = fs::read_dir(&self.outside).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())).collect()
  }
}

/// Exchanges two names as fast as it can, until it is dropped.
struct Swapper {
  over: Arc<AtomicBool>,
  thread: Option<thread::JoinHandle<u64>>,
}

impl Swapper {
  fn start(one: PathBuf, other: PathBuf) -> Self {
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let thread = thread::spawn(move || {
      let mut swaps = 0;
      while !ends.load(Ordering::SeqCst) {
        renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        swaps += 1;
      }
      swaps
    });
    Self { over, thread: Some(thread) }
  }

  fn stop(mut self) -> u64 {
    self.over.store(true, Ordering::SeqCst);
    self.thread.take().unwrap().join().unwrap()
  }
}

#[tokio::test]
async fn a_file_is_written_read_and_replaced_whole() {
  let world = World::new().await;
  assert_eq!(world.write("notes/a.txt", "one").await.unwrap(), "/workspace/work/notes/a.txt");
  assert_eq!(world.read("/workspace/work/notes/a.txt").await.unwrap(), "one");
  let file = world.workspace.work.join("notes/a.txt");
  fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
  world.write("notes/a.txt", "two").await.unwrap();
  assert_eq!((world.read("notes/a.txt").await.unwrap().as_str(), fs::metadata(&file).unwrap().permissions().mode() & 0o7777), ("two", 0o750));
  assert_eq!(fs::read_dir(world.workspace.work.join("notes")).unwrap().count(), 1, "nothing half-written is left");
}

/// Proves DEL-16, BB-65.
#[tokio::test]
async fn links_and_special_files_are_refused() {
  let world = World::new().await;
  let work = &world.workspace.work;
  symlink("/etc/passwd", work.join("passwd")).unwrap();
  symlink(work.join("not-yet"), work.join("dangling")).unwrap();
  fs::create_dir(work.join("a")).unwrap();
  symlink(&world.outside, work.join("a/up")).unwrap();
  symlink("self", work.join("self")).unwrap();
  mknodat(CWD, work.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
  let _socket = UnixListener::bind(work.join("socket")).unwrap();
  fs::write(work.join("one"), INSIDE).unwrap();
  fs::hard_link(work.join("one"), work.join("other")).unwrap();
  for path in ["passwd", "dangling", "a/up/file", "self", "self/x", "pipe", "socket", "one", "other"] {
    let error = world.read(path).await.unwrap_err();
    assert!(matches!(error, FileError::NotPlain { .. } | FileError::NotAFolder { .. }), "{path}: {error}");
  }
  assert!(matches!(world.read("a/up/../../one").await.unwrap_err(), FileError::Path { .. }));
  assert!(matches!(world.read("a").await.unwrap_err(), FileError::Folder { .. }));
  // What a dangling link points to may come later: it is still a link.
  fs::write(work.join("not-yet"), INSIDE).unwrap();
  assert!(matches!(world.read("dangling").await.unwrap_err(), FileError::NotPlain { .. }));
  for path in ["passwd", "dangling", "a/up/new", "pipe", "socket", "self"] {
    assert!(world.write(path, "x").await.is_err(), "{path}");
  }
  assert_eq!(world.outside(), [("file".to_owned(), SECRET.to_owned())]);
}

/// Proves DEL-16, BB-65.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_exchanged_for_a_link_all_the_time_never_leads_outside() {
  let world = World::new().await;
  let work = &world.workspace.work;
  fs::write(work.join("file"), INSIDE).unwrap();
  symlink(world.outside.join("file"), work.join("link")).unwrap();
  let swapper = Swapper::start(work.join("file"), work.join("link"));
  let (mut read, mut refused) = (0, 0);
  for _ in 0..3_000 {
    match world.read("file").await {
      Ok(text) => {
        assert_eq!(text, INSIDE);
        read += 1;
      }
      Err(FileError::NotPlain { .. } | FileError::Changed { .. }) => refused += 1,
      Err(error) => panic!("{error}"),
    }
  }
  assert!(swapper.stop() > 100 && read > 0 && refused > 0, "{read} read, {refused} refused");
}

/// Proves DEL-16, BB-65.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_exchanged_for_a_link_all_the_time_never_leads_outside() {
  let world = World::new().await;
  let work = &world.workspace.work;
  fs::create_dir(work.join("folder")).unwrap();
  fs::write(work.join("folder/file"), INSIDE).unwrap();
  symlink(&world.outside, work.join("link")).unwrap();
  let swapper = Swapper::start(work.join("folder"), work.join("link"));
  let mut written = 0;
  for round in 0..1_500 {
    if let Ok(text) = world.read("folder/file").await {
      assert!(text == INSIDE || text == "written", "{text}");
    }
    let path = if round % 2 == 0 { "folder/file" } else { "folder/new/file" };
    written += usize::from(world.write(path, "written").await.is_ok());
    if let Ok(listing) = world.workspaces.list(AGENT, "folder", 3).await {
      assert!(listing.entries.iter().all(|entry| !entry.path.contains("beside")));
    }
  }
  assert!(swapper.stop() > 100 && written > 0, "{written} written");
  assert_eq!(world.outside(), [("file".to_owned(), SECRET.to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_written_to_while_it_is_read_is_no_mixture() {
  let world = World::new().await;
  let file = world.workspace.work.join("file");
  fs::write(&file, [b'0'; 900]).unwrap();
  let over = Arc::new(AtomicBool::new(false));
  let writer = thread::spawn({
    let (over, file) = (Arc::clone(&over), file.clone());
    move || {
      let mut digit = 0_u8;
      while !over.load(Ordering::SeqCst) {
        digit = (digit + 1) % 10;
        fs::write(&file, [b'0' + digit; 900]).unwrap();
      }
    }
  });
  for _ in 0..500 {
    match world.read("file").await {
      Ok(text) => assert!(text.is_empty() || text.bytes().all(|byte| byte == text.as_bytes()[0]), "{text}"),
      Err(FileError::Changed { .. }) => {}
      Err(error) => panic!("{error}"),
    }
  }
  over.store(true, Ordering::SeqCst);
  writer.join().unwrap();
}

#[tokio::test]
async fn limits_are_said() {
  let world = World::new().await;
  fs::write(world.workspace.work.join("large"), vec![b'x'; 1_001]).unwrap();
  let error = world.read("large").await.unwrap_err();
  assert_eq!(error.to_string(), "/workspace/work/large has 1001 bytes; at most 1000 can be taken");
  assert!(matches!(world.read("missing").await.unwrap_err(), FileError::Missing { .. }));
  for path in ["/workspace/AGENTS.md", "/workspace/memory/x.md", "/workspace", "/workspace/work"] {
    assert!(matches!(world.write(path, "x").await.unwrap_err(), FileError::NotWritable { .. }), "{path}");
  }
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_replaced() {
  let world = World::new().await;
  world.write("a", "one").await.unwrap();
  let read = world.workspaces.read(AGENT, "a", MAX).await.unwrap();
  fs::write(world.workspace.work.join("a"), "three").unwrap();
  let write = |stamp| world.workspaces.write(AGENT, "a", Bytes::from_static(b"two"), Some(stamp), "call");
  assert!(matches!(write(read.stamp).await.unwrap_err(), FileError::Changed { .. }));
  assert_eq!(world.read("a").await.unwrap(), "three");
  let read = world.workspaces.read(AGENT, "a", MAX).await.unwrap();
  write(read.stamp).await.unwrap();
  assert_eq!(world.read("a").await.unwrap(), "two");
}

#[tokio::test]
async fn nothing_is_written_for_somebody_who_no_longer_waits() {
  let world = World::new().await;
  let files = super::Files { root: world.workspace.path.clone(), task_user: None, gone: super::Gone::default() };
  files.gone.0.store(true, Ordering::SeqCst);
  let path = super::WorkspacePath::parse("a").unwrap();
  assert!(matches!(files.write(&path, b"x", None, "call").unwrap_err(), FileError::GivenUp { .. }));
  assert_eq!(fs::read_dir(&world.workspace.work).unwrap().count(), 0);
}

#[tokio::test]
async fn a_listing_is_sorted_bounded_and_follows_no_link() {
  let world = World::new().await;
  let work = &world.workspace.work;
  for name in ["b", "a\u{1b}[2J", "c"] {
    fs::write(work.join(name), "xy").unwrap();
  }
  fs::create_dir(work.join("d")).unwrap();
  fs::write(work.join("d/e"), "").unwrap();
  symlink(&world.outside, work.join("f")).unwrap();
  let listing = world.workspaces.list(AGENT, ".", 2).await.unwrap();
  let entries: Vec<_> = listing.entries.iter().map(|entry| (entry.path.as_str(), entry.kind)).collect();
  let file = |bytes| Kind::File { bytes };
  assert_eq!(entries, [("a\u{fffd}[2J", file(2)), ("b", file(2)), ("c", file(2)), ("d", Kind::Folder), ("d/e", file(0)), ("f", Kind::Link)]);
  assert!(!listing.is_cut);
  for number in 0..600 {
    fs::write(work.join(format!("d/{number:03}")), "").unwrap();
  }
  let listing = world.workspaces.list(AGENT, "d", 1).await.unwrap();
  assert_eq!((listing.entries.len(), listing.is_cut, listing.entries[0].path.as_str()), (500, true, "000"));
  assert!(matches!(world.workspaces.list(AGENT, "f", 1).await.unwrap_err(), FileError::NotAFolder { .. } | FileError::NotPlain { .. }));
}

#[tokio::test]
async fn what_is_written_belongs_to_task_code() {
  let folder = tempfile::tempdir().unwrap();
  let ours = fs::metadata(folder.path()).unwrap();
  // Without root only what is ours anyway can be given away.
  let user = if ours.uid() == 0 { crate::TaskUser::COMPUTER } else { crate::TaskUser { uid: ours.uid(), gid: ours.gid() } };
  let workspaces = Workspaces::new(folder.path().join("workspaces"), Some(user));
  let workspace = workspaces.create(AGENT).await.unwrap();
  workspaces.write(AGENT, "new/file", Bytes::from_static(b"x"), None, "call").await.unwrap();
  for path in ["new", "new/file"] {
    assert_eq!(fs::metadata(workspace.work.join(path)).unwrap().uid(), user.uid, "{path}");
  }
}

/// Pieces that paths are made of by someone who wants out.
fn pieces() -> impl Strategy<Value = String> {
  let piece = prop_oneof![
    Just("..".to_owned()),
    Just(".".to_owned()),
    Just(String::new()),
    Just("workspace".to_owned()),
    Just("work".to_owned()),
    Just("folder".to_owned()),
    Just("up".to_owned()),
    Just("link".to_owned()),
    Just("root".to_owned()),
    Just("file".to_owned()),
    Just("outside".to_owned()),
    "[a-z./\\\\%\\x00-\\x1f]{0,4}",
  ];
  (any::<bool>(), proptest::collection::vec(piece, 0..8))
    .prop_map(|(is_absolute, pieces)| format!("{}{}", if is_absolute { "/" } else { "" }, pieces.join("/")))
}

proptest! {
  #![proptest_config(ProptestConfig::with_cases(150))]

  /// Proves DEL-16.
  #[test]
  fn no_path_leads_outside(paths in proptest::collection::vec(pieces(), 1..12)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
      let world = World::new().await;
      let work = &world.workspace.work;
      fs::create_dir(work.join("folder")).unwrap();
      fs::write(work.join("folder/file"), INSIDE).unwrap();
      symlink("..", work.join("up")).unwrap();
      symlink(&world.outside, work.join("link")).unwrap();
      symlink("/", work.join("root")).unwrap();
      symlink(&world.outside, work.join("folder/link")).unwrap();
      for path in &paths {
        if let Ok(text) = world.read(path).await {
          assert!(text == INSIDE || text == "written", "{path}: {text}");
        }
        if world.write(path, "written").await.is_ok() {
          assert_eq!(world.read(path).await.unwrap(), "written", "{path}");
        }
        if let Ok(listing) = world.workspaces.list(AGENT, path, 3).await {
          assert!(listing.path.starts_with("/workspace"));
        }
      }
      assert_eq!(world.outside(), [("file".to_owned(), SECRET.to_owned())]);
      assert_eq!(fs::read_dir(world.workspace.path.parent().unwrap()).unwrap().count(), 1, "nothing beside the workspace");
    });
  }
}
