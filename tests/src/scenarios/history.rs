//! What the log can show again: another version built while one serves, one agent's rows anew, conversations as they were, and damage that is named.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pa_eventlog::Partition;
use pa_eventlog::meta::partition_of;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::sound;
use crate::harness::{Client, Message, Model, Product, Setup, eventually};

/// Makes a process a later version of the product: its tables and its decider's state are others.
const LATER: (&str, &str) = ("PA_TEST_GENERATION", "1");

/// Somebody who writes one message after the other, each until it is decided, while versions come and go.
struct Writer {
  stop: Arc<AtomicBool>,
  writing: JoinSet<Vec<String>>,
}

impl Writer {
  fn start(client: Client, name: &'static str) -> Self {
    let (stop, mut writing) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    let stopped = Arc::clone(&stop);
    writing.spawn(async move {
      let mut texts = Vec::new();
      while !stopped.load(Ordering::Relaxed) {
        let text = format!("{name} {}", texts.len());
        client.send_surely(&text).await;
        texts.push(text);
      }
      texts
    });
    Self { stop, writing }
  }

  /// The texts that were taken, in their order.
  async fn end(mut self) -> Vec<String> {
    self.stop.store(true, Ordering::Relaxed);
    self.writing.join_next().await.expect("there is one").expect("it does not panic")
  }
}

fn given(messages: &[Message]) -> Vec<String> {
  messages.iter().filter(|message| message.role == "OWNER").map(|message| message.text.clone()).collect()
}

async fn read_schema(client: &Client) -> String {
  client.ask("{ system { readSchema } }", json!({})).await["system"]["readSchema"].as_str().expect("a name").to_owned()
}

async fn agent_of(client: &Client) -> (Uuid, Partition) {
  let id: Uuid = client.ask("{ agent { id } }", json!({})).await["agent"]["id"].as_str().expect("an id").parse().expect("an id");
  (id, partition_of(pa_domain::AgentId(id), 8))
}

/// `pa migrate` builds a later version's tables and state while messages flow; nothing is lost, the old version serves until the exchange, and the later one has nothing
/// left to build. The old one can be started again.
///
/// Proves DEP-13.
#[tokio::test]
async fn a_later_version_is_built_while_the_old_one_serves_and_starts_without_building() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let first = owner.send_as("first key", "first").await.id();
  owner.reply_to(&first).await;
  let old = read_schema(&owner).await;
  let writer = Writer::start(owner.clone(), "while it is built");

  for time in ["from the beginning", "what came in meanwhile"] {
    let migrated = product.tool_with(&["migrate"], &[LATER]);
    assert_eq!(migrated.code, Some(0), "{time}: {}{}", migrated.out, migrated.err);
    assert_eq!(migrated.out.lines().filter(|line| line.contains("built from")).count(), 2, "{time}: {}", migrated.out);
    assert_eq!(read_schema(&owner).await, old, "the old one serves");
    let id = owner.send(&format!("beside {time}")).await.id();
    owner.reply_to(&id).await;
  }
  let later = i64::from(pa_domain::state::FOLD_VERSION) + 1;
  let marks = "SELECT count(*) FROM ops.decider_checkpoint WHERE fold_version = $1 AND next_position > 1";
  let built: i64 = sqlx::query_scalar(marks).bind(later).fetch_one(product.setup.pool()).await.unwrap();
  assert!(built > 0, "the later decider's state is there before it starts");

  product.terminate().await;
  product.setup.set(LATER.0, LATER.1);
  product.start_again().await;
  assert!(!product.process().log().contains("built the read schema"), "{}", product.process().log());
  let owner = product.owner();
  assert_ne!(read_schema(&owner).await, old);
  let texts = writer.end().await;
  let shown = given(&owner.settled().await);
  assert_eq!(shown.iter().filter(|text| text.starts_with("while it is built")).cloned().collect::<Vec<_>>(), texts, "every message once, in order");
  let repeated = owner.send_as("first key", "first").await;
  assert_eq!(repeated.id(), first, "the later version knows the keys of the old one");
  assert_eq!(given(&owner.settled().await), shown);

  let again = product.tool(&["migrate"]);
  assert_eq!((again.code, again.out.matches("in use").count()), (Some(0), 2), "{}{}", again.out, again.err);
  sound(&product);

  // Back to the old version: what it has is brought up to the end.
  product.terminate().await;
  product.setup.set(LATER.0, "0");
  product.start_again().await;
  assert_eq!(read_schema(&product.owner()).await, old);
  assert_eq!(given(&product.owner().settled().await), shown);
  sound(&product);
}

