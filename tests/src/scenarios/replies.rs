//! "Replies": each message by itself, in order, once; what stops, fails and is tried again.

use pa_model::rehearsal::{Hold, Reply};

use super::sound;
use crate::harness::{Engine, Model, Promise, Setup, check_promises, eventually, text_of_last};

/// One message fails, and the others have their own outcomes.
///
/// Proves REP-1, REP-5.
#[tokio::test]
async fn each_message_has_its_own_turn_and_outcome() {
  let model = Model::with("the bad one", Reply::status(400)).await;
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let ids = [owner.send("the first").await.id(), owner.send("the bad one").await.id(), owner.send("the last").await.id()];
  let messages = owner.settled().await;
  let status = |id: &String| messages.iter().find(|message| message.id == *id).unwrap().status.clone();
  assert_eq!(ids.iter().map(status).collect::<Vec<_>>(), ["ANSWERED", "FAILED", "ANSWERED"]);
  let notices: Vec<_> = messages.iter().filter(|message| message.role == "NOTICE").collect();
  assert_eq!(notices.len(), 1);
  assert_eq!(notices[0].notice.as_ref().unwrap()["code"], "MODEL_REFUSED");
  assert_eq!((notices[0].reply_to_id.as_ref(), notices[0].text.as_str()), (Some(&ids[1]), ""));
  // Each request answers its own message: it is the last of the user.
  let asked: Vec<_> = model.script.requests().iter().map(text_of_last).collect();
  assert_eq!(asked, ["the first", "the bad one", "the last"]);

  // Tried again, it gets its answer.
  assert_eq!(owner.retry(&ids[0]).await.code(), "STATE_CHANGED");
  sound(&product);
}

/// When the mutation has answered, the message survives anything.
///
/// Proves REP-30.
#[tokio::test]
async fn a_message_that_was_accepted_survives_a_kill_at_once() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let mut promises = Vec::new();
  for round in 0..4 {
    let text = format!("round {round}");
    product.owner().send(&text).await;
    product.kill9();
    promises.push(Promise { text, accepted: true });
    product.start_again().await;
    // At once after the start the page shows it with its state.
    assert_eq!(product.owner().messages().await.iter().filter(|message| message.role == "OWNER").count(), promises.len());
  }
  check_promises(&promises, &product.owner().settled().await);
  sound(&product);
}

/// The page is closed while the reply is being written: nothing depends on it.
///
/// Proves REP-31.
#[tokio::test]
async fn closing_the_page_loses_nothing() {
  let (model, hold) = Model::holding("going now", "I will ", "remember").await;
  let product = Setup::new().await.model(&model).start().await;
  let (sent, text) = {
    let page = product.owner();
    let mut socket = page.updates(None).await;
    let sent = page.send("going now").await.id();
    (sent, socket.text_with("I will ").await)
  };
  assert_eq!(text, "I will ");
  hold.release();
  assert_eq!(product.owner().reply_to(&sent).await.text, "I will remember");
  sound(&product);
}

/// One user's messages are answered in their order; another user does not wait for them.
///
/// Proves REP-32.
#[tokio::test]
async fn replies_keep_the_order_of_one_user_and_run_in_parallel_for_others() {
  let (model, hold) = Model::holding("slow", "hm", "m").await;
  let product = Setup::new().await.model(&model).start().await;
  let (owner, ann) = (product.owner(), product.add_account("Ann"));
  let slow = owner.send("slow").await.id();
  let next = owner.send("next").await.id();
  hold.reached().await;
  for n in 0..3 {
    let id = ann.send(&format!("quick {n}")).await.id();
    ann.reply_to(&id).await;
  }
  assert_eq!(owner.has_status(&slow, "PENDING").await.text, "slow");
  assert!(model.asked_about("next").is_empty(), "the second message waits for the first");
  hold.release();
  owner.reply_to(&next).await;
  let messages = owner.settled().await;
  let of = |role: &str| messages.iter().filter(|message| message.role == role).map(|message| message.text.as_str()).collect::<Vec<_>>();
  assert_eq!((of("OWNER"), of("AGENT")), (vec!["slow", "next"], vec!["hmm", "re: next"]), "in order of their places");
  assert!(messages.windows(2).all(|pair| pair[0].place < pair[1].place));
  sound(&product);
}

/// The process dies once while a reply is written: another attempt answers, once.
///
/// Proves REP-34.
#[tokio::test]
async fn an_interrupted_reply_is_written_again_and_posted_once() {
  a_reply_is_interrupted_once(Engine::Embedded).await;
}

