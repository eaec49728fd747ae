//! Files in a real folder.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use bytes::Bytes;
use futures::TryStreamExt as _;
use pa_domain::{AgentId, Timestamp};
use pa_store::clock::{Clock as _, Ids as _, SystemClock, SystemIds};
use pa_store::keys::AgentKeys;
use rand::RngCore as _;
use uuid::Uuid;

use crate::{Blobs, Content, Error, FILE_BYTES_MAX};

const CHUNK: usize = 64 * 1024;

fn agent() -> AgentId {
  AgentId(SystemIds.new_id())
}

fn keys(n: u8) -> AgentKeys {
  AgentKeys::derive(1, &[n; 32])
}

fn random(length: usize) -> Bytes {
  let mut bytes = vec![0; length];
  rand::rng().fill_bytes(&mut bytes);
  Bytes::from(bytes)
}

/// An upload as it comes from a socket: in pieces of odd sizes.
fn pieces(content: &Bytes) -> impl futures::Stream<Item = io::Result<Bytes>> + Unpin + use<> {
  let pieces: Vec<io::Result<Bytes>> = content.chunks(10_007).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
  futures::stream::iter(pieces)
}

async fn whole(content: Content) -> Result<Bytes, Error> {
  Ok(
    content
      .try_fold(Vec::new(), |mut all, piece| async move {
        all.extend_from_slice(&piece);
        Ok(all)
      })
      .await?
      .into(),
  )
}

fn path_of(folder: &Path, agent: AgentId, name: &str) -> PathBuf {
  folder.join("blobs").join(agent.0.simple().to_string()).join(name)
}

fn litter(folder: &Path) -> usize {
  let staged = fs::read_dir(folder.join("staging")).unwrap().count();
  let blobs: usize = fs::read_dir(folder.join("blobs")).unwrap().map(|entry| fs::read_dir(entry.unwrap().path()).unwrap().count()).sum();
  staged + blobs
}

#[tokio::test]
async fn an_upload_of_any_size_comes_back_as_it_was_sealed_on_disk() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let (agent, keys) = (agent(), keys(1));
  for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 11 * 1024 * 1024 + 17] {
    let content = random(size);
    let upload = SystemIds.new_id();
    let staged = blobs.stage(upload, pieces(&content)).await.unwrap();
    assert_eq!(staged.size, i64::try_from(size).unwrap());
    assert_eq!(staged.sha256.as_slice(), digest::digest(&digest::SHA256, &content).as_ref());
    assert_eq!(whole(blobs.staged(upload).await.unwrap()).await.unwrap(), content);
    let blob = blobs.commit(agent, &keys, upload).await.unwrap();
    assert_eq!((blob.size, blob.sha256), (staged.size, staged.sha256));
    assert_eq!(whole(blobs.get(agent, &keys, &blob.name).await.unwrap()).await.unwrap(), content, "{size}");
    assert_eq!(blobs.commit(agent, &keys, upload).await.unwrap(), blob, "again");
    assert_eq!(blobs.put(agent, &keys, content.clone()).await.unwrap(), blob, "by the same content");
    let stored = fs::read(path_of(folder.path(), agent, &blob.name)).unwrap();
    assert!(size < 32 || !stored.windows(32).any(|window| window == &content[..32]));
  }
}

#[tokio::test]
async fn equal_content_of_two_agents_has_two_names_and_neither_reads_the_others() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let (one, two) = (agent(), agent());
  let content = random(1_000);
  let first = blobs.put(one, &keys(1), content.clone()).await.unwrap();
  let second = blobs.put(two, &keys(2), content).await.unwrap();
  assert_ne!(first.name, second.name);
  assert!(matches!(blobs.get(two, &keys(2), &first.name).await.err().unwrap(), Error::Missing { .. }));
  fs::copy(path_of(folder.path(), one, &first.name), path_of(folder.path(), two, &first.name)).unwrap();
  assert!(matches!(blobs.get_all(two, &keys(2), &first.name, 2_000).await.unwrap_err(), Error::Damaged { .. }));
  assert!(matches!(blobs.get_all(one, &keys(1), &first.name, 999).await.unwrap_err(), Error::TooLarge { bytes_max: 999 }));
}

#[tokio::test]
async fn a_name_that_is_none_never_becomes_a_path() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let upper = "A".repeat(64);
  for name in ["", "..", "../../staging/x", "abc", upper.as_str()] {
    assert!(matches!(blobs.get(agent(), &keys(1), name).await.err().unwrap(), Error::Missing { .. }), "{name}");
  }
}

