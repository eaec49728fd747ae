//! "Use the module": a message, its reply, and how it is written.

use pa_model::rehearsal::{Hold, Reply};
use serde_json::json;

use super::sound;
use crate::harness::{Model, Setup};

/// From nothing to a conversation: no model, no database, no switch is set, and the answer says what answers.
///
/// Proves TOP-1, USE-3.
#[tokio::test]
async fn a_fresh_start_leads_to_a_conversation_without_any_setting() {
  let product = Setup::private().await.start().await;
  let owner = product.owner();
  let sent = owner.send("Hello, who are you?").await;
  let reply = owner.reply_to(&sent.id()).await;
  assert!(reply.text.to_lowercase().contains("rehearsal"), "the rehearsal model says that it is one: {}", reply.text);
  assert_eq!(product.readyz().await.0, 200);
  sound(&product);
}

/// Proves TOP-2.
#[tokio::test]
async fn every_account_has_exactly_one_main_conversation() {
  let product = Setup::new().await.start().await;
  let clients = [product.owner(), product.add_account("Ann"), product.add_account("Ben")];
  let mut ids = Vec::new();
  for client in &clients {
    client.send("one").await;
    client.send("two").await;
    let data = client.ask("{ conversations { id kind } conversation { id } }", json!({})).await;
    let conversations = data["conversations"].as_array().unwrap();
    assert_eq!(conversations.len(), 1, "{conversations:?}");
    assert_eq!(conversations[0]["kind"], "MAIN");
    assert_eq!(conversations[0]["id"], data["conversation"]["id"]);
    ids.push(conversations[0]["id"].clone());
    client.settled().await;
  }
  assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
  sound(&product);
}

/// The whole way of one message, with the events that it leaves.
///
/// Proves USE-2, USE-3, USE-4, USE-25, USE-28, RUN-7, REP-5, REP-6.
#[tokio::test]
async fn a_message_is_sent_and_its_reply_stands_in_the_conversation() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let sent = owner.send("How is the weather?").await;
  assert!(sent.decided && sent.position.is_some());
  let id = sent.id();
  let reply = owner.reply_to(&id).await;
  let messages = owner.settled().await;
  let shown: Vec<_> = messages.iter().map(|message| (message.role.as_str(), message.text.as_str(), message.status.as_str())).collect();
  assert_eq!(shown, [("OWNER", "How is the weather?", "ANSWERED"), ("AGENT", "re: How is the weather?", "POSTED")]);
  assert_eq!(messages[0].reply_id.as_ref(), Some(&reply.id));
  // One request to the model, for the message itself: nothing sorts or matches it before.
  assert_eq!(model.script.requests().len(), 1);
  assert_eq!(sound(&product).story(&id), ["MessageAdmitted", "ReplyRequested", "ExecutionStarted", "StepRecorded", "ExecutionFinished", "ReplyPosted"]);
}

/// A piece is there while the model is still held, and who comes in the middle gets all text so far.
///
/// Proves USE-26, CHN-2.
#[tokio::test]
async fn a_piece_is_shown_while_the_model_is_still_held() {
  let (hold, end) = (Hold::new(), Hold::new());
  let model = Model::with("a story", Reply::new().say("Once upon a time ").hold(&hold).say("there was an end.").hold(&end)).await;
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mut first = owner.updates(Some(&owner.position().await)).await;
  let id = owner.send("tell me a story").await.id();
  assert_eq!(first.text_with("upon a time ").await, "Once upon a time ");
  hold.reached().await;

  // Before there is a text, and while there is one, its row stands as being written.
  let writing = owner.messages().await.into_iter().find(|message| message.role == "AGENT").unwrap();
  assert_eq!((writing.status.as_str(), writing.text.as_str()), ("WRITING", ""));
  let mut second = owner.updates(Some(&owner.position().await)).await;
  assert_eq!(second.text_with("upon a time ").await, "Once upon a time ");

  hold.release();
  for socket in [&mut first, &mut second] {
    assert!(socket.text_with("an end.").await.ends_with("there was an end."));
  }
  end.release();
  for socket in [&mut first, &mut second] {
    socket.until(|update| update.entry().is_some_and(|entry| entry == (writing.id.clone(), "POSTED".to_owned()))).await;
  }
  assert_eq!(owner.reply_to(&id).await.text, "Once upon a time there was an end.");
  sound(&product);
}

