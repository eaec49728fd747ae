//! Queries: pages, freshness, the audit, and how many statements they cost.

use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span;

use super::decider::Switches;
use super::world::{PATIENCE, World};

/// Collects the statements that are sent while it is the thread's subscriber.
#[derive(Clone, Default)]
struct Statements(Arc<Mutex<Vec<String>>>);

impl Visit for Statements {
  fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
    // The first words of a statement come first, and then the whole of one that is longer.
    match field.name() {
      "summary" => self.0.lock().push(format!("{value:?}")),
      "db.statement" => write!(self.0.lock().last_mut().expect("the summary comes first"), "{value:?}").unwrap(),
      _ => {}
    }
  }
}

impl tracing::Subscriber for Statements {
  fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
    metadata.target() == "sqlx::query"
  }
  fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
    span::Id::from_u64(1)
  }
  fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
  fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
  fn event(&self, event: &tracing::Event<'_>) {
    event.record(&mut self.clone());
  }
  fn enter(&self, _: &span::Id) {}
  fn exit(&self, _: &span::Id) {}
}

impl World {
  /// Asks, and answers with the statements that it cost beside the look-up of the credential.
  async fn cost(&self, query: &str, variables: Value) -> (Value, Vec<String>) {
    let statements = Statements::default();
    let answer = {
      // The test's runtime has one thread, so the server's work is seen.
      let _seen = tracing::subscriber::set_default(statements.clone());
      self.ask(query, variables).await
    };
    let mut sent = statements.0.lock().clone();
    // The pool looks at each connection before it hands it out, and the harness projects in this process.
    sent.retain(|statement| !statement.contains("statement_timestamp()") && !statement.contains("WITH committed"));
    let before = sent.len();
    sent.retain(|statement| !statement.contains("FROM ops.tokens"));
    assert_eq!(before - sent.len(), 1, "the credential is looked up once: {sent:?}");
    (answer, sent)
  }
}

const PAGE: &str = "query($last: Int, $before: String, $atLeast: Position) { conversation(atLeast: $atLeast) { id kind messages(last: $last, before: $before) { \
  pageInfo { hasPreviousPage hasNextPage startCursor endCursor } edges { cursor node { id } } nodes { id text role author status createdAt replyToId replyId \
  incomplete notice { code params { name value } } attachments { id name mediaType size sha256 url } } } } }";

impl World {
  /// Waits until the read model has a position: one answer that waits may be stale on a busy machine.
  pub(super) async fn reached(&self, position: &Value) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !self.ask(PAGE, json!({ "atLeast": position })).await["extensions"].is_null() {
      assert!(tokio::time::Instant::now() < deadline, "the read model does not reach {position}");
    }
  }
}

#[tokio::test]
async fn a_page_of_twenty_messages_costs_three_statements() {
  let world = World::new().await;
  let mut last = Value::Null;
  for n in 0..20 {
    let file: Value = world.post("/files").bearer_auth(&world.token).body("x").send().await.unwrap().json().await.unwrap();
    last = world.sent(json!({ "requestKey": n.to_string(), "text": "hello", "attachmentIds": [file["id"]] })).await["position"].clone();
  }
  world.reached(&last).await;
  let (answer, statements) = world.cost(PAGE, json!({ "last": 20, "atLeast": last })).await;
  assert_eq!(answer["data"]["conversation"]["messages"]["nodes"].as_array().unwrap().len(), 20);
  assert!(answer["extensions"].is_null(), "{answer}");
  assert!(statements.len() <= 3, "{statements:#?}");
}

#[tokio::test]
async fn what_the_page_asks_first_costs_five_statements() {
  let world = World::new().await;
  let boot = "{ viewer { account name role language } agent { id name position } settings { version timeZone model availableModels { name } } \
    indicator { needsInput running lastFailure { messageId position } } system { model { name rehearsal } foldedAnew { at because } } }";
  let (answer, statements) = world.cost(boot, json!({})).await;
  assert!(answer["errors"].is_null(), "{answer}");
  assert!(statements.len() <= 5, "{statements:#?}");
  assert!(statements[0].contains("agent_progress"), "the position is read first: {statements:#?}");
  assert_eq!(answer["data"]["system"]["model"], json!({ "name": "rehearsal", "rehearsal": true }));
}

