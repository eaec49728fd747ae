//! What a subscription gets, and that it gets it once.

use pa_domain::execution::{FinishAsked, ModelCall};
use pa_domain::settings::Effort;
use pa_domain::{Origin, Timestamp, execution};
use pa_eventlog::pieces::Piece;
use serde_json::{Value, json};

use super::decider::Switches;
use super::world::World;

fn is_message(change: &Value, text: &str) -> bool {
  change["__typename"] == "MessageUpserted" && change["message"]["text"] == text
}

fn ordinal_of(update: &Value) -> i64 {
  update["cursor"].as_str().unwrap().split('@').next().unwrap().parse().unwrap()
}

impl World {
  async fn position(&self) -> Value {
    self.ask("{ agent { position } }", json!({})).await["data"]["agent"]["position"].clone()
  }
}

/// Proves BB-63: a subscription that was dropped goes on from its cursor.
#[tokio::test]
async fn a_subscription_resumes_from_its_cursor_with_every_change_once() {
  let world = World::new().await;
  let mut first = world.updates(world.position().await).await;
  world.send("k0", "zero").await;
  let seen = first.until(|change| is_message(change, "zero")).await;
  let cursor = seen.last().unwrap()["cursor"].clone();
  drop(first);
  for n in 1..=10 {
    world.send(&format!("k{n}"), &format!("message {n}")).await;
  }
  let mut resumed = world.updates(cursor.clone()).await;
  let updates = resumed.until(|change| is_message(change, "message 10")).await;
  let texts: Vec<&str> = updates
    .iter()
    .filter(|update| update["change"]["__typename"] == "MessageUpserted")
    .map(|update| update["change"]["message"]["text"].as_str().unwrap())
    .collect();
  let expected: Vec<String> = (1..=10).map(|n| format!("message {n}")).collect();
  assert_eq!(texts, expected);
  assert!(updates.is_sorted_by_key(ordinal_of), "{updates:?}");
  world.send("k11", "live").await;
  let live = resumed.until(|change| is_message(change, "live")).await;
  assert!(live.iter().all(|update| ordinal_of(update) > ordinal_of(updates.last().unwrap())), "{live:?}");
  // A plain ordinal is a cursor too, and several subscribers get the same.
  let plain = json!(cursor.as_str().unwrap().split('@').next().unwrap());
  let (mut one, mut two) = (world.updates(plain.clone()).await, world.updates(plain).await);
  let (one, two) = (one.until(|change| is_message(change, "live")).await, two.until(|change| is_message(change, "live")).await);
  assert_eq!(one, two);
}

#[tokio::test]
async fn a_cursor_of_another_schema_or_too_far_behind_must_read_afresh() {
  let world = World::new().await;
  let mut foreign = world.updates(json!("1@0123456789ab")).await;
  let update = foreign.update().await;
  assert_eq!(update["change"]["__typename"], "Resync");
  assert_eq!(update["cursor"], world.position().await);
  world.send("k", "after").await;
  foreign.until(|change| is_message(change, "after")).await;
  // 499 further open messages, and what the decisions on them changed beside: more than 500 rows.
  sqlx::query(sqlx::AssertSqlSafe(format!(
    "INSERT INTO {schema}.entries SELECT (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(), 'place', 1000 + n, 'changed', e.changed))).* FROM {schema}.entries e, generate_series(1, 600) n",
    schema = pa_projections::schema::current().name()
  )))
  .execute(&world.db.pool)
  .await
  .unwrap();
  let mut behind = world.updates(json!("0")).await;
  let update = behind.update().await;
  assert_eq!(update["change"], json!({ "__typename": "Resync", "reason": "too far behind" }));
  assert_eq!(update["cursor"], world.position().await);
}

/// Proves BB-63: a cursor of a history that was taken back is not waited for in vain.
#[tokio::test]
async fn a_cursor_ahead_of_the_history_must_read_afresh() {
  let world = World::new().await;
  world.send("k", "kept").await;
  let position = world.position().await;
  let (ordinal, mark) = position.as_str().unwrap().split_once('@').unwrap();
  let ahead = ordinal.parse::<i64>().unwrap() + 80;
  for cursor in [format!("{ahead}@{mark}"), ahead.to_string(), format!("{}@{mark}", i64::MAX)] {
    let mut socket = world.updates(json!(cursor)).await;
    let update = socket.update().await;
    assert_eq!(update["change"], json!({ "__typename": "Resync", "reason": "ahead of the history" }), "{cursor}");
    assert!(ordinal_of(&update) < ahead, "{update}");
  }
  // What comes after it is seen, although it lies below the cursor.
  let mut socket = world.updates(json!(ahead.to_string())).await;
  socket.until(|change| change["__typename"] == "Resync").await;
  world.send("k2", "below").await;
  let below = socket.until(|change| is_message(change, "below")).await;
  assert!(below.iter().all(|update| ordinal_of(update) < ahead), "{below:?}");
  // A decision's position, which the read model may reach a moment later, is none of those.
  let decided = world.send("k3", "a moment later").await["position"].clone();
  let mut early = world.updates(decided).await;
  world.send("k4", "and on").await;
  let seen = early.until(|change| is_message(change, "and on")).await;
  assert!(seen.iter().all(|update| update["change"]["__typename"] != "Resync"), "{seen:?}");
}