/// Every way to change a stored blob: flip a byte anywhere, cut it, leave out, exchange or repeat chunks, put another blob in its place.
#[tokio::test]
async fn a_changed_blob_is_never_given_out_as_whole() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let (agent, keys) = (agent(), keys(1));
  let blob = blobs.put(agent, &keys, random(2 * CHUNK + 100)).await.unwrap();
  let other = blobs.put(agent, &keys, random(2 * CHUNK + 100)).await.unwrap();
  let path = path_of(folder.path(), agent, &blob.name);
  let stored = fs::read(&path).unwrap();
  let sealed = 12 + CHUNK + 16;
  let (magic, first, second, last) = (&stored[..4], &stored[4..4 + sealed], &stored[4 + sealed..4 + 2 * sealed], &stored[4 + 2 * sealed..]);
  let mut changed: Vec<Vec<u8>> = vec![
    Vec::new(),
    magic.to_vec(),
    [magic, first].concat(),
    [magic, first, second].concat(),
    stored[..stored.len() - 1].to_vec(),
    [magic, second, first, last].concat(),
    [magic, first, last].concat(),
    [magic, first, first, second, last].concat(),
    [magic, last].concat(),
    [&stored, last].concat(),
    [stored.as_slice(), b"x"].concat(),
    fs::read(path_of(folder.path(), agent, &other.name)).unwrap(),
  ];
  for at in [0, 4, 15, 16, 5_000, 4 + sealed - 1, 4 + sealed, stored.len() - 1] {
    let mut flipped = stored.clone();
    flipped[at] ^= 1;
    changed.push(flipped);
  }
  for (n, bytes) in changed.iter().enumerate() {
    fs::write(&path, bytes).unwrap();
    let error = blobs.get_all(agent, &keys, &blob.name, FILE_BYTES_MAX).await.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "change {n}: {error}");
  }
  fs::write(&path, &stored).unwrap();
  blobs.get_all(agent, &keys, &blob.name, FILE_BYTES_MAX).await.unwrap();
}

#[tokio::test]
async fn a_file_at_the_limit_is_taken_and_one_byte_more_leaves_nothing() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let limit = usize::try_from(FILE_BYTES_MAX).unwrap();
  let upload = SystemIds.new_id();
  let error = blobs.stage(upload, pieces(&Bytes::from(vec![7; limit + 1]))).await.unwrap_err();
  assert!(matches!(error, Error::TooLarge { bytes_max: FILE_BYTES_MAX }));
  assert_eq!(litter(folder.path()), 0);
  assert!(matches!(blobs.staged(upload).await.err().unwrap(), Error::Missing { .. }));
  let staged = blobs.stage(upload, pieces(&Bytes::from(vec![7; limit]))).await.unwrap();
  assert_eq!(staged.size, 20_971_520);
}

#[tokio::test]
async fn an_upload_that_breaks_off_or_is_given_up_leaves_nothing() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let broken = futures::stream::iter([Ok(random(100)), Err(io::Error::from(io::ErrorKind::ConnectionReset))]);
  assert!(matches!(blobs.stage(SystemIds.new_id(), broken).await.unwrap_err(), Error::Upload { .. }));
  let endless = Box::pin(futures::stream::unfold((), |()| async {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    Some((Ok(random(100)), ()))
  }));
  let given_up = tokio::time::timeout(std::time::Duration::from_millis(50), blobs.stage(SystemIds.new_id(), endless)).await;
  assert!(given_up.is_err());
  // The folder is tidied by a task of the store.
  for _ in 0..100 {
    if litter(folder.path()) == 0 {
      return;
    }
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
  }
  panic!("{} files left", litter(folder.path()));
}

#[tokio::test]
async fn staged_uploads_and_half_written_files_go_after_a_day_and_blobs_stay() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let (agent, upload) = (agent(), SystemIds.new_id());
  blobs.stage(upload, pieces(&random(10))).await.unwrap();
  let blob = blobs.commit(agent, &keys(1), upload).await.unwrap();
  fs::write(folder.path().join("staging/0123#1"), "half").unwrap();
  fs::write(path_of(folder.path(), agent, "0123#2"), "half").unwrap();
  let day = 24 * 3_600_000;
  let now = SystemClock.now();
  assert_eq!(blobs.expire_staging(now.plus_millis(day - 60_000)).await.unwrap(), 0);
  assert_eq!(blobs.expire_staging(now.plus_millis(day + 60_000)).await.unwrap(), 3);
  assert!(matches!(blobs.commit(agent, &keys(1), upload).await.unwrap_err(), Error::Missing { .. }));
  assert_eq!(blobs.get_all(agent, &keys(1), &blob.name, 10).await.unwrap().len(), 10);
  assert_eq!(litter(folder.path()), 1);
}

#[tokio::test]
async fn erasing_an_agent_removes_its_blobs_alone_and_may_be_repeated() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let (erased, other) = (agent(), agent());
  for n in 0..3 {
    blobs.put(erased, &keys(1), random(n)).await.unwrap();
  }
  let kept = blobs.put(other, &keys(2), random(9)).await.unwrap();
  assert_eq!(blobs.erase(erased).await.unwrap(), 3);
  assert_eq!(blobs.erase(erased).await.unwrap(), 0);
  assert_eq!(fs::read_dir(folder.path().join("blobs")).unwrap().count(), 1);
  blobs.get_all(other, &keys(2), &kept.name, 9).await.unwrap();
}

