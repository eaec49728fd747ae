//! Moving: the log to Kafka and back, a backup taken while messages flow and brought back elsewhere, and everything that can be wrong with either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pa_domain::AgentId;
use pa_store::keys::{MasterKey, secrets};
use pa_store::testing::TestDb;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use uuid::Uuid;

use super::sound;
use crate::harness::{Client, Dump, Engine, Message, Model, Process, Product, Setup, Tool, eventually};

/// The installation's master key, as base64 of 32 bytes.
const MASTER: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const ANOTHER: &str = "YW5vdGhlciBrZXkgb2YgdGhpcnR5LXR3byBieXRlcyE=";

async fn setup(model: &Model) -> Setup {
  Setup::new().await.model(model).env("PA_MASTER_KEY", MASTER)
}

fn succeeded(tool: &Tool) -> &str {
  assert_eq!(tool.code, Some(0), "{}{}", tool.out, tool.err);
  &tool.out
}

fn refused(tool: &Tool, words: &[&str]) {
  assert_eq!(tool.code, Some(1), "{}{}", tool.out, tool.err);
  for word in words {
    assert!(tool.err.contains(word), "{word:?} is not said: {}", tool.err);
  }
}

/// The value of `name=value` in what a tool printed, last word first.
fn value<'a>(out: &'a str, name: &str) -> &'a str {
  out.split_whitespace().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or_else(|| panic!("no {name}= in {out}"))
}

/// Each agent's facts, without where they stand: number, id, type, body.
fn facts(dump: &Dump) -> BTreeMap<String, Vec<(i64, String, String, String)>> {
  let mut facts: BTreeMap<String, Vec<_>> = BTreeMap::new();
  for line in dump.events().filter(|line| line.kind != "EpochAnnounced") {
    facts.entry(line.agent.clone()).or_default().push((line.ordinal, line.id.clone(), line.kind.clone(), line.body.to_string()));
  }
  facts
}

/// Every agent has all that it had, in the same order, and maybe more.
fn goes_on_from(now: &Dump, before: &Dump) {
  let now = facts(now);
  for (agent, facts) in facts(before) {
    assert_eq!(now[&agent][..facts.len()], facts[..], "agent {agent}");
  }
}

fn texts(messages: &[Message]) -> Vec<&str> {
  messages.iter().filter(|message| message.role == "OWNER").map(|message| message.text.as_str()).collect()
}

/// All is there after a move; what was asked before is not done again, and what is asked now is done.
async fn works_on(product: &Product, before: &[Message], asked: (&str, &str)) {
  let owner = product.owner();
  eventually("every message is there", async || (owner.messages().await == before).then_some(())).await;
  let (key, text) = asked;
  let first = before.iter().find(|message| message.text == text).expect("it was asked before");
  assert_eq!(owner.send_as(key, text).await.id(), first.id, "the same request is the same message");
  let new = owner.send("after the move").await.id();
  owner.reply_to(&new).await;
  let after = owner.settled().await;
  assert_eq!(after[..before.len()], *before, "nothing was done twice");
  assert_eq!(after.len(), before.len() + 2, "one message and its reply");
}

/// It ends by itself, and says why.
async fn does_not_start(product: &mut Product, words: &str) {
  product.launch(&[]);
  let status = product.process().dies().await;
  let said = product.process().log();
  product.kill9();
  assert!(!status.success() && said.contains(words), "{said}");
}