#[tokio::test]
async fn a_commit_that_nobody_told_is_seen_after_a_while() {
  let world = World::new().await;
  let mut socket = world.updates(world.position().await).await;
  world.send("k1", "told").await;
  socket.until(|change| is_message(change, "told")).await;
  world.switch(Switches { untold: true, ..Switches::default() });
  world.send("k2", "untold").await;
  socket.until(|change| is_message(change, "untold")).await;
}

#[tokio::test]
async fn nothing_falls_between_a_position_and_the_subscription_after_it() {
  let world = World::new().await;
  for n in 0..20 {
    let position = world.position().await;
    let text = format!("message {n}");
    let (_, mut socket) = tokio::join!(world.send(&text, &text), world.updates(position));
    let updates = socket.until(|change| is_message(change, &text)).await;
    assert_eq!(updates.iter().filter(|update| is_message(&update["change"], &text)).count(), 1);
  }
}

/// Proves USE-26: a piece comes while the model still writes, and whoever opens a page in the middle gets the whole text so far first.
#[tokio::test]
async fn a_reply_is_seen_while_it_is_written_and_whole_by_whoever_comes_later() {
  let world = World::new().await;
  let message = world.send("k1", "hello").await["message"]["id"].clone();
  let mut early = world.updates(world.position().await).await;
  let (job, attempt, conversation, reply) = world.execute(world.owner, &message).await;
  let started = early.until(|change| change["message"]["status"] == "WRITING").await;
  assert_eq!((&started.last().unwrap()["change"]["message"]["id"], &started.last().unwrap()["change"]["message"]["text"]), (&json!(reply), &json!("")));
  let piece = |offset, text: &str| Piece { message: reply, attempt, offset_utf16: offset, text: text.into() };
  world.pieces.publish(world.owner, &piece(0, "Good "));
  let first = early.until(|change| change["__typename"] == "ReplyPiece").await.pop().unwrap();
  assert_eq!(first, json!({ "cursor": null, "change": { "__typename": "ReplyPiece", "messageId": reply, "attempt": attempt, "offset": 0, "text": "Good " } }));
  world.pieces.publish(world.owner, &piece(5, "morning"));
  assert_eq!(early.until(|change| change["__typename"] == "ReplyPiece").await.pop().unwrap()["change"]["offset"], 5);
  let mut late = world.updates(world.position().await).await;
  let whole = late.until(|change| change["__typename"] == "ReplyPiece").await.pop().unwrap();
  assert_eq!((&whole["change"]["offset"], &whole["change"]["text"]), (&json!(0), &json!("Good morning")));
  world.pieces.step(world.owner, conversation, Some("MEMORY"));
  assert_eq!(late.until(|change| change["__typename"] == "StepNamed").await.pop().unwrap()["change"]["step"], "MEMORY");
  let finish = FinishAsked { job, execution: attempt, step: 1, seen: i64::MAX, model_call: model_call(), text: "Good morning!".into(), incomplete: false };
  world.decided(world.owner, execution::Input::from(finish).into(), Origin::Platform).await;
  for socket in [&mut early, &mut late] {
    let posted = socket.until(|change| is_message(change, "Good morning!")).await.pop().unwrap();
    assert_eq!((&posted["change"]["message"]["status"], &posted["change"]["message"]["role"]), (&json!("POSTED"), &json!("AGENT")));
  }
}

fn model_call() -> ModelCall {
  ModelCall {
    model: "rehearsal".into(),
    effort: Effort::Fast,
    prompt_version: "1".into(),
    parts: Vec::new(),
    tools: Vec::new(),
    finish: "STOP".into(),
    attempts: 1,
    started_ms: Timestamp(0),
    ended_ms: Timestamp(1),
    input_tokens: None,
    output_tokens: None,
    cached_tokens: None,
    reasoning_tokens: None,
    price_micros: None,
    currency: None,
  }
}

#[tokio::test]
async fn settings_and_the_indicator_come_as_they_change() {
  let world = World::new().await;
  let mut socket = world.updates(world.position().await).await;
  let update = "mutation($input: UpdateSettingsInput!) { updateSettings(input: $input) { decided } }";
  world.ask(update, json!({ "input": { "requestKey": "k", "version": 1, "timeZone": "Europe/Berlin" } })).await;
  let settings = socket.until(|change| change["__typename"] == "SettingsUpserted").await.pop().unwrap();
  assert_eq!(settings["change"]["settings"], json!({ "version": 2, "timeZone": "Europe/Berlin" }));
  let message = world.send("m", "hello").await["message"]["id"].clone();
  world.execute(world.owner, &message).await;
  socket.until(|change| change["indicator"]["running"] == true).await;
}
