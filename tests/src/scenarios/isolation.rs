//! Accounts are alone: with another account's token nothing of the first is seen, by any way in.

use pa_model::rehearsal::Reply;
use serde_json::{Value, json};

use super::effects::{cards, decide, email, reconcile, with_effects};
use super::sound;
use super::tasks::{call, finish, instruct, is_task, results, task_of, verb};
use crate::harness::{Client, Effects, Model, Outside, fresh_key};

/// Words that only the first account ever had.
const WORDS: &str = "the-owners-own-words";
/// The graph as the outside sees it, to notice what this walk does not know.
const SDL: &str = include_str!("../../../schemas/read_model.graphql");

/// Every question that a viewer can ask, whole.
const QUESTIONS: [(&str, &str); 14] = [
  ("viewer", "{ viewer { account name role language } }"),
  ("agent", "{ agent { id name avatar position } }"),
  ("settings", "{ settings { version timeZone language name } }"),
  ("conversations", "{ conversations { id kind title messages(last: 20) { nodes { id text } } } }"),
  ("conversation", "{ conversation { id messages(last: 200) { nodes { id text attachments { id name } notice { code params { name value } } } } } }"),
  ("tasks", "{ tasks(last: 200) { nodes { id title goal } } }"),
  ("task", "query($task: ID!) { task(id: $task) { id title goal entries(last: 200) { nodes { id text action attachments { id name } } } } }"),
  ("taskEntry", "query($entry: ID!) { taskEntry(id: $entry) { id taskId text } }"),
  ("pendingActions", "{ pendingActions { id taskId taskTitle target content } }"),
  ("outputs", "{ outputs(last: 200) { nodes { id taskId taskTitle caption source file { id name } } } }"),
  ("usage", "{ usage { steps inputTokens outputTokens } }"),
  ("indicator", "{ indicator { needsInput running lastFailure { messageId } } }"),
  ("auditLog", "{ auditLog(first: 200) { nodes { id type actor body causeId correlationId } } }"),
  ("system", "{ system { logKind partitions { id lag } parked { agentId from error } roles { name node } } }"),
];

/// Everything that a viewer can do.
const MUTATIONS: [&str; 10] =
  ["sendMessage", "stopReply", "retryMessage", "instructTask", "stopTask", "pauseTask", "resumeTask", "decideAction", "reconcileAction", "updateSettings"];

/// Starts a task for the first account, which writes a file, hands it over and asks for an email; answers anybody else in words.
async fn working() -> Model {
  let model = Model::silent().await;
  model.script.on(|seen| {
    Some(match (seen.body.to_string().contains(WORDS), is_task(seen), results(seen)) {
      (false, ..) => Reply::text("re: mine"),
      (true, false, 0) => call("pa_task_start", &json!({ "request_key": "k", "title": WORDS, "goal": WORDS })),
      (true, false, _) => Reply::text(WORDS),
      (true, true, 0) => call("pa_write_file", &json!({ "path": "out.txt", "content": WORDS })),
      (true, true, 1) => call("pa_deliver", &json!({ "request_key": "f", "path": "out.txt", "caption": WORDS })),
      (true, true, 2) => call("pa_test_email", &email(WORDS)),
      (true, true, _) => finish(WORDS),
    })
  });
  model
}

/// Fields of a type of the graph.
fn fields(of: &str) -> Vec<String> {
  let body = SDL.split(&format!("\ntype {of} {{\n")).nth(1).unwrap().split("\n}").next().unwrap();
  let mut documentation = false;
  let mut found = Vec::new();
  for line in body.lines() {
    if line.trim() == "\"\"\"" {
      documentation = !documentation;
    } else if !documentation {
      found.push(line.trim().split(['(', ':']).next().unwrap().to_owned());
    }
  }
  found
}

async fn raw(client: &Client, query: &str, variables: Value) -> String {
  client.post(query, variables).await.unwrap().1.to_string()
}

/// No word about a message, a task or a card of another account counts.
async fn nothing_answers_to(other: &Client, message: &str, task: &str, card: &Value) {
  for name in ["stopReply", "retryMessage"] {
    let input = json!({ "requestKey": fresh_key(name), "messageId": message });
    assert_eq!(other.mutate(name, "MessageVerbInput", input).await.unwrap().code(), "NOT_FOUND", "{name}");
  }
  for name in ["stopTask", "pauseTask", "resumeTask"] {
    assert_eq!(verb(other, name, task).await["userErrors"][0]["code"], "NOT_FOUND", "{name}");
  }
  assert_eq!(instruct(other, task, "do it my way").await["userErrors"][0]["code"], "NOT_FOUND");
  assert_eq!(decide(other, card, "APPROVE_ONCE").await["userErrors"][0]["code"], "NOT_FOUND");
  assert_eq!(reconcile(other, card, "EXECUTED").await["userErrors"][0]["code"], "NOT_FOUND");
}