/// The line above the composer names a step while a tool runs, and nothing of the tool is an entry.
///
/// Proves USE-26, USE-27, RUN-7, RUN-30.
#[tokio::test]
async fn a_step_is_named_and_leaves_no_trace_in_the_conversation() {
  let model = Model::silent().await;
  let steps = Hold::new();
  model.script.queue(Reply::new().think("SECRET THOUGHT: look it up").say("Let me look.").call("call_1", "pa_history", "{}").hold(&steps));
  model.script.queue(Reply::new().think("SECRET THOUGHT: answer").say("You said nothing before."));
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mut updates = owner.updates(Some(&owner.position().await)).await;
  let id = owner.send("what did I say?").await.id();
  steps.reached().await;
  let held = product.hold_conversation().await;
  steps.release();
  let mut seen = updates.until(|update| update.kind() == "StepNamed" && update.change["step"] == "pa_history").await;
  held.rollback().await.unwrap();
  seen.extend(updates.until(|update| update.entry().is_some_and(|(_, status)| status == "POSTED")).await);
  // Steps are told beside the log: the last word about them may come after the reply.
  if !seen.iter().rev().find(|update| update.kind() == "StepNamed").is_some_and(|update| update.change["step"].is_null()) {
    seen.extend(updates.until(|update| update.kind() == "StepNamed" && update.change["step"].is_null()).await);
  }
  let named: Vec<_> = seen.iter().filter(|update| update.kind() == "StepNamed").map(|update| update.change["step"].clone()).collect();
  assert!(named.last().is_none_or(serde_json::Value::is_null), "no step is left standing: {named:?}");
  assert!(!seen.iter().any(|update| update.change.to_string().contains("SECRET THOUGHT")), "thinking is shown nowhere");

  let messages = owner.settled().await;
  assert_eq!(messages.iter().map(|message| message.role.as_str()).collect::<Vec<_>>(), ["OWNER", "AGENT"]);
  assert_eq!(owner.reply_to(&id).await.text, "You said nothing before.");
  let dump = sound(&product);
  assert!(dump.story(&id).contains(&"CallReturned"));
  assert!(!dump.text.contains("SECRET THOUGHT"), "thinking is not kept either");
}

/// An unclosed think tag across two deltas is thinking; thinking alone is asked for once more, without tools, and is never an empty message.
///
/// Proves BB-29, USE-27.
#[tokio::test]
async fn bb_29_reasoning_is_shown_nowhere_and_an_answer_of_nothing_else_is_asked_for_again() {
  let model = Model::silent().await;
  model.script.queue(Reply::new().say("Fine. <thi").say("nk>INNER one").say(" INNER two"));
  model.script.queue(Reply::new().think("INNER three"));
  model.script.queue(Reply::text("In words."));
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mut updates = owner.updates(Some(&owner.position().await)).await;
  let first = owner.send("first").await.id();
  assert_eq!(owner.reply_to(&first).await.text.trim(), "Fine.");
  let second = owner.send("second").await.id();
  assert_eq!(owner.reply_to(&second).await.text, "In words.");

  let last = owner.reply_to(&second).await.id;
  let seen = updates.until(|update| update.entry().is_some_and(|entry| entry == (last.clone(), "POSTED".to_owned()))).await;
  assert!(!seen.iter().any(|update| update.change.to_string().contains("INNER")), "{seen:?}");
  let again = model.script.requests().pop().unwrap();
  assert!(again.body["tools"].as_array().is_none_or(Vec::is_empty), "the last try has no tools: {}", again.body["tools"]);
  assert!(!sound(&product).text.contains("INNER"));
  assert!(owner.messages().await.iter().all(|message| !message.text.trim().is_empty()), "no empty bubble");
}
