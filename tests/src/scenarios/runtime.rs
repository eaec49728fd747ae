//! "Runtime": order, the queue, leases, limits, and what a request to the model holds.

use std::time::Duration;

use pa_model::rehearsal::{Hold, Reply};
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::sound;
use crate::harness::{Model, Setup, eventually, text_of_last};

/// Reading whole, by pages, after a rebuild and after a restart: the same entries in the same order.
///
/// Proves RUN-10, RUN-28.
#[tokio::test]
async fn pages_reload_rebuild_and_restart_keep_the_order() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  for n in 1..=12 {
    owner.send(&format!("message {n}")).await;
  }
  let whole = owner.settled().await;
  assert_eq!(whole.len(), 24);
  assert!(whole.windows(2).all(|pair| pair[0].place < pair[1].place));

  let (mut paged, mut before, mut pages) = (Vec::new(), None, 0);
  loop {
    let (mut page, older) = owner.page(5, before.as_deref(), None).await;
    assert!(page.len() <= 5);
    page.append(&mut paged);
    paged = page;
    pages += 1;
    if older.is_none() {
      break;
    }
    before = older;
  }
  assert_eq!((pages, &paged), (5, &whole));

  assert_eq!(product.tool(&["rebuild"]).code, Some(0));
  eventually("the rebuilt model is in use", async || (owner.messages().await == whole).then_some(())).await;
  product.restart9().await;
  assert_eq!(product.owner().messages().await, whole);
  sound(&product);
}

/// What waits is a row of a table with its lease, and it is there after the process has died.
///
/// Proves RUN-14, RUN-15, REP-37.
#[tokio::test]
async fn what_waits_stands_in_postgres_with_its_lease() {
  let (model, hold) = Model::holding("held", "begun ", "and done").await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let first = owner.send("held").await.id();
  let second = owner.send("waits").await.id();
  hold.reached().await;

  let schema = read_schema(&owner).await;
  let running: i64 = count(&product, &format!("SELECT count(*) FROM {schema}.jobs WHERE id = '{first}'")).await;
  assert_eq!(running, 1, "the running reply is a row of the queue");
  let lease = "SELECT count(*) FROM ops.leases WHERE job = $1::uuid AND process IS NOT NULL AND execution = 1 \
    AND expires_at > now() AND expires_at < now() + interval '11 seconds'";
  eventually("the running reply has a lease", async || (count_of(&product, lease, &first).await == 1).then_some(())).await;
  assert_eq!(count_of(&product, "SELECT count(*) FROM ops.leases WHERE job = $1::uuid", &second).await, 0, "who waits has none");
  assert_eq!(owner.has_status(&second, "PENDING").await.text, "waits");

  product.kill9();
  assert_eq!(count(&product, &format!("SELECT count(*) FROM {schema}.jobs WHERE id = '{first}'")).await, 1);
  hold.release();
  product.start_again().await;
  let messages = product.owner().settled().await;
  assert_eq!(messages.iter().filter(|message| message.status == "ANSWERED").count(), 2);
  assert_eq!(count(&product, &format!("SELECT count(*) FROM {schema}.jobs")).await, 0, "nothing waits any more");
  sound(&product);
}

async fn read_schema(owner: &crate::harness::Client) -> String {
  owner.ask("{ system { readSchema } }", json!({})).await["system"]["readSchema"].as_str().unwrap().to_owned()
}

async fn count(product: &crate::harness::Product, statement: &str) -> i64 {
  sqlx::query_scalar(AssertSqlSafe(statement.to_owned())).fetch_one(product.setup.pool()).await.unwrap()
}

async fn count_of(product: &crate::harness::Product, statement: &str, id: &str) -> i64 {
  sqlx::query_scalar(AssertSqlSafe(statement.to_owned())).bind(id).fetch_one(product.setup.pool()).await.unwrap()
}

/// Proves RUN-19.
#[tokio::test]
async fn a_turn_may_take_any_number_of_steps() {
  const STEPS: usize = 40;
  let model = Model::silent().await;
  for step in 0..STEPS {
    model.script.queue(Reply::new().call(&format!("call_{step}"), "pa_history", "{}"));
  }
  model.script.queue(Reply::text("After all that: yes."));
  let product = Setup::new().await.model(&model).env("PA__MODEL__CONTEXT_TOKENS", "200000").start().await;
  let owner = product.owner();
  let id = owner.send("look very thoroughly").await.id();
  assert_eq!(owner.reply_to(&id).await.text, "After all that: yes.");
  let dump = sound(&product);
  assert_eq!(dump.story(&id).iter().filter(|kind| **kind == "CallReturned").count(), STEPS);
}