/// Embedded, to Kafka with other partitions, and back with others again; repeats stay repeats.
///
/// Proves REP-30, REP-34.
#[tokio::test]
async fn a_log_moves_to_kafka_and_back_and_nothing_is_lost_or_done_twice() {
  let model = Model::echo().await;
  let mut product = setup(&model).await.env("PA__LOG__PARTITIONS", "2").start().await;
  let kafka = tokio::task::spawn_blocking(pa_eventlog::kafka::testing::config).await.expect("a real Kafka");
  let to = format!("kafka://{}/{}", kafka.brokers, kafka.prefix);
  let other = product.add_account("Other");
  for client in [&product.owner(), &other] {
    client.send_as("once", "one").await;
    client.send("two").await;
    client.settled().await;
  }
  // While it runs, what is there is copied, and nothing else happens.
  let early = product.tool(&["log", "copy", "--to", &to, "--partitions", "3"]);
  refused(&early, &["pa is running"]);
  product.owner().send("three").await;
  let before = product.owner().settled().await;
  product.terminate().await;
  let embedded = sound(&product);
  let moved = product.tool(&["log", "copy", "--to", &to, "--partitions", "3"]);
  let out = succeeded(&moved);
  assert!(out.contains("from an earlier attempt") && out.contains("equal") && out.contains("/s)"), "{out}");
  assert_eq!((value(out, "log"), value(out, "agents")), ("kafka", "3"));
  let hash = value(out, "hash").to_owned();

  // The old settings are refused, the new ones are those that it named.
  does_not_start(&mut product, "a log of kind kafka").await;
  for (name, value) in [("PA_KAFKA_BROKERS", kafka.brokers.as_str()), ("PA_KAFKA_PREFIX", &kafka.prefix), ("PA__LOG__PARTITIONS", "3")] {
    assert!(out.contains(&format!("{name}={value}")), "{out}");
    product.setup.set(name, value);
  }
  product.verify();
  product.start_again().await;
  works_on(&product, &before, ("once", "one")).await;
  product.owner().settled().await;
  let before = product.owner().settled().await;
  product.terminate().await;
  let on_kafka = sound(&product);
  goes_on_from(&on_kafka, &embedded);

  let back = product.tool(&["log", "copy", "--to", "postgres", "--partitions", "5"]);
  let out = succeeded(&back);
  assert_ne!(value(out, "hash"), hash, "more happened since");
  for (name, value) in [("PA_KAFKA_BROKERS", ""), ("PA_KAFKA_PREFIX", ""), ("PA__LOG__PARTITIONS", "5")] {
    product.setup.set(name, value);
  }
  product.verify();
  product.start_again().await;
  works_on(&product, &before, ("once", "one")).await;
  goes_on_from(&sound(&product), &on_kafka);
}

/// A copy that dies before its last step is a copy of nothing; what waits is settled by the next.
#[tokio::test]
async fn a_copy_that_dies_changes_nothing_and_goes_on_when_it_is_called_again() {
  let model = Model::echo().await;
  let mut product = setup(&model).await.start().await;
  let kafka = tokio::task::spawn_blocking(pa_eventlog::kafka::testing::config).await.expect("a real Kafka");
  let to = format!("kafka://{}/{}", kafka.brokers, kafka.prefix);
  let on_kafka = [("PA_KAFKA_BROKERS", kafka.brokers.as_str()), ("PA_KAFKA_PREFIX", kafka.prefix.as_str())];
  product.owner().send("one").await;
  product.owner().settled().await;
  product.terminate().await;
  let died = product.tool_with(&["log", "copy", "--to", &to], &[("PA_FAIL", "copy.before_switch:1")]);
  assert!(died.code != Some(0) && died.out.contains("equal"), "it dies at the last step: {}{}", died.out, died.err);
  let mut started = Process::start("pa up on the half copy", &["up"], &product.setup.env_with(&on_kafka));
  assert!(!started.dies().await.success() && started.log().contains("a log of kind postgres"), "{}", started.log());
  product.start_again().await;
  product.owner().send("two").await;
  let before = product.owner().settled().await;
  // Accepted, and its reply perhaps not yet: the copy settles what waits.
  product.owner().send("three").await;
  product.kill9();
  let moved = product.tool(&["log", "copy", "--to", &to]);
  assert!(succeeded(&moved).contains("from an earlier attempt"), "{}", moved.out);
  for (name, value) in on_kafka {
    product.setup.set(name, value);
  }
  product.start_again().await;
  let after = product.owner().settled().await;
  assert_eq!(after[..before.len()], before[..]);
  assert_eq!(texts(&after), ["one", "two", "three"]);
  sound(&product);
  // Not twice, and not onto itself.
  product.terminate().await;
  refused(&product.tool(&["log", "copy", "--to", &to]), &["where the log lies already"]);
  refused(&product.tool(&["log", "copy", "--to", "elsewhere"]), &["neither postgres nor kafka://"]);
}

/// Another place: an empty data folder and an empty database. A second product would have to wait for room while the first one holds its own.
struct Elsewhere {
  db: TestDb,
  folder: tempfile::TempDir,
}

impl Elsewhere {
  async fn new() -> Self {
    Self { db: TestDb::new().await, folder: tempfile::tempdir().unwrap() }
  }

  fn settings(&self) -> Vec<(String, String)> {
    let data = self.folder.path().join("data").display().to_string();
    vec![("PA_DATA_DIR".to_owned(), data), ("PA_DATABASE_URL".to_owned(), self.db.url.clone())]
  }

