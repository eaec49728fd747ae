//! Postgres is away, the disk is full: a clear word, nothing accepted is lost, and it goes on by itself when it can.
//!
//! These tests have threads of their own for the network, since the tools beside the product are waited for by blocking.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::sound;
use crate::harness::{Client, Model, Promise, Proxy, Setup, check_promises, eventually, fresh_key, within};

/// Postgres is not there when it starts: it waits, says so, and starts when it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_waits_for_an_absent_postgres_and_says_so() {
  let model = Model::echo().await;
  let setup = Setup::new().await.model(&model);
  let mut network = Proxy::of(&setup.test_db().url).await;
  let mut product = setup.env("PA_DATABASE_URL", network.url()).stopped();
  product.launch(&[]);
  product.process().says("waiting for Postgres").await;
  assert!(product.process().ended().is_none() && product.process().printed("listening").is_none());
  network.join().await;
  product.ready().await.unwrap();
  let id = product.owner().send("there you are").await.id();
  product.owner().reply_to(&id).await;
  sound(&product);
}

/// Postgres goes away in the middle and comes back, twice: what was accepted is answered once, what was not is refused clearly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_may_go_away_in_the_middle_and_come_back() {
  let model = Model::echo().await;
  let setup = Setup::new().await.model(&model);
  let mut network = Proxy::of(&setup.test_db().url).await;
  network.join().await;
  let product = setup.env("PA_DATABASE_URL", network.url()).start().await;
  let owner = product.owner();
  let mut promises = Vec::new();
  for round in 0..2 {
    for n in 0..3 {
      let text = format!("round {round}, message {n}");
      // Connections that broke are found out by using them; the same request again is the same message.
      eventually("it takes messages", async || owner.try_send(&text, &text).await).await;
      promises.push(Promise { text, accepted: true });
    }
    network.cut().await;
    assert_eq!(owner.get("/healthz").await.unwrap().status(), 200, "it is alive without Postgres");
    eventually("it says that it is not ready", async || (product.readyz().await.0 == 503).then_some(())).await;
    let text = format!("round {round}, while it is away");
    let (status, answer) = send(&owner, &text).await;
    assert!(status == 503 || !answer["errors"].is_null(), "nobody may promise anything: {status} {answer}");
    promises.push(Promise { text, accepted: false });
    network.join().await;
    product.caught_up().await;
  }
  let last = eventually("it takes messages", async || owner.try_send("the last", "the last").await.filter(|sent| sent.decided)).await;
  owner.reply_to(&last.id()).await;
  promises.push(Promise { text: "the last".into(), accepted: true });
  check_promises(&promises, &owner.settled().await);
  sound(&product);
}

async fn send(owner: &Client, text: &str) -> (u16, serde_json::Value) {
  let mutation = "mutation($input: SendMessageInput!) { sendMessage(input: $input) { decided userErrors { code } } }";
  owner.post(mutation, json!({ "input": { "requestKey": fresh_key("s"), "text": text } })).await.unwrap()
}

/// A file system of its own, small enough to be filled.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
  const MEGABYTES: u32 = 220;

  fn mounted(at: &'a Path) -> Self {
    std::fs::create_dir_all(at).unwrap();
    let size = format!("size={}m,mode=711", Self::MEGABYTES);
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).status().unwrap();
    assert!(mounted.success(), "this test needs the right to mount a small file system");
    Self(at)
  }

  /// Fills it up to the last byte.
  fn fill(&self) {
    let filler = std::fs::File::create(self.0.join("filler")).unwrap();
    // Ends when there is no room: that is its purpose.
    let copied = std::io::copy(&mut std::io::repeat(7), &mut &filler);
    assert!(copied.is_err(), "the disk is full");
  }

  fn free(&self) {
    std::fs::remove_file(self.0.join("filler")).unwrap();
  }
}

impl Drop for SmallDisk<'_> {
  fn drop(&mut self) {
    // The postmaster and the product are gone, or going: the mount disappears with its last user.
    Command::new("umount").arg("-l").arg(self.0).status().unwrap();
  }
}

/// The disk is full under Postgres, files and all: refused clearly, and when there is room again it goes on by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_clearly_and_loses_nothing() {
  let model = Model::echo().await;
  let setup = Setup::private().await.model(&model);
  let folder = setup.data();
  let disk = SmallDisk::mounted(&folder);
  let product = setup.start().await;
  let owner = product.owner();
  let mut promises = Vec::new();
  for n in 0..3 {
    let text = format!("before {n}");
    owner.send(&text).await;
    promises.push(Promise { text, accepted: true });
  }
  owner.settled().await;
  disk.fill();

  let (status, answer) = owner.upload("file.bin", "application/octet-stream", vec![1; 4 * 1024 * 1024]).await;
  assert_eq!((status, &answer["errors"][0]["extensions"]["code"]), (507, &json!("STORAGE_FULL")), "{answer}");
  // Postgres has some room left inside its own files; messages go in until it has none.
  let mut refused = false;
  for n in 0..400 {
    let text = format!("full {n} {}", "x".repeat(200_000));
    let (status, answer) = send(&owner, &text).await;
    let accepted = status == 200 && answer["errors"].is_null();
    promises.push(Promise { text, accepted });
    if !accepted {
      assert!(status == 503 || status == 507 || status == 200, "a clear answer: {status} {answer}");
      refused = true;
      break;
    }
  }
  assert!(refused, "a full disk takes no message");
  assert_eq!(owner.get("/healthz").await.unwrap().status(), 200, "it is alive");

  disk.free();
  let again = within(Duration::from_secs(120), "it goes on by itself", async || owner.try_send("again", "again").await.filter(|sent| sent.decided)).await;
  owner.reply_to(&again.id()).await;
  promises.push(Promise { text: "again".into(), accepted: true });
  check_promises(&promises, &owner.settled().await);
  sound(&product);
  drop(product);
  drop(disk);
}