/// A request that hangs is ended by its own limit and made again; the conversation goes on.
///
/// Proves RUN-22.
#[tokio::test]
async fn a_model_request_that_hangs_runs_out_and_is_made_again() {
  let (never, also_never) = (Hold::new(), Hold::new());
  let model = Model::silent().await;
  model.script.queue(Reply::text("lost").held_from_the_start(&never));
  model.script.queue(Reply::new().say("half").hold(&also_never));
  model.script.queue(Reply::text("third time lucky"));
  let product = Setup::new().await.model(&model).env("PA__MODEL__FIRST_BYTE_TIMEOUT_SECS", "1").env("PA__MODEL__IDLE_TIMEOUT_SECS", "1").start().await;
  let owner = product.owner();
  let id = owner.send("are you there?").await.id();
  assert_eq!(owner.reply_to(&id).await.text, "third time lucky");
  assert_eq!(model.script.requests().len(), 3);
  assert_eq!(sound(&product).story(&id).iter().filter(|kind| **kind == "ExecutionStarted").count(), 1, "it is one attempt of the reply");
}

/// Each request states the time in the owner's zone and as much history as the window allows, newest first, whole messages.
///
/// Proves RUN-26.
#[tokio::test]
async fn a_request_states_the_time_and_carries_bounded_history() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).env("PA__MODEL__CONTEXT_TOKENS", "4096").env("PA__MODEL__OUTPUT_TOKENS_MAX", "512").start().await;
  let owner = product.owner();
  let set = owner
    .ask(
      "mutation($input: UpdateSettingsInput!) { updateSettings(input: $input) { settings { timeZone } userErrors { code } } }",
      json!({ "input": { "requestKey": "zone", "version": 1, "timeZone": "Asia/Tokyo" } }),
    )
    .await;
  assert_eq!(set["updateSettings"]["settings"]["timeZone"], "Asia/Tokyo", "{set}");
  for n in 1..=8 {
    let id = owner.send(&format!("fact {n}: {}", "lorem ipsum dolor ".repeat(60))).await.id();
    owner.reply_to(&id).await;
  }
  let id = owner.send("the question").await.id();
  owner.reply_to(&id).await;

  let request = model.script.requests().pop().unwrap();
  assert_eq!(text_of_last(&request), "the question");
  let system = request.system_text();
  assert!(system.contains("Asia/Tokyo (UTC+09:00)"), "{system}");
  let said: Vec<String> = request.messages().iter().filter(|message| message["role"] == "user").map(|message| message["content"].to_string()).collect();
  let facts: Vec<usize> = (1..=8).filter(|n| said.iter().any(|text| text.contains(&format!("fact {n}:")))).collect();
  assert!(!facts.is_empty() && facts.len() < 8, "some of the history fits: {facts:?}");
  assert_eq!(facts, ((9 - facts.len())..=8).collect::<Vec<_>>(), "the newest, without gaps");
  for n in facts {
    let whole = format!("fact {n}: {}", "lorem ipsum dolor ".repeat(60));
    assert!(said.iter().any(|text| text.contains(whole.trim())), "fact {n} is whole");
  }
  let bytes = request.body["messages"].to_string().len();
  assert!(bytes < 4_096 * 4, "{bytes} bytes are more than the window");
  sound(&product);
}

/// SIGTERM: what runs goes back into the queue, uncounted, and the next life finishes it.
#[tokio::test]
async fn a_graceful_stop_yields_what_runs() {
  let (model, hold) = Model::holding("long", "a beginning ", "and an end").await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let id = owner.send("long").await.id();
  hold.reached().await;
  let status = tokio::time::timeout(Duration::from_secs(30), product.terminate()).await.expect("it ends soon");
  assert!(status.success(), "{status}");
  hold.release();
  product.start_again().await;
  assert_eq!(product.owner().reply_to(&id).await.text, "a beginning and an end");
  let dump = sound(&product);
  let story = dump.story(&id);
  assert!(story.contains(&"ExecutionYielded") && !story.contains(&"ExecutionLost"), "{story:?}");
}