  /// Runs a tool there, with settings more.
  fn tool(&self, product: &Product, arguments: &[&str], more: &[(&str, &str)]) -> Tool {
    let settings = self.settings();
    let all: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(more.iter().copied()).collect();
    product.tool_with(arguments, &all)
  }

  /// From here on the product lives there.
  fn take(&self, product: &mut Product) {
    for (name, value) in self.settings() {
      product.setup.set(&name, &value);
    }
  }
}

/// Sends until it is told to stop; what was acknowledged, in order.
async fn load(client: Client, stop: Arc<AtomicBool>, acknowledged: Arc<parking_lot::Mutex<Vec<String>>>) {
  for n in 0.. {
    if stop.load(Ordering::SeqCst) {
      return;
    }
    let text = format!("message {n}");
    client.send(&text).await;
    acknowledged.lock().push(text);
  }
}

/// A file of the backup whose path begins so.
fn file_in(dir: &Path, folder: &str, begins: &str) -> PathBuf {
  let entries = std::fs::read_dir(dir.join(folder)).unwrap().map(|entry| entry.unwrap().path());
  let mut found: Vec<_> = entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(begins)).collect();
  found.sort_unstable_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().len()));
  found.into_iter().next().unwrap_or_else(|| panic!("no {folder}/{begins}…"))
}

/// Taken under load, brought back elsewhere with other partitions: all that was acknowledged before the cut, and a prefix of what came; files and secrets too.
///
/// Proves REP-30.
#[tokio::test]
async fn a_backup_under_load_comes_back_elsewhere_with_all_that_was_acknowledged_before_it() {
  let model = Model::echo().await;
  let mut product = setup(&model).await.start().await;
  let owner = product.owner();
  let (_, file) = owner.upload("note.txt", "text/plain", b"the content of a file".to_vec()).await;
  let with_file = owner.send_with("see the file", &[file["id"].as_str().unwrap()]).await.id();
  owner.reply_to(&with_file).await;
  let agent: Uuid = owner.ask("{ agent { id } }", json!({})).await["agent"]["id"].as_str().unwrap().parse().unwrap();
  let (master, secret) = (MasterKey::from_base64(&SecretString::from(MASTER)).unwrap(), Uuid::from_u128(77));
  secrets::put(product.setup.pool(), &master, secret, AgentId(agent), &SecretString::from("planted")).await.unwrap();
  owner.send_as("once", "asked once").await;

  let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::default());
  let mut sending = tokio::task::JoinSet::new();
  sending.spawn(load(owner.clone(), Arc::clone(&stop), Arc::clone(&acknowledged)));
  eventually("messages flow", async || (acknowledged.lock().len() > 5).then_some(())).await;
  let folder = tempfile::tempdir().unwrap();
  let dir = folder.path().join("backup");
  let acknowledged_before = acknowledged.lock().clone();
  let (env, at) = (product.setup.env_with(&[]), dir.clone());
  let made = tokio::task::spawn_blocking(move || crate::harness::run(&["backup", at.to_str().unwrap()], &env)).await.unwrap();
  assert!(succeeded(&made).contains("the master key is not in it"), "{}", made.out);
  let there = acknowledged.lock().len();
  eventually("messages flow on", async || (acknowledged.lock().len() > there).then_some(())).await;
  stop.store(true, Ordering::SeqCst);
  sending.join_all().await;
  let all = owner.settled().await;
  product.terminate().await;

  let elsewhere = Elsewhere::new().await;
  elsewhere.take(&mut product);
  product.setup.set("PA__LOG__PARTITIONS", "5");
  let restored = product.tool(&["restore", dir.to_str().unwrap()]);
  let out = succeeded(&restored);
  assert_eq!(value(out, "hash"), value(&made.out, "hash"));
  assert!(out.ends_with("equal\n"), "it ends with the comparison: {out}");
  product.start_again().await;
  let owner = product.owner();
  let messages = owner.settled().await;
  let (back, all) = (texts(&messages), texts(&all));
  assert!(all.starts_with(&back), "a prefix of what came: {back:?}");
  assert!(acknowledged_before.iter().all(|text| back.contains(&text.as_str())), "acknowledged before the cut: {acknowledged_before:?}, there: {back:?}");
  let url = messages.iter().find(|message| message.id == with_file).unwrap().attachments[0]["url"].as_str().unwrap().to_owned();
  let path = url.strip_prefix(&product.url).unwrap_or(&url);
  assert_eq!(owner.get(path).await.unwrap().bytes().await.unwrap(), "the content of a file");
  let opened = secrets::get(&elsewhere.db.pool, &master, secret, AgentId(agent)).await.unwrap().unwrap();
  assert_eq!(opened.expose_secret(), "planted");
  let count = messages.len();
  owner.send_as("once", "asked once").await;
  assert_eq!(owner.settled().await.len(), count, "the same request has no second effect");
  sound(&product);
}