/// Proves BB-13, RUN-17, REP-34.
#[tokio::test]
async fn on_kafka_an_interrupted_reply_is_written_again_and_posted_once() {
  a_reply_is_interrupted_once(Engine::Kafka).await;
}

async fn a_reply_is_interrupted_once(engine: Engine) {
  let model = Model::silent().await;
  let hold = Hold::new();
  model.script.queue(Reply::new().say("first try ").hold(&hold));
  model.script.queue(Reply::text("second try"));
  let mut product = Setup::on(engine).await.model(&model).start().await;
  let id = product.owner().send("please").await.id();
  hold.reached().await;
  product.restart9().await;
  assert_eq!(product.owner().reply_to(&id).await.text, "second try");
  let messages = product.owner().settled().await;
  check_promises(&[Promise { text: "please".into(), accepted: true }], &messages);
  let dump = sound(&product);
  let story = dump.story(&id);
  assert_eq!(story.iter().filter(|kind| **kind == "ExecutionLost").count(), 1, "{story:?}");
  assert_eq!(story.iter().filter(|kind| **kind == "ReplyPosted").count(), 1);
}

/// Twice is enough: then the agent says that the message failed, once, and the next message has its turn.
///
/// Proves REP-35.
#[tokio::test]
async fn after_two_interruptions_one_notice_says_that_the_message_failed() {
  a_reply_is_interrupted_twice(Engine::Embedded).await;
}

/// Proves BB-13, REP-35.
#[tokio::test]
async fn on_kafka_after_two_interruptions_one_notice_says_that_the_message_failed() {
  a_reply_is_interrupted_twice(Engine::Kafka).await;
}

async fn a_reply_is_interrupted_twice(engine: Engine) {
  let model = Model::silent().await;
  let (one, two) = (Hold::new(), Hold::new());
  model.script.queue(Reply::new().say("once ").hold(&one));
  model.script.queue(Reply::new().say("twice ").hold(&two));
  model.script.on(|seen| Some(Reply::text(&format!("re: {}", text_of_last(seen)))));
  let mut product = Setup::on(engine).await.model(&model).start().await;
  let id = product.owner().send("unlucky").await.id();
  product.owner().send("lucky").await;
  one.reached().await;
  product.restart9().await;
  two.reached().await;
  product.restart9().await;
  let messages = product.owner().settled().await;
  let notices: Vec<_> = messages.iter().filter(|message| message.role == "NOTICE").collect();
  assert_eq!(notices.len(), 1, "{messages:?}");
  assert_eq!(notices[0].notice.as_ref().unwrap()["code"], "REPLY_INTERRUPTED");
  assert_eq!(notices[0].reply_to_id.as_ref(), Some(&id));
  check_promises(&["unlucky", "lucky"].map(|text| Promise { text: text.into(), accepted: true }), &messages);

  // The owner may try again.
  product.owner().retry(&id).await;
  assert_eq!(product.owner().reply_to(&id).await.text, "re: unlucky");
  sound(&product);
}

/// A stop ends the request to the model and keeps what was shown; a retry answers it after all.
#[tokio::test]
async fn a_stopped_reply_keeps_what_was_shown_and_can_be_asked_for_again() {
  let model = Model::silent().await;
  let hold = Hold::new();
  model.script.queue(Reply::new().say("This is the part that you saw").hold(&hold).say(" and this is not"));
  model.script.on(|_| Some(Reply::text("whole")));
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mut updates = owner.updates(None).await;
  let id = owner.send("a long answer").await.id();
  updates.text_with("you saw").await;
  let stopped = owner.stop(&id).await;
  assert!(stopped.user_errors.is_empty(), "{stopped:?}");
  model.script.idle().await;
  owner.has_status(&id, "STOPPED").await;
  let reply = eventually("the reply is stopped", async || owner.messages().await.into_iter().find(|message| message.role == "AGENT")).await;
  assert_eq!((reply.status.as_str(), reply.text.as_str()), ("STOPPED", "This is the part that you saw"));

  owner.retry(&id).await;
  assert_eq!(owner.reply_to(&id).await.text, "whole");
  assert_eq!(owner.messages().await.iter().filter(|message| message.role == "AGENT").count(), 1, "one reply a message");

  // A message that still waits can be taken back.
  let again = Hold::new();
  model.script.queue(Reply::new().say("x").hold(&again));
  owner.send("holds").await;
  let waiting = owner.send("never mind").await.id();
  owner.stop(&waiting).await;
  owner.has_status(&waiting, "STOPPED").await;
  again.release();
  owner.settled().await;
  assert!(model.asked_about("never mind").is_empty());
  sound(&product);
}