/// Data that a newer version has written stops an older one, with a word about what to do.
///
/// Proves DEP-13.
#[tokio::test]
async fn a_version_older_than_its_data_does_not_start_and_says_which_one_to_start() {
  let mut product = Setup::new().await.start().await;
  product.terminate().await;
  let migration =
    "INSERT INTO ops.migrations (version, description, success, checksum, execution_time) VALUES (999912312359, 'of the future', true, '\\x00', 0)";
  sqlx::query(migration).execute(product.setup.pool()).await.unwrap();
  product.launch(&[]);
  let why = product.ready().await.unwrap_err();
  assert!(why.contains("written by a newer version of pa") && why.contains("start that version"), "{why}");
  product.dies().await;
  for arguments in [&["verify"][..], &["migrate"], &["rebuild"]] {
    let tool = product.tool(arguments);
    assert_ne!(tool.code, Some(0), "{arguments:?}");
    assert!(tool.err.contains("written by a newer version of pa"), "{arguments:?}: {}", tool.err);
  }
}

const PAST: &str = "query($asOf: AsOf, $id: ID) { conversation(id: $id, asOf: $asOf) { id messages(last: 200) { nodes { id conversationId place changed role text status \
  replyToId replyId incomplete createdAt notice { code params { name value } } attachments { id name mediaType size sha256 url } } } } }";

async fn as_of(client: &Client, as_of: Value) -> Vec<Message> {
  let data = client.ask(PAST, json!({ "asOf": as_of })).await;
  serde_json::from_value(data["conversation"]["messages"]["nodes"].clone()).expect("entries")
}

/// A conversation at an earlier position or instant is what was shown then, whatever has happened since: replies, a stop, a retry, a rebuild, a restart.
#[tokio::test]
async fn a_conversation_is_shown_as_it_was() {
  let (model, hold) = Model::holding("held", "half of it", " and the rest").await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mut seen: Vec<(String, Vec<Message>)> = Vec::new();
  let mut look = async || {
    let messages = owner.settled().await;
    let position = owner.ask("{ agent { position } }", json!({})).await["agent"]["position"].as_str().expect("a position").to_owned();
    assert_eq!(owner.settled().await, messages, "nothing is on its way");
    seen.push((position, messages));
  };
  let (status, file) = owner.upload("notes.txt", "text/plain", b"what was said".to_vec()).await;
  assert_eq!(status, 200, "{file}");
  owner.send_with("with a file", &[file["id"].as_str().expect("an id")]).await;
  look().await;
  let held = owner.send("held").await.id();
  hold.reached().await;
  owner.stop(&held).await;
  owner.has_status(&held, "STOPPED").await;
  look().await;
  owner.retry(&held).await;
  hold.release();
  owner.has_status(&held, "ANSWERED").await;
  look().await;
  for n in 0..3 {
    owner.send(&format!("more {n}")).await;
  }
  look().await;

  for life in ["as it came", "rebuilt", "started again"] {
    match life {
      "rebuilt" => assert_eq!(product.tool(&["rebuild"]).code, Some(0)),
      "started again" => product.restart9().await,
      _ => {}
    }
    let owner = product.owner();
    owner.settled().await;
    for (position, then) in &seen {
      assert_eq!(as_of(&owner, json!({ "position": position })).await, *then, "{life}: at {position}");
    }
    let now = owner.messages().await;
    let (newest, _) = seen.last().expect("there are some");
    assert_eq!(as_of(&owner, json!({ "position": newest })).await, now, "{life}: as of now it is what is shown now");
    let at = &seen[0].1.last().expect("a reply").created_at;
    assert!(as_of(&owner, json!({ "time": at })).await.iter().all(|message| message.created_at <= *at), "{life}");
  }
  let other = product.add_account("Eve");
  let id = &seen[0].1[0].conversation_id;
  let theirs = other.ask(PAST, json!({ "id": id, "asOf": { "position": "1" } })).await;
  assert_eq!(theirs["conversation"], Value::Null, "another's conversation is none");
  sound(&product);
}

/// The last byte of a stored event's value.
async fn flip(product: &Product, partition: Partition, offset: i64) {
  let statement = "UPDATE log.events SET value = set_byte(value, length(value) - 1, get_byte(value, length(value) - 1) # 1) WHERE part = $1 AND pos = $2";
  let done = sqlx::query(statement).bind(i16::try_from(partition).unwrap()).bind(offset).execute(product.setup.pool()).await.unwrap();
  assert_eq!(done.rows_affected(), 1);
}