/// Half of one, a changed byte, another master key, a place that is not empty: each is told, and nothing is written.
#[tokio::test]
async fn what_is_wrong_with_a_backup_is_told_before_anything_is_written() {
  let model = Model::echo().await;
  let mut product = setup(&model).await.start().await;
  product.owner().send("one").await;
  let before = product.owner().settled().await;
  product.terminate().await;
  let folder = tempfile::tempdir().unwrap();
  let dir = folder.path().join("backup");
  let path = dir.to_str().unwrap();
  let half = product.tool_with(&["backup", path], &[("PA_FAIL", "backup.before_manifest:1")]);
  assert_ne!(half.code, Some(0));
  let elsewhere = Elsewhere::new().await;
  refused(&elsewhere.tool(&product, &["restore", path], &[]), &["no whole backup", "manifest.json"]);
  refused(&product.tool(&["backup", path]), &["is not empty"]);
  std::fs::remove_dir_all(&dir).unwrap();
  succeeded(&product.tool(&["backup", path]));

  for (folder, begins) in [("log", "events-"), ("rows", "agent_keys")] {
    let file = file_in(&dir, folder, begins);
    let whole = std::fs::read(&file).unwrap();
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    std::fs::write(&file, changed).unwrap();
    let name = format!("{folder}/{}", file.file_name().unwrap().to_string_lossy());
    refused(&elsewhere.tool(&product, &["restore", path], &[]), &["nothing was written", &name, "was changed"]);
    std::fs::write(&file, whole).unwrap();
  }
  refused(&elsewhere.tool(&product, &["restore", path], &[("PA_MASTER_KEY", ANOTHER)]), &["nothing was written", "master key"]);
  refused(&elsewhere.tool(&product, &["restore", path], &[("PA_MASTER_KEY", "")]), &["master.key", "is missing", "PA_MASTER_KEY"]);
  let rows: i64 =
    sqlx::query_scalar("SELECT (SELECT count(*) FROM ops.log_identity) + (SELECT count(*) FROM ops.agent_keys) + (SELECT count(*) FROM log.events)")
      .fetch_one(&elsewhere.db.pool)
      .await
      .unwrap();
  assert_eq!(rows, 0);
  refused(&product.tool(&["restore", path]), &["there is an installation here already"]);

  // One that dies is no installation, and goes on when it is called again.
  let died = elsewhere.tool(&product, &["restore", path], &[("PA_FAIL", "restore.before_switch:1")]);
  assert_ne!(died.code, Some(0));
  elsewhere.take(&mut product);
  does_not_start(&mut product, "pa restore").await;
  succeeded(&product.tool(&["restore", path]));
  product.start_again().await;
  eventually("all is there", async || (product.owner().messages().await == before).then_some(())).await;
  sound(&product);
}

/// The database is gone and the log is not: the backup brings the keys back, and the log keeps what came after it. Whose keys the backup has not is told.
///
/// Proves REP-34.
#[tokio::test]
async fn a_log_that_outlived_its_database_is_kept_with_all_that_came_after_the_backup() {
  let model = Model::echo().await;
  let mut product = setup(&model).await.log_on(Engine::Kafka).await.start().await;
  product.owner().send("before the backup").await;
  product.owner().settled().await;
  let folder = tempfile::tempdir().unwrap();
  let dir = folder.path().join("backup");
  let path = dir.to_str().unwrap();
  succeeded(&product.tool(&["backup", path]));
  product.owner().send("after the backup").await;
  let before = product.owner().settled().await;
  product.terminate().await;

  let elsewhere = Elsewhere::new().await;
  elsewhere.take(&mut product);
  does_not_start(&mut product, "restore the backup").await;
  let restored = product.tool(&["restore", path]);
  assert!(succeeded(&restored).contains("kept as it is"), "{}", restored.out);
  product.start_again().await;
  eventually("all is there", async || (product.owner().messages().await == before).then_some(())).await;
  let late = product.add_account("Late");
  late.send("whose key is in no backup").await;
  late.settled().await;
  product.terminate().await;

  // Its database is lost as well, and the only backup knows nothing of the late account.
  let third = Elsewhere::new().await;
  refused(&third.tool(&product, &["restore", path], &[]), &["newer than the backup", "PA_KAFKA_PREFIX"]);
}
