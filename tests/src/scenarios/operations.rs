//! Running it: what a process says of itself, the tools beside it, and logs that are not what they were.

use std::time::Duration;

use bytes::Bytes;
use pa_eventlog::meta::{self, partition_of};
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::{EventLog, Partition, Record, Stream};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::sound;
use crate::harness::{Client, Engine, Model, Process, Product, Setup, eventually};

/// `/healthz`, `/readyz`, `/metrics` on the page's own address, without a token.
#[tokio::test]
async fn a_process_says_that_it_lives_is_ready_and_what_it_counted() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  owner.send("count me").await;
  owner.settled().await;
  let get = async |path: &str| {
    let answer = owner.http.get(format!("{}{path}", product.url)).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
  };
  assert_eq!(get("/healthz").await.0, 200);
  assert_eq!(get("/readyz").await, (200, json!({ "ready": true, "reasons": {} }).to_string()));
  let (status, metrics) = get("/metrics").await;
  assert_eq!(status, 200);
  for name in ["pa_log_records_total", "pa_decider_", "pa_projector_facts_total", "pa_turn_seconds"] {
    assert!(metrics.contains(name), "{name} is counted:\n{metrics}");
  }
  let system = owner
    .ask("{ system { logKind partitions { id epoch lag } parked { agentId } roles { name node } version readSchema model { name rehearsal } } }", json!({}))
    .await;
  let system = &system["system"];
  assert_eq!((&system["logKind"], &system["model"]), (&json!("postgres"), &json!({ "name": "scripted", "rehearsal": false })));
  let mut roles: Vec<_> = system["roles"].as_array().unwrap().iter().map(|role| role["name"].as_str().unwrap()).collect();
  roles.sort_unstable();
  assert_eq!(roles, ["agent", "decider", "gateway", "projector", "scheduler"]);
  assert!(system["partitions"].as_array().unwrap().iter().all(|partition| partition["lag"] == 0), "{system}");
}

/// `pa log export`: JSON lines, content only on demand, one agent only on demand.
#[tokio::test]
async fn an_export_has_every_record_and_content_only_when_it_is_opened() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let (owner, other) = (product.owner(), product.add_account("Other"));
  for client in [&owner, &other] {
    client.send("the words of a person").await;
    client.settled().await;
  }
  let closed = product.tool(&["log", "export"]);
  assert_eq!(closed.code, Some(0), "{}", closed.err);
  assert!(!closed.out.contains("the words of a person"));
  let lines: Vec<Value> = closed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
  assert!(lines.iter().all(|line| line["headers"]["ce_type"].is_string() && line["meta"]["place"].is_object() && line["body"].is_null()));
  let dump = sound(&product);
  assert_eq!(dump.lines.len(), lines.len());
  assert!(dump.text.contains("the words of a person"));

  let agent = other.ask("{ agent { id } }", json!({})).await["agent"]["id"].as_str().unwrap().to_owned();
  let own = product.tool(&["log", "export", "--open", "--agent", &agent]);
  let lines: Vec<Value> = own.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
  assert!(lines.len() > 8 && lines.iter().all(|line| line["meta"]["core"]["agent"] == agent.as_str()), "{} lines", lines.len());
}

/// `pa verify` finds one changed cell and one missing row, and `pa rebuild` mends both.
#[tokio::test]
async fn verify_finds_what_was_changed_by_hand_and_rebuild_mends_it() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  for text in ["one", "two"] {
    owner.send(text).await;
  }
  let before = owner.settled().await;
  product.verify();
  let schema = owner.ask("{ system { readSchema } }", json!({})).await["system"]["readSchema"].as_str().unwrap().to_owned();
  for (what, statement) in [
    ("a cell", format!("UPDATE {schema}.entries SET body = 'forged' WHERE body = 'one'")),
    ("a row", format!("DELETE FROM {schema}.entries WHERE body = 're: two'")),
  ] {
    let changed = sqlx::query(AssertSqlSafe(statement)).execute(product.setup.pool()).await.unwrap().rows_affected();
    assert_eq!(changed, 1, "{what}");
    let found = product.tool(&["verify"]);
    assert_eq!(found.code, Some(1), "{what}: {}{}", found.out, found.err);
    assert!(found.out.contains("entries"), "the difference is named: {}", found.out);
    let rebuilt = product.tool(&["rebuild"]);
    assert_eq!(rebuilt.code, Some(0), "{}{}", rebuilt.out, rebuilt.err);
    product.verify();
  }
  eventually("the page shows the mended rows", async || (owner.messages().await == before).then_some(())).await;
}