#[tokio::test]
async fn pages_go_back_to_the_first_message_without_a_gap() {
  let world = World::new().await;
  for n in 0..7 {
    world.send(&n.to_string(), &format!("message {n}")).await;
  }
  let (mut before, mut texts, mut pages) = (Value::Null, Vec::new(), 0);
  loop {
    let answer = world.ask(PAGE, json!({ "last": 3, "before": before })).await;
    let messages = &answer["data"]["conversation"]["messages"];
    let page: Vec<String> = messages["nodes"].as_array().unwrap().iter().map(|node| node["text"].as_str().unwrap().to_owned()).collect();
    texts.splice(0..0, page);
    assert_eq!(messages["pageInfo"]["hasNextPage"], !before.is_null());
    before = messages["pageInfo"]["startCursor"].clone();
    pages += 1;
    if messages["pageInfo"]["hasPreviousPage"] == false {
      break;
    }
  }
  assert_eq!(pages, 3);
  assert_eq!(texts, (0..7).map(|n| format!("message {n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_answer_that_is_older_than_asked_says_so() {
  let world = World::new().await;
  world.switch(Switches { unprojected: true, ..Switches::default() });
  let position = world.send("k", "hello").await["position"].clone();
  assert!(position.is_string());
  let stale = world.ask(PAGE, json!({ "atLeast": position })).await;
  assert_eq!((&stale["extensions"]["stale"], &stale["data"]["conversation"]["messages"]["nodes"]), (&json!(true), &json!([])));
  world.switch(Switches::default());
  let fresh = world.ask(PAGE, json!({ "atLeast": position })).await;
  assert_eq!((&fresh["extensions"], &fresh["data"]["conversation"]["messages"]["nodes"][0]["text"]), (&Value::Null, &json!("hello")));
}

#[tokio::test]
async fn the_audit_shows_every_fact_with_its_body() {
  let world = World::new().await;
  let position = world.send("k", "hello").await["position"].clone();
  world.reached(&position).await;
  let query = "query($filter: AuditFilter, $first: Int, $after: String) { auditLog(filter: $filter, first: $first, after: $after) { pageInfo { hasNextPage endCursor } \
    nodes { ordinal type actor origin causeId correlationId inputPosition at body } } }";
  let answer = world.ask(query, json!({ "first": 3 })).await;
  let log = &answer["data"]["auditLog"];
  let types: Vec<&str> = log["nodes"].as_array().unwrap().iter().map(|node| node["type"].as_str().unwrap()).collect();
  assert_eq!(types, ["pa.agent.AgentCreated.v1", "pa.conversation.ConversationOpened.v1", "pa.settings.SettingsChanged.v1"], "{answer}");
  assert_eq!((&log["nodes"][0]["body"], &log["pageInfo"]["hasNextPage"]), (&json!({ "owner_name": "Ada" }), &json!(true)));
  let rest = world.ask(query, json!({ "after": log["pageInfo"]["endCursor"], "filter": { "types": ["pa.conversation.MessageAdmitted"] } })).await;
  let nodes = &rest["data"]["auditLog"]["nodes"];
  assert_eq!((nodes.as_array().unwrap().len(), &nodes[0]["body"]["text"], &nodes[0]["origin"]), (1, &json!("hello"), &json!("OWNER")), "{rest}");
  let nothing = world.ask(query, json!({ "filter": { "until": "2001-01-01T00:00:00Z" } })).await;
  assert_eq!(nothing["data"]["auditLog"]["nodes"], json!([]));
}

#[tokio::test]
async fn the_system_says_what_it_is() {
  let world = World::new().await;
  let query = "{ system { logKind partitions { id epoch lag } parked { agentId } roles { name node } version readSchema model { name rehearsal } } }";
  let system = world.ask(query, json!({})).await["data"]["system"].clone();
  assert_eq!((&system["logKind"], &system["partitions"]), (&json!("sim"), &json!([{ "id": 0, "epoch": 1, "lag": 0 }])));
  assert_eq!((&system["version"], &system["readSchema"]), (&json!("0.0.0-test"), &json!(pa_projections::schema::current().name())));
}

#[tokio::test]
async fn a_read_model_that_was_folded_anew_says_so_and_why() {
  let world = World::new().await;
  let query = "{ system { foldedAnew { at because } } }";
  assert_eq!(world.ask(query, json!({})).await["data"]["system"]["foldedAnew"], Value::Null);
  let schemas = pa_projections::schema::Schemas::new(&world.db.database);
  let schema = pa_projections::schema::current();
  let seen = schemas.positions(&schema).await.unwrap();
  assert!(schemas.reset(&schema, &seen, "the log is another one", 1_767_225_600_000).await.unwrap());
  let system = world.ask(query, json!({})).await["data"]["system"].clone();
  assert_eq!(system["foldedAnew"], json!({ "at": "2026-01-01T00:00:00.000Z", "because": "the log is another one" }), "{system}");
}

/// A restart of the database leaves dead connections in the pools; a request waits for a living one instead of failing.
#[tokio::test]
async fn connections_that_died_are_no_error_of_the_next_requests() {
  let world = World::new().await;
  for _ in 0..5 {
    futures::future::join_all((0..6).map(|_| world.ask("{ settings { version } }", json!({})))).await;
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(others).execute(&world.db.pool).await.unwrap();
    let answers = futures::future::join_all((0..6).map(|_| world.ask("{ settings { version } }", json!({})))).await;
    assert!(answers.iter().all(|answer| answer["errors"].is_null()), "{answers:?}");
  }
}

#[tokio::test]
async fn a_broken_database_is_said_without_its_words() {
  let world = World::new().await;
  sqlx::query(sqlx::AssertSqlSafe(format!("ALTER TABLE {}.settings RENAME TO gone", pa_projections::schema::current().name())))
    .execute(&world.db.pool)
    .await
    .unwrap();
  let answer = world.ask("{ settings { version } }", json!({})).await;
  assert_eq!((&answer["data"], &answer["errors"][0]["message"]), (&Value::Null, &json!("internal error")));
  assert_eq!(answer["errors"][0]["extensions"]["code"], "INTERNAL");
  assert_eq!(answer["errors"][0]["extensions"]["traceId"].as_str().unwrap().len(), 32);
}
