//! Several nodes over one database: each answers everything, and one that does not share the others' files does not start.

use pa_model::rehearsal::{Hold, Reply};

use super::sound;
use crate::harness::{Client, Engine, Model, Process, Product, Setup, eventually};

/// One key for all nodes.
const MASTER_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// A second node beside a product, with a data folder of its own.
fn second(product: &Product, more: &[(&str, &str)]) -> Process {
  let folder = product.setup.data().with_file_name("second").display().to_string();
  let own = [("PA_DATA_DIR", folder.as_str()), ("PA_LISTEN", "127.0.0.1:0")];
  Process::start("the second node", &["up"], &product.setup.env_with(&[&own, more].concat()))
}

/// A file is taken in by one node, sent and shown by the other; a reply that one writes is seen growing at the other; the partitions are shared.
async fn each_node_answers_everything(engine: Engine) {
  let model = Model::silent().await;
  let hold = Hold::new();
  model.script.once_on_words("with a file", Reply::new().say("I am ").hold(&hold).say("reading it"));
  let setup = Setup::on(engine).await.model(&model).env("PA_MASTER_KEY", MASTER_KEY);
  let shared = setup.data().display().to_string();
  let mut product = setup.env("PA__DATA__SHARED_DIR", &shared).start().await;
  let mut node = second(&product, &[]);
  let url = node.prints("listening").await.unwrap_or_else(|why| panic!("{why}"));
  let (here, there) = (product.owner(), Client::new(&url, crate::harness::TOKEN));

  let held = async || {
    let rows = pa_store::lease::partition::read(product.setup.pool()).await.unwrap();
    let mut held = std::collections::BTreeMap::new();
    for row in rows.into_iter().filter(|row| row.live) {
      *held.entry(row.holder.unwrap().process).or_insert(0) += 1;
    }
    held.into_values().collect::<Vec<usize>>()
  };
  eventually("each node leads half of the partitions", async || (held().await == [4, 4]).then_some(())).await;

  let (status, file) = here.upload("notes.txt", "text/plain", b"what the file says".to_vec()).await;
  assert_eq!(status, 200, "{file}");
  let mut pages = [here.updates(None).await, there.updates(None).await];
  let id = there.send_with("with a file", &[file["id"].as_str().unwrap()]).await.id();
  for page in &mut pages {
    assert_eq!(page.text_with("I am ").await, "I am ");
  }
  hold.release();
  for client in [&here, &there] {
    assert_eq!(client.reply_to(&id).await.text, "I am reading it");
    let message = client.has_status(&id, "ANSWERED").await;
    let answer = client.get(message.attachments[0]["url"].as_str().unwrap()).await.unwrap();
    assert_eq!(answer.bytes().await.unwrap(), "what the file says", "each node shows the file");
  }

  // When one ends in order the other has them all at once.
  assert!(node.terminate().await.success());
  eventually("one node leads all partitions", async || (held().await == [8]).then_some(())).await;
  let id = here.send_surely("alone").await.id();
  here.reply_to(&id).await;
  assert!(product.process().ended().is_none());
  sound(&product);
}

/// Proves RUN-15.
#[tokio::test]
async fn each_of_two_nodes_answers_everything_and_leads_half_of_the_partitions() {
  each_node_answers_everything(Engine::Embedded).await;
}

/// Proves RUN-15.
#[tokio::test]
async fn on_kafka_each_of_two_nodes_answers_everything_and_leads_half_of_the_partitions() {
  each_node_answers_everything(Engine::Kafka).await;
}

/// A node would keep files where the others never look.
#[tokio::test]
async fn a_node_that_does_not_share_the_others_files_or_key_does_not_start() {
  let mut product = Setup::new().await.env("PA_MASTER_KEY", MASTER_KEY).start().await;
  let (_, file) = product.owner().upload("notes.txt", "text/plain", b"kept here".to_vec()).await;
  let folder = product.setup.data().with_file_name("second");

  // No folder is named: its own has nothing in it.
  let mut node = second(&product, &[]);
  assert!(!node.dies().await.success());
  let log = node.log();
  assert!(log.contains("the files of this installation are not in") && log.contains(&folder.display().to_string()), "{log}");
  assert!(log.contains("PA__DATA__SHARED_DIR"), "it says what to set: {log}");

  // The folder of another installation.
  let other = tempfile::tempdir().unwrap();
  std::fs::write(other.path().join("files.id"), "6f1b7a3e-6d0e-4a5e-9a5e-0d6c1c9be001\n").unwrap();
  let mut node = second(&product, &[("PA__DATA__SHARED_DIR", &other.path().display().to_string())]);
  assert!(!node.dies().await.success());
  assert!(node.log().contains("are not those of this installation"), "{}", node.log());

  // Another key would open nothing.
  let shared = product.setup.data().display().to_string();
  let mut node = second(&product, &[("PA__DATA__SHARED_DIR", &shared), ("PA_MASTER_KEY", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY=")]);
  assert!(!node.dies().await.success());
  assert!(node.log().contains("the master key is not the one"), "{}", node.log());

  // The first one is none the worse for it.
  assert!(product.process().ended().is_none());
  product.owner().send_with("mine", &[file["id"].as_str().unwrap()]).await.id();
}
