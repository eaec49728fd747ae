//! Intake and restart: what was accepted is there once, in order, whatever died and however often it was sent.

use std::time::Duration;

use pa_model::rehearsal::{Hold, Reply};
use serde_json::json;

use super::sound;
use crate::harness::{Engine, Model, Promise, Setup, check_promises, text_of_last, within};

/// One message is held at the model, nine more are accepted, everything is killed.
///
/// Proves BB-01, REP-30, REP-32, REP-34, RUN-14.
#[tokio::test]
async fn bb_01_everything_accepted_is_answered_once_in_order_after_a_kill() {
  everything_accepted_is_answered_once(Engine::Embedded).await;
}

/// Proves BB-01, REP-30, REP-32, REP-34, RUN-14.
#[tokio::test]
async fn on_kafka_bb_01_everything_accepted_is_answered_once_in_order_after_a_kill() {
  everything_accepted_is_answered_once(Engine::Kafka).await;
}

async fn everything_accepted_is_answered_once(engine: Engine) {
  let model = Model::silent().await;
  let hold = Hold::new();
  model.script.once_on_words("m1", Reply::new().say("re: ").hold(&hold));
  model.script.on(|seen| Some(Reply::text(&format!("re: {}", text_of_last(seen)))));
  let mut product = Setup::on(engine).await.model(&model).start().await;
  let owner = product.owner();
  owner.send("m1").await;
  hold.reached().await;
  let texts: Vec<String> = (1..=10).map(|n| format!("m{n}")).collect();
  for text in &texts[1..] {
    owner.send(text).await;
  }
  product.restart9().await;

  // At once after the start: every message, with its state.
  let owner = product.owner();
  let shown: Vec<_> = owner.messages().await.into_iter().filter(|message| message.role == "OWNER").map(|message| message.text).collect();
  assert_eq!(shown, texts);
  let messages = owner.settled().await;
  let promises: Vec<_> = texts.iter().map(|text| Promise { text: text.clone(), accepted: true }).collect();
  check_promises(&promises, &messages);
  assert!(messages.iter().all(|message| message.role != "NOTICE"));
  let replies: Vec<_> = messages.iter().filter(|message| message.role == "AGENT").map(|message| message.text.clone()).collect();
  assert_eq!(replies, texts.iter().map(|text| format!("re: {text}")).collect::<Vec<_>>());
  // Nobody sent anything again, and no answered message was asked about twice.
  let dump = sound(&product);
  assert_eq!(dump.inputs().filter(|line| line.kind == "MessageGiven").count(), 10);
  assert!(texts[1..].iter().all(|text| model.asked_about(text).len() == 1));
  assert_eq!(model.asked_about("m1").len(), 2);
}

/// The same request five times: twice at once, later, after the answer, after a restart.
///
/// Proves BB-02, REP-30.
#[tokio::test]
async fn bb_02_a_request_sent_five_times_is_one_message_one_turn_one_reply() {
  a_request_is_sent_five_times(Engine::Embedded).await;
}

/// Proves BB-02, REP-30.
#[tokio::test]
async fn on_kafka_bb_02_a_request_sent_five_times_is_one_message_one_turn_one_reply() {
  a_request_is_sent_five_times(Engine::Kafka).await;
}

async fn a_request_is_sent_five_times(engine: Engine) {
  let (model, hold) = Model::holding("only once", "once ", "and for all").await;
  let mut product = Setup::on(engine).await.model(&model).start().await;
  let owner = product.owner();
  let (one, two) = tokio::join!(owner.send_as("k", "only once"), owner.send_as("k", "only once"));
  hold.reached().await;
  // Each is answered although the model hangs.
  let three = tokio::time::timeout(Duration::from_secs(20), owner.send_as("k", "only once")).await.expect("answered while the model is held");
  hold.release();
  owner.reply_to(&three.id()).await;
  let four = owner.send_as("k", "only once").await;
  product.restart9().await;
  let five = product.owner().send_as("k", "only once").await;
  let ids: Vec<_> = [&one, &two, &three, &four, &five].iter().map(|sent| sent.id()).collect();
  assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");

  let messages = product.owner().settled().await;
  check_promises(&[Promise { text: "only once".into(), accepted: true }], &messages);
  assert_eq!(messages.len(), 2);
  assert_eq!(model.script.requests().len(), 1);
  let dump = sound(&product);
  assert_eq!(dump.of("MessageAdmitted").len(), 1);
  assert_eq!(dump.of("ReplyRequested").len(), 1);
  assert_eq!(dump.of("ExecutionStarted").len(), 1);
}

/// The process dies after it has seen the message and before, while or right after it queues it; the client sends it again under the same key.
///
/// Proves BB-04, REP-30.
#[tokio::test]
async fn bb_04_a_crash_between_seen_and_queued_processes_it_exactly_once() {
  a_crash_between_seen_and_queued(Engine::Embedded).await;
}