/// A second `pa up` on one folder says so and ends; the first goes on.
#[tokio::test]
async fn a_second_start_on_one_folder_says_so_and_ends() {
  let mut product = Setup::new().await.start().await;
  let mut second = Process::start("second pa up", &["up"], &product.setup.env_with(&[("PA_LISTEN", "127.0.0.1:0")]));
  let status = second.dies().await;
  assert!(!status.success());
  let log = second.log();
  let pid = product.process().pid().to_string();
  assert!(log.contains(&pid) && log.contains("data"), "it names the folder and who has it: {log}");
  let id = product.owner().send("still here").await.id();
  product.owner().reply_to(&id).await;
}

/// The number of partitions is fixed when the log is made.
#[tokio::test]
async fn a_wrong_partition_count_stops_the_start_and_names_both_numbers() {
  let mut product = Setup::new().await.start().await;
  let id = product.owner().send("before").await.id();
  product.owner().reply_to(&id).await;
  product.terminate().await;
  product.launch(&[("PA__LOG__PARTITIONS", "4")]);
  let why = product.ready().await.unwrap_err();
  assert!(why.contains('4') && why.contains('8') && why.contains("partition"), "{why}");
  product.dies().await;
  product.start_again().await;
  assert_eq!(product.owner().messages().await.len(), 2);
  sound(&product);
}

/// A setting that can't be meant stops the start before anything is opened, and the key is named.
#[tokio::test]
async fn a_model_without_a_name_and_an_open_address_stop_the_start() {
  for (settings, word) in [
    ([("PA_MODEL_BASE_URL", "http://127.0.0.1:9/v1"), ("PA_MODEL_NAME", "")], "PA_MODEL_NAME"),
    ([("PA_LISTEN", "0.0.0.0:0"), ("PA_PUBLIC_URL", "")], "PA_ALLOW_INSECURE"),
  ] {
    let mut product = Setup::new().await.stopped();
    product.launch(&settings);
    let why = product.ready().await.unwrap_err();
    assert!(why.contains(word), "{why}");
    product.dies().await;
  }
}

// --- A log that is not what it was ---

async fn agent_of(client: &Client) -> (Uuid, Partition) {
  let data = client.ask("{ agent { id } }", json!({})).await;
  let id: Uuid = data["agent"]["id"].as_str().unwrap().parse().unwrap();
  (id, partition_of(pa_domain::AgentId(id), 8))
}

/// Accounts in two partitions, beside the installation's own.
async fn accounts_apart(product: &Product) -> [(Client, Partition); 2] {
  let installation = partition_of(pa_domain::ids::INSTALLATION, 8);
  let mut found: Vec<(Client, Partition)> = Vec::new();
  for n in 0..40 {
    let client = product.add_account(&format!("Account {n}"));
    let (_, partition) = agent_of(&client).await;
    if partition != installation && found.iter().all(|(_, other)| *other != partition) {
      found.push((client, partition));
    }
    if found.len() == 2 {
      break;
    }
  }
  found.try_into().unwrap_or_else(|_| panic!("forty accounts and one partition"))
}

/// Appends a record that a newer binary might have written: in its place, and of a schema that nobody here knows.
async fn append_unknown(product: &Product, partition: Partition) {
  let log = PostgresLog::open(&product.setup.test_db().database, 8, true).await.unwrap();
  log.set_others(true);
  let end = log.end(Stream::Events, partition).await.unwrap();
  let last = log.read(Stream::Events, partition, end - 1, 1).await.unwrap()[0].clone();
  let mut meta = meta::decode(last.record.id, &last.record.meta).unwrap();
  assert!(!meta.is_about_partition(), "the last record is an event of an agent");
  let id = Uuid::new_v5(&last.record.id, b"unknown");
  meta.core.id = id;
  meta.core.ordinal += 1;
  meta.place.seq += 1;
  (meta.place.part, meta.place.parts) = (1, 1);
  let mut value = last.record.value.to_vec();
  value[2..10].copy_from_slice(b"unknown!");
  let record = Record { id, meta: meta::encode(&meta).unwrap(), value: Bytes::from(value), ..last.record.clone() };
  log.append(Stream::Events, partition, vec![record]).await.unwrap();
}

