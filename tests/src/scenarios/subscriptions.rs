//! Subscriptions under disconnect: by cursor, each once, a gap said, nothing sent.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::sound;
use crate::harness::{Client, Model, Setup, within};

/// The subscription is gone for ten events and the backend is killed meanwhile: it resumes by its cursor, each row once in its newest state.
///
/// Proves BB-63, RUN-10.
#[tokio::test]
async fn bb_63_a_subscription_resumes_by_its_cursor_and_sends_nothing() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mut page = owner.updates(Some(&owner.position().await)).await;
  let first = owner.send("before").await.id();
  let seen = page.until(|update| update.entry().is_some_and(|(id, status)| id == first && status == "ANSWERED")).await;
  let cursor = seen.iter().rev().find_map(|update| update.cursor.clone()).unwrap();
  drop(page);

  // Each of these leaves six events.
  let mut missed = vec![owner.send("missed one").await.id(), owner.send("missed two").await.id()];
  for id in missed.clone() {
    missed.push(owner.reply_to(&id).await.id);
  }
  product.restart9().await;
  let owner = product.owner();
  let inputs = product.dump().inputs().count();
  let mut page = owner.updates(Some(&cursor)).await;
  let after = owner.send("after").await.id();
  let seen = page.until(|update| update.entry().is_some_and(|(id, status)| id == after && status == "ANSWERED")).await;

  let mut times: BTreeMap<String, Vec<String>> = BTreeMap::new();
  for (id, status) in seen.iter().filter_map(crate::harness::Update::entry) {
    times.entry(id).or_default().push(status);
  }
  for id in &missed {
    assert_eq!(times.get(id).map(Vec::len), Some(1), "{id}: {times:?}");
  }
  assert!(!times.contains_key(&first) || times[&first] == ["ANSWERED"], "what was seen before does not come as news: {times:?}");
  assert!(seen.iter().all(|update| update.kind() != "Resync"));
  let ordinals: Vec<i64> = seen.iter().filter_map(|update| update.cursor.as_deref()).map(|cursor| cursor.split('@').next().unwrap().parse().unwrap()).collect();
  assert!(ordinals.windows(2).all(|pair| pair[0] <= pair[1]), "cursors only rise: {ordinals:?}");

  // Reconnecting sent nothing: besides the one message and its turn there is no new input of the owner.
  let dump = sound(&product);
  let given = dump.inputs().skip(inputs).filter(|line| line.kind == "MessageGiven").count();
  assert_eq!(dump.of("MessageAdmitted").len(), 4);
  assert!(given <= 1, "{given}");
}

/// A cursor of another read schema, and one too far behind, get an explicit resync and then what is new.
///
/// Proves BB-63.
#[tokio::test]
async fn bb_63_a_gap_is_an_explicit_resync() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  owner.send("hello").await;
  owner.settled().await;
  let mut page = owner.updates(Some("1@another")).await;
  assert_eq!(page.next().await.kind(), "Resync");
  let id = owner.send("again").await.id();
  let seen = page.until(|update| update.entry().is_some_and(|(seen, status)| seen == id && status == "ANSWERED")).await;
  assert!(seen.iter().all(|update| update.kind() != "Resync"), "once");

  // More than 500 rows behind.
  for batch in 0..13 {
    let sends = (0..20).map(|n| {
      let owner = owner.clone();
      async move { owner.send(&format!("{batch}/{n}")).await }
    });
    futures::future::join_all(sends).await;
    within(Duration::from_secs(120), "the batch is answered", async || {
      let (page, _) = owner.page(40, None, None).await;
      page.iter().all(|message| matches!(message.status.as_str(), "ANSWERED" | "POSTED")).then_some(())
    })
    .await;
  }
  let mut page = owner.updates(Some("0")).await;
  let first = page.next().await;
  assert_eq!(first.kind(), "Resync", "{first:?}");
  // From its cursor on everything goes on as usual.
  let mut page = owner.updates(first.cursor.as_deref()).await;
  let id = owner.send("new").await.id();
  page.until(|update| update.entry().is_some_and(|(seen, status)| seen == id && status == "ANSWERED")).await;
  sound(&product);
}

/// An answer that is asked for at a position is at least that new, or says that it is stale.
#[tokio::test]
async fn a_query_at_a_position_waits_for_it_or_says_that_it_is_stale() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let sent = owner.send("hello").await;
  let (page, _) = owner.page(10, None, sent.position.as_deref()).await;
  assert!(page.iter().any(|message| message.id == sent.id()));
  let (status, answer) = owner.post("{ conversation(atLeast: \"999999\") { id } }", json!({})).await.unwrap();
  assert_eq!((status, &answer["extensions"]["stale"]), (200, &json!(true)), "{answer}");
  owner.settled().await;
  sound(&product);
}

/// A token that is reset by another process ends what it had opened, within seconds, whether by the token itself or by a browser's session.
#[tokio::test]
async fn a_reset_token_ends_open_subscriptions_within_seconds() {
  let model = Model::echo().await;
  // The product's own token, because one from the environment is changed there.
  let product = Setup::new().await.model(&model).env("PA_OWNER_TOKEN", "").start().await;
  let shown = product.tool(&["token", "show"]);
  let owner = Client::new(&product.url, shown.out.trim());
  let signed_in = owner.http.post(&product.sign_in).header("origin", &product.url).send().await.unwrap();
  let cookie = signed_in.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
  let mut by_token = owner.updates(Some(&owner.position().await)).await;
  let mut by_cookie = owner.socket(&[("cookie", &cookie), ("origin", &product.url)]).await.unwrap();
  by_cookie.say(json!({ "type": "connection_init" })).await;
  assert_eq!(by_cookie.hears().await.unwrap()["type"], "connection_ack");
  by_cookie.subscribe(None).await;

  let reset = product.tool(&["token", "reset"]);
  assert_eq!(reset.code, Some(0), "{}", reset.err);
  let since = Instant::now();
  for socket in [&mut by_token, &mut by_cookie] {
    let code = loop {
      if let Err(code) = socket.hears().await {
        break code;
      }
    };
    assert_eq!(code, 4403);
  }
  // Two seconds between two looks, and a busy machine; it was five minutes when each socket looked for itself.
  assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
  let again = Client::new(&product.url, reset.out.trim());
  again.send("with the new token").await.id();
}