/// Proves BB-04, REP-30.
#[tokio::test]
async fn on_kafka_bb_04_a_crash_between_seen_and_queued_processes_it_exactly_once() {
  a_crash_between_seen_and_queued(Engine::Kafka).await;
}

async fn a_crash_between_seen_and_queued(engine: Engine) {
  let model = Model::echo().await;
  let mut product = Setup::on(engine).await.model(&model).start().await;
  let mut promises = Vec::new();
  for point in ["gateway.before_append", "gateway.after_append", "decider.before_append", "decider.after_append", "projector.before_commit"] {
    product.kill9();
    product.start_armed(point).await;
    let (key, text) = (format!("key of {point}"), format!("death at {point}"));
    let first = product.owner().try_send(&key, &text).await;
    product.dies().await;
    product.start_again().await;
    let again = product.owner().send_as(&key, &text).await;
    if let Some(id) = first.and_then(|sent| sent.message).map(|message| message.id) {
      assert_eq!(again.id(), id, "{point}");
    }
    promises.push(Promise { text, accepted: true });
    let messages = product.owner().settled().await;
    check_promises(&promises, &messages);
  }
  let dump = sound(&product);
  assert_eq!(dump.of("MessageAdmitted").len(), promises.len());
  assert_eq!(dump.of("ReplyPosted").len(), promises.len());
}

/// A NUL and half a surrogate pair, in what the owner writes and in what the model writes.
///
/// Proves BB-06.
#[tokio::test]
async fn bb_06_nul_and_lone_surrogates_are_replaced_and_stop_nothing() {
  let model = Model::silent().await;
  model.script.queue(Reply::new().say_escaped(r"A\u0000B").say_escaped(r"\ud800C").say_escaped(r" \udc00D"));
  // A tool's result with what the owner wrote.
  model.script.queue(Reply::new().call("call_1", "pa_history", "{}"));
  model.script.queue(Reply::text("fine"));
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mutation = "mutation($input: SendMessageInput!) { sendMessage(input: $input) { message { id text } userErrors { code } } }";
  let body = format!(r#"{{"query":"{mutation}","variables":{{"input":{{"requestKey":"nul","text":"x\u0000y\ud800z"}}}}}}"#);
  let (status, answer) = owner.post_bytes(body.into_bytes()).await.unwrap();
  assert_eq!(status, 200, "{answer}");
  let message = &answer["data"]["sendMessage"]["message"];
  assert_eq!(message["text"], "x\u{fffd}y\u{fffd}z");
  let id = message["id"].as_str().unwrap();
  let reply = owner.reply_to(id).await;
  assert_eq!(reply.text, "A\u{fffd}B\u{fffd}C \u{fffd}D");

  // Nothing stalls: the next message is answered, with what was said before.
  let next = owner.send("and now?").await.id();
  assert_eq!(owner.reply_to(&next).await.text, "fine");
  let dump = sound(&product);
  assert!(dump.of("MessageAdmitted").iter().any(|line| line.text("text") == "x\u{fffd}y\u{fffd}z"), "the event is readable");
  let result = dump.of("CallReturned");
  assert!(result[0].body.to_string().contains("x\u{fffd}y\u{fffd}z"), "{}", result[0].body);
}

/// A restart of a product with much behind it is ready soon, because it starts from its checkpoint.
#[tokio::test]
async fn a_start_reads_on_from_the_checkpoint() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  for batch in 0..10 {
    futures::future::join_all((0..10).map(|n| {
      let owner = owner.clone();
      async move { owner.send(&format!("{batch}/{n}")).await }
    }))
    .await;
  }
  within(Duration::from_secs(120), "everything is answered", async || {
    let (page, _) = owner.page(200, None, None).await;
    (page.len() == 200 && page.iter().all(|message| message.status != "PENDING" && message.status != "WRITING")).then_some(())
  })
  .await;
  assert!(product.terminate().await.success());
  let behind =
    "SELECT coalesce(sum(next - next_position), 0)::bigint, count(*) FROM ops.decider_checkpoint c JOIN log.heads h ON h.stream = 'events' AND h.part = c.part";
  let behind: (i64, i64) = sqlx::query_as(behind).fetch_one(product.setup.pool()).await.unwrap();
  assert!(behind.0 == 0 && behind.1 >= 1, "a graceful stop leaves nothing to read: {behind:?}");
  product.start_again().await;
  let data = product.owner().ask("{ system { partitions { id epoch lag } } }", json!({})).await;
  let partitions = data["system"]["partitions"].as_array().unwrap().clone();
  assert!(partitions.iter().all(|partition| partition["lag"].as_i64().unwrap() <= 1 && partition["epoch"].as_i64().unwrap() == 2), "{partitions:?}");
  sound(&product);
}