/// An unknown fingerprint stops its partition, with a reason, and no other one.
#[tokio::test]
async fn an_unknown_fingerprint_stops_its_partition_and_no_other() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let [(stuck, partition), (free, _)] = accounts_apart(&product).await;
  for client in [&stuck, &free] {
    client.send("before").await;
    client.settled().await;
  }
  append_unknown(&product, partition).await;
  for life in ["in the middle", "after a restart"] {
    let reasons = eventually("it says what it can't read", async || {
      let (status, ready) = product.readyz().await;
      let reasons = ready["reasons"].to_string();
      (status == 503 && reasons.contains("unknown schema")).then_some(reasons)
    })
    .await;
    assert!(reasons.contains(&format!("decider {partition}")) || reasons.contains(&format!("partition {partition}")), "{life}: {reasons}");
    let id = free.send(&format!("on another partition, {life}")).await.id();
    free.reply_to(&id).await;
    // What it shows of the stopped partition stays.
    assert!(stuck.messages().await.iter().any(|message| message.text == "before"), "{life}");
    // Taken in, and not decided: nothing is lost, nothing is promised.
    let sent = stuck.send(&format!("waits, {life}")).await;
    assert!(!sent.decided, "{sent:?}");
    if life == "in the middle" {
      product.kill9();
      product.launch(&[]);
      eventually("it answers again", async || product.owner().get("/healthz").await.ok()).await;
      eventually("the other partitions work", async || free.try_send("probe", "probe").await.filter(|sent| sent.decided)).await;
    }
  }
}

/// A record whose place was damaged, so that the fence takes it and the rest of its term for a stale decider's: `pa rebuild` and `pa verify` name the first ordinal that
/// is missing and end with 1, the next start says so, and the others go on.
#[tokio::test]
async fn a_rebuild_over_a_damaged_log_ends_with_1_and_names_who_is_parked_where() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let [(damaged, partition), (other, _)] = accounts_apart(&product).await;
  for client in [&damaged, &other] {
    client.send("before").await;
    client.settled().await;
  }
  let (agent, _) = agent_of(&damaged).await;
  product.restart9().await;
  // A later term has more of it, and that does not follow what is lost.
  damaged.send("after").await;
  damaged.settled().await;
  let dump = product.dump();
  let lost = dump.events().find(|line| line.agent == agent.to_string() && line.kind == "MessageAdmitted").unwrap();
  product.terminate().await;
  damage(&product, partition, lost.offset).await;

  let parked = format!("agent {agent} is parked from ordinal {}: the chain of events is broken", lost.ordinal);
  for arguments in [&["rebuild"][..], &["rebuild", "--agent", &agent.to_string()]] {
    let rebuilt = product.tool(arguments);
    assert_eq!(rebuilt.code, Some(1), "{}{}", rebuilt.out, rebuilt.err);
    assert_eq!(rebuilt.out.lines().filter(|line| line.contains("parked")).count(), 1, "{}", rebuilt.out);
    assert!(rebuilt.out.contains(&parked), "{}", rebuilt.out);
  }
  let verified = product.tool(&["verify"]);
  assert_eq!(verified.code, Some(1), "{}{}", verified.out, verified.err);
  assert!(verified.out.contains(&format!("chain of agent {agent}: broken at ordinal {}", lost.ordinal)), "{}", verified.out);
  product.start_again().await;
  assert!(product.process().log().contains("an agent's read model stands still"), "{}", product.process().log());
  let id = other.send("still here").await.id();
  other.reply_to(&id).await;
}

/// Changes what an event says of its place in its term.
async fn damage(product: &Product, partition: Partition, offset: i64) {
  let log = PostgresLog::open(&product.setup.test_db().database, 8, true).await.unwrap();
  let stored = log.read(Stream::Events, partition, offset, 1).await.unwrap()[0].clone();
  let mut meta = meta::decode(stored.record.id, &stored.record.meta).unwrap();
  meta.place.seq += 1;
  let damaged = meta::encode(&meta).unwrap();
  let update = sqlx::query("UPDATE log.events SET meta = $1 WHERE part = $2 AND pos = $3");
  let update = update.bind(damaged.to_vec()).bind(i16::try_from(partition).unwrap()).bind(offset);
  assert_eq!(update.execute(product.setup.pool()).await.unwrap().rows_affected(), 1);
}

/// A lost key is told and never replaced: the installation's stops the start, an agent's stops that agent's requests.
#[tokio::test]
async fn a_lost_key_is_told_and_not_made_anew() {
  a_key_is_lost(Engine::Embedded).await;
}