/// One changed byte of a stored event is named by `pa verify` with its agent, ordinal and place. `pa rebuild --agent` then parks that agent there, and once the byte is
/// what it was builds its rows again in place, while others are served.
#[tokio::test]
async fn one_changed_byte_of_an_event_is_named_and_its_agent_is_built_again_alone() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let damaged = product.add_account("Damaged");
  for text in ["one", "two"] {
    damaged.send(text).await;
  }
  let whole = damaged.settled().await;
  let (agent, partition) = agent_of(&damaged).await;
  let dump = product.dump();
  let event = dump.events().find(|line| line.agent == agent.to_string() && line.kind == "MessageAdmitted" && line.body["text"] == "two").expect("it is there");
  let last = dump.events().rfind(|line| line.agent == agent.to_string()).expect("it is there");
  let owner = product.owner();
  let writer = Writer::start(owner.clone(), "served meanwhile");

  for line in [event, last] {
    flip(&product, partition, line.offset).await;
    let verified = product.tool(&["verify"]);
    assert_eq!(verified.code, Some(1), "{}{}", verified.out, verified.err);
    let parked = format!("table parked agent {agent}: 0 rows, 1 by the log");
    assert!(verified.out.contains(&parked), "what can't be read is named: {}", verified.out);
    let follows = format!("chain of agent {agent}: broken at ordinal {}", line.ordinal + 1);
    // Behind the last one that was seen there may be another by now: a worker asks once more for what is done.
    assert!(verified.out.contains(&follows) || line.ordinal == last.ordinal, "{}", verified.out);
    // The last record of its partition is also what the read model's position names.
    let here = |line: &str| line.contains(&agent.to_string()) || line.starts_with(&format!("partition {partition}: position"));
    assert!(verified.out.lines().all(here), "nobody else: {}", verified.out);

    let rebuilt = product.tool(&["rebuild", "--agent", &agent.to_string()]);
    assert_eq!(rebuilt.code, Some(1), "{}{}", rebuilt.out, rebuilt.err);
    assert!(rebuilt.out.contains(&format!("agent {agent} is parked from ordinal")), "{}", rebuilt.out);
    flip(&product, partition, line.offset).await;
    let rebuilt = product.tool(&["rebuild", "--agent", &agent.to_string()]);
    assert_eq!(rebuilt.code, Some(0), "{}{}", rebuilt.out, rebuilt.err);
    eventually("its rows are there again", async || (damaged.messages().await == whole).then_some(())).await;
  }
  let texts = writer.end().await;
  assert_eq!(given(&owner.settled().await), texts, "nobody else was held up or lost anything");
  let id = damaged.send("and it goes on").await.id();
  damaged.reply_to(&id).await;
  sound(&product);
}

/// One agent's rows that were changed by hand are built again in place, all of them, while messages of that agent and of others flow.
#[tokio::test]
async fn one_agents_rows_are_built_again_in_place_while_it_is_served() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let (owner, other) = (product.owner(), product.add_account("Other"));
  owner.send("before").await;
  owner.settled().await;
  let (agent, _) = agent_of(&owner).await;
  let writers = [Writer::start(owner.clone(), "mine"), Writer::start(other.clone(), "theirs")];
  let schema = read_schema(&owner).await;
  for change in
    ["UPDATE {}.entries SET body = 'forged' WHERE agent = $1 AND body = 'before'", "DELETE FROM {}.entries WHERE agent = $1 AND body = 're: before'"]
  {
    let statement = change.replace("{}", &schema);
    let done = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(agent).execute(product.setup.pool()).await.unwrap();
    assert_eq!(done.rows_affected(), 1, "{change}");
    let rebuilt = product.tool(&["rebuild", "--agent", &agent.to_string()]);
    assert_eq!(rebuilt.code, Some(0), "{}{}", rebuilt.out, rebuilt.err);
  }
  let [mine, theirs] = writers;
  let (mine, theirs) = (mine.end().await, theirs.end().await);
  assert_eq!(given(&owner.settled().await), [vec!["before".to_owned()], mine].concat());
  assert_eq!(given(&other.settled().await), theirs);
  sound(&product);
}

/// What measures a million events works, on a few thousand: every tool ends with 0, alone and while people write, and each has its line.
#[test]
fn the_tools_that_go_through_a_whole_log_are_measured_alone_and_beside_people() {
  let mut command = std::process::Command::new("setpriv");
  command.args(["--pdeathsig", "TERM", "--", env!("CARGO_BIN_EXE_bench"), "--only", "million", "--tiny", "--pa", env!("CARGO_BIN_EXE_pa-under-test")]);
  let output = command.stdin(std::process::Stdio::null()).output().expect("the bench can be started");
  let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
  assert!(output.status.success(), "the bench ended with {}:\n{out}\n{err}", output.status);
  let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
  let names: Vec<&str> = lines.iter().filter_map(|line| line["name"].as_str()).collect();
  assert_eq!(names, ["rebuild", "migrate", "rebuild_beside", "verify_beside", "migrate_beside"], "{out}");
  for line in &lines {
    let positive = |field: &str| line[field].as_f64().is_some_and(|number| number > 0.0);
    assert!(["ours", "events", "seconds", "peak_mb"].into_iter().all(positive), "{line}");
    let beside = line["name"].as_str().is_some_and(|name| name.ends_with("_beside"));
    assert!(!beside || ["turn_p50_ms", "turn_p99_ms", "turn_p50_ms_without"].into_iter().all(positive), "{line}");
  }
}