/// The walk: every query, every mutation, every file, the subscription, the prompt.
#[tokio::test]
async fn another_account_sees_nothing_of_the_first() {
  let model = working().await;
  let effects = Effects::start(Outside::Accepts).await;
  let product = with_effects(&model, &effects).await;
  let (owner, other) = (product.owner(), product.add_account("Other"));
  let (_, staged) = owner.upload(&format!("{WORDS}.txt"), "text/plain", WORDS.into()).await;
  let (_, file) = owner.upload(&format!("{WORDS}.txt"), "text/plain", WORDS.into()).await;
  let (staged, file) = (staged["id"].as_str().unwrap().to_owned(), file["id"].as_str().unwrap().to_owned());
  let mut spy = other.updates(Some("0")).await;
  super::settings::update(&owner, json!({ "version": 1, "name": WORDS })).await;
  let message = owner.send_with(WORDS, &[&file]).await.id();
  owner.reply_to(&message).await;
  let data = owner.ask("{ agent { id } conversation { id } }", json!({})).await;
  let (agent, conversation) = (data["agent"]["id"].as_str().unwrap().to_owned(), data["conversation"]["id"].as_str().unwrap().to_owned());
  // Its task has handed over a file and waits for the owner's word.
  let card = cards(&owner, 1).await.remove(0);
  let (task, action) = (task_of(&message), card["id"].as_str().unwrap());
  let data = owner.ask("{ tasks(last: 1) { nodes { entries(last: 1) { nodes { id } } } } outputs(last: 1) { nodes { id } } }", json!({})).await;
  let entry = data["tasks"]["nodes"][0]["entries"]["nodes"][0]["id"].as_str().unwrap();
  let output = data["outputs"]["nodes"][0]["id"].as_str().unwrap();
  let known = [WORDS, &agent, &conversation, &message, &file, &staged, &task, action, entry, output];

  // Every query.
  assert_eq!(fields("Query"), QUESTIONS.map(|(name, _)| name), "a new query needs a place in this walk");
  for (name, question) in QUESTIONS {
    let ids = json!({ "task": task, "entry": entry });
    let (own, foreign) = (raw(&owner, question, ids.clone()).await, raw(&other, question, ids).await);
    assert!(!foreign.contains("errors"), "{foreign}");
    for word in known {
      assert!(!foreign.contains(word), "{name} tells another account {word}: {foreign}");
    }
    assert!(
      ["indicator", "system", "usage"].contains(&name) || known.iter().any(|word| own.contains(word)),
      "{name} shows the first account something of its own: {own}"
    );
  }
  let by_id = raw(&other, "query($id: ID) { conversation(id: $id) { id messages { nodes { id text } } } }", json!({ "id": conversation })).await;
  assert!(!by_id.contains(WORDS) && !by_id.contains(&message), "{by_id}");
  let used = other.ask("{ usage { steps } }", json!({})).await;
  assert_eq!(used["usage"]["steps"], 0, "the other account has asked nothing yet");
  let about = raw(&other, "query($id: ID) { auditLog(filter: { thingId: $id }) { nodes { id } } }", json!({ "id": message })).await;
  assert!(about.contains(r#""nodes":[]"#), "{about}");

  // Every mutation.
  assert_eq!(fields("Mutation"), MUTATIONS, "a new mutation needs a place in this walk");
  nothing_answers_to(&other, &message, &task, &card).await;
  let input = json!({ "requestKey": fresh_key("c"), "text": "into theirs", "conversationId": conversation });
  assert_eq!(other.mutate("sendMessage", "SendMessageInput", input).await.unwrap().code(), "NOT_FOUND");
  for id in [&staged, &file] {
    assert_eq!(other.send_with("with theirs", &[id]).await.code(), "NOT_FOUND", "a file of another account can't be attached");
  }
  // The same request key is another account's own.
  let own = other.send_as("the-same-key", "mine").await.id();
  owner.send_as("the-same-key", "also mine").await;
  super::settings::update(&other, json!({ "version": 1, "name": "Other's agent" })).await;
  let settings = owner.ask("{ settings { name } }", json!({})).await;
  assert_eq!(settings["settings"]["name"], WORDS);

  // Every file.
  for id in [&staged, &file] {
    assert_eq!(owner.get(&format!("/files/{id}")).await.unwrap().status(), 200);
    assert_eq!(other.get(&format!("/files/{id}")).await.unwrap().status(), 404);
  }

  // The subscription, from the beginning.
  other.reply_to(&own).await;
  let seen = spy.until(|update| update.entry().is_some_and(|(id, status)| id == own && status == "ANSWERED")).await;
  for update in &seen {
    let text = update.change.to_string();
    assert!(known.iter().all(|word| !text.contains(word)), "{text}");
  }
  // What the model was told for the one holds nothing of the other.
  let asked = model.asked_about("mine");
  assert!(!asked.is_empty() && asked.iter().all(|seen| !seen.body.to_string().contains(WORDS)));
  sound(&product);
  assert!(effects.taken().is_empty(), "nobody but the owner could allow it");
}