pub(super) async fn a_key_is_lost(engine: Engine) {
  let mut product = Setup::on(engine).await.start().await;
  let [(lost, _), (other, _)] = accounts_apart(&product).await;
  let (agent, _) = agent_of(&lost).await;
  product.terminate().await;
  let pool = product.setup.pool().clone();
  let keys =
    async |agent: Uuid| -> i64 { sqlx::query_scalar("SELECT count(*) FROM ops.agent_keys WHERE agent = $1").bind(agent).fetch_one(&pool).await.unwrap() };
  sqlx::query("DELETE FROM ops.agent_keys WHERE agent = $1").bind(agent).execute(&pool).await.unwrap();
  product.start_again().await;
  let (_, refused) = lost.post("mutation { sendMessage(input: { requestKey: \"k\", text: \"hello\" }) { decided } }", json!({})).await.unwrap();
  assert_eq!(refused["errors"][0]["extensions"]["code"], "KEY_LOST", "{refused}");
  let id = other.send("still here").await.id();
  other.reply_to(&id).await;
  assert_eq!(keys(agent).await, 0);
  product.terminate().await;

  sqlx::query("DELETE FROM ops.agent_keys WHERE agent = $1").bind(pa_domain::ids::INSTALLATION.0).execute(&pool).await.unwrap();
  product.launch(&[]);
  let why = product.ready().await.unwrap_err();
  assert!(why.contains("agent installation has no key 1") && why.contains("restore the database's backup"), "{why}");
  product.dies().await;
  assert_eq!(keys(pa_domain::ids::INSTALLATION.0).await, 0);
}

/// The last events and inputs of a log are gone, as after a restore of an older copy, while the read model and checkpoints are newer.
#[tokio::test]
async fn a_log_that_was_cut_behind_the_read_model_is_noticed_and_shown_as_it_is() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let first = owner.send("kept").await.id();
  owner.reply_to(&first).await;
  let (_, partition) = agent_of(&owner).await;
  product.terminate().await;
  let part = i16::try_from(partition).unwrap();
  let pool = product.setup.pool().clone();
  let heads = "SELECT array_agg(next ORDER BY stream) FROM log.heads WHERE part = $1 AND stream IN ('events', 'inputs')";
  let old: Vec<i64> = sqlx::query_scalar(heads).bind(part).fetch_one(&pool).await.unwrap();
  product.start_again().await;
  let owner = product.owner();
  let second = owner.send("cut away").await.id();
  owner.reply_to(&second).await;
  product.terminate().await;
  for (table, stream, next) in [("events", "events", old[0]), ("inputs", "inputs", old[1])] {
    sqlx::query(AssertSqlSafe(format!("DELETE FROM log.{table} WHERE part = $1 AND pos >= $2"))).bind(part).bind(next).execute(&pool).await.unwrap();
    sqlx::query("UPDATE log.heads SET next = $3 WHERE part = $1 AND stream = $2").bind(part).bind(stream).bind(next).execute(&pool).await.unwrap();
  }
  product.start_again().await;
  let owner = product.owner();
  let texts: Vec<_> = owner.messages().await.into_iter().map(|message| message.text).collect();
  assert_eq!(texts, ["kept", "re: kept"], "the log is the truth");
  let third = owner.send("and on").await.id();
  owner.reply_to(&third).await;
  sound(&product);
}

/// Another log stands in the database: the read model of the old one is not shown for it.
#[tokio::test]
async fn a_log_that_was_replaced_makes_the_read_model_anew() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  owner.send("of the old log").await;
  let before = owner.settled().await;
  product.terminate().await;
  let schema: String = sqlx::query_scalar("SELECT schema_name::text FROM information_schema.schemata WHERE schema_name LIKE 'read\\_%' LIMIT 1")
    .fetch_one(product.setup.pool())
    .await
    .unwrap();
  sqlx::query("UPDATE ops.log_identity SET id = gen_random_uuid()").execute(product.setup.pool()).await.unwrap();
  // What only the old read model had must go.
  sqlx::query(AssertSqlSafe(format!("UPDATE {schema}.entries SET body = 'only in the old read model' WHERE body = 'of the old log'")))
    .execute(product.setup.pool())
    .await
    .unwrap();
  product.start_again().await;
  assert_eq!(product.owner().messages().await, before);
  let system = product.owner().ask("{ system { foldedAnew { at because } } }", json!({})).await;
  let because = system["system"]["foldedAnew"]["because"].as_str().expect("it is said that all was folded anew");
  assert!(because.contains("comes from log"), "{because}");
  let id = product.owner().send("of the new one").await.id();
  product.owner().reply_to(&id).await;
  sound(&product);
}

/// A graceful stop ends soon although a socket is open and a request to the model hangs.
#[tokio::test]
async fn a_stop_does_not_wait_for_sockets_or_models() {
  let (model, hold) = Model::holding("hang", "x", "y").await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mut socket = owner.updates(None).await;
  owner.send("hang").await;
  hold.reached().await;
  let status = tokio::time::timeout(Duration::from_secs(20), product.terminate()).await.expect("it ends soon");
  assert!(status.success());
  while let Ok(said) = socket.hears().await {
    assert_ne!(said["type"], "error", "{said}");
  }
}