#[tokio::test]
async fn what_is_not_sealed_yet_is_for_the_owner_alone() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(&folder.path().join("new")).unwrap();
  blobs.check().await.unwrap();
  for name in ["blobs", "staging"] {
    assert_eq!(fs::metadata(folder.path().join("new").join(name)).unwrap().permissions().mode() & 0o777, 0o700);
  }
}

#[test]
fn a_full_disk_is_told_from_other_failures_however_deep_it_is_wrapped() {
  let wrap = |kind: io::ErrorKind| object_store::Error::Generic { store: "test", source: Box::new(io::Error::other(io::Error::from(kind))) };
  assert!(matches!(crate::error::writing("x")(wrap(io::ErrorKind::StorageFull)), Error::DiskFull { .. }));
  assert!(matches!(crate::error::writing("x")(wrap(io::ErrorKind::QuotaExceeded)), Error::DiskFull { .. }));
  assert!(matches!(crate::error::writing("x")(wrap(io::ErrorKind::PermissionDenied)), Error::Write { .. }));
}

/// A file system of one megabyte, unmounted when dropped.
struct TinyDisk(tempfile::TempDir);

impl TinyDisk {
  fn mount() -> Self {
    let folder = tempfile::tempdir().unwrap();
    let status = std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path()).status().unwrap();
    assert!(status.success(), "root must be allowed to mount a tmpfs for this test");
    Self(folder)
  }
}

impl Drop for TinyDisk {
  fn drop(&mut self) {
    let status = std::process::Command::new("umount").arg(self.0.path()).status().unwrap();
    assert!(status.success() || std::thread::panicking());
  }
}

#[tokio::test]
async fn a_full_disk_is_a_clear_error_and_what_was_there_stays_readable() {
  // Only root may mount; for others the test above has to do.
  if !nix::unistd::Uid::effective().is_root() {
    return;
  }
  let disk = TinyDisk::mount();
  let blobs = Blobs::local(disk.0.path()).unwrap();
  let (agent, keys) = (agent(), keys(1));
  let kept = blobs.put(agent, &keys, random(300_000)).await.unwrap();
  let upload = SystemIds.new_id();
  let error = blobs.stage(upload, pieces(&random(2_000_000))).await.unwrap_err();
  assert!(matches!(&error, Error::DiskFull { .. }), "{error:?}");
  assert!(error.to_string().contains("disk is full"));
  blobs.stage(upload, pieces(&random(400_000))).await.unwrap();
  assert!(matches!(blobs.commit(agent, &keys, upload).await.unwrap_err(), Error::DiskFull { .. }), "no room for the sealed copy");
  assert_eq!(blobs.get_all(agent, &keys, &kept.name, FILE_BYTES_MAX).await.unwrap().len(), 300_000);
  assert_eq!(blobs.expire_staging(Timestamp(SystemClock.now().0 + 48 * 3_600_000)).await.unwrap(), 1);
  blobs.put(agent, &keys, random(400_000)).await.unwrap();
}

/// The format is permanent. These bytes were made by another implementation, from the description of the format.
#[tokio::test]
async fn a_blob_of_the_first_version_opens_for_ever() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let agent = agent();
  let name = "1c6c21dd34fa9594b519d495a6d74d061a018a781463f5a425a8cea927a8448e";
  let sealed = "50414231070707070707070707070707b0649665ccb23e7a975a820913cf1992d3e41261e359";
  let path = path_of(folder.path(), agent, name);
  fs::create_dir_all(path.parent().unwrap()).unwrap();
  fs::write(&path, hex::decode(sealed).unwrap()).unwrap();
  assert_eq!(blobs.get_all(agent, &keys(1), name, 100).await.unwrap(), "golden");
  assert_eq!(blobs.put(agent, &keys(1), Bytes::from_static(b"golden")).await.unwrap().name, name);
}

#[tokio::test]
async fn discarding_removes_an_upload_now() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  let upload = Uuid::from_u128(1);
  blobs.stage(upload, pieces(&random(10))).await.unwrap();
  blobs.discard(upload).await.unwrap();
  blobs.discard(upload).await.unwrap();
  assert_eq!(litter(folder.path()), 0);
}

#[tokio::test]
async fn a_store_keeps_its_first_mark_and_a_damaged_one_is_told() {
  let folder = tempfile::tempdir().unwrap();
  let blobs = Blobs::local(folder.path()).unwrap();
  assert_eq!(blobs.mark().await.unwrap(), None);
  let (one, two) = (SystemIds.new_id(), SystemIds.new_id());
  assert_eq!(blobs.mark_with(one).await.unwrap(), one);
  assert_eq!(Blobs::local(folder.path()).unwrap().mark_with(two).await.unwrap(), one);
  assert_eq!(blobs.mark().await.unwrap(), Some(one));
  blobs.expire_staging(SystemClock.now()).await.unwrap();
  fs::write(folder.path().join(crate::MARK), "something else").unwrap();
  assert!(matches!(blobs.mark().await, Err(Error::Damaged { .. })));
}
