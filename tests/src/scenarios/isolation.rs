//! Accounts are alone: with another account's token nothing of the first is seen, by any way in.

use serde_json::{Value, json};

use super::sound;
use crate::harness::{Client, Model, Setup, fresh_key};

/// Words that only the first account ever had.
const WORDS: &str = "the-owners-own-words";
/// The graph as the outside sees it, to notice what this walk does not know.
const SDL: &str = include_str!("../../../schemas/read_model.graphql");

/// Every question that a viewer can ask, whole.
const QUESTIONS: [(&str, &str); 8] = [
  ("viewer", "{ viewer { account name role language } }"),
  ("agent", "{ agent { id name avatar position } }"),
  ("settings", "{ settings { version timeZone language name } }"),
  ("conversations", "{ conversations { id kind title messages(last: 20) { nodes { id text } } } }"),
  ("conversation", "{ conversation { id messages(last: 200) { nodes { id text attachments { id name } notice { code params { name value } } } } } }"),
  ("indicator", "{ indicator { needsInput running lastFailure { messageId } } }"),
  ("auditLog", "{ auditLog(first: 200) { nodes { id type actor body causeId correlationId } } }"),
  ("system", "{ system { logKind partitions { id lag } parked { agentId from error } roles { name node } } }"),
];

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

/// The walk: every query, every mutation, every file, the subscription, the prompt.
#[tokio::test]
async fn another_account_sees_nothing_of_the_first() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
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
  let known = [WORDS, &agent, &conversation, &message, &file, &staged];

  // Every query.
  assert_eq!(fields("Query"), QUESTIONS.map(|(name, _)| name), "a new query needs a place in this walk");
  for (name, question) in QUESTIONS {
    let (own, foreign) = (raw(&owner, question, json!({})).await, raw(&other, question, json!({})).await);
    assert!(!foreign.contains("errors"), "{foreign}");
    for word in known {
      assert!(!foreign.contains(word), "{name} tells another account {word}: {foreign}");
    }
    assert!(
      name == "indicator" || name == "system" || known.iter().any(|word| own.contains(word)),
      "{name} shows the first account something of its own: {own}"
    );
  }
  let by_id = raw(&other, "query($id: ID) { conversation(id: $id) { id messages { nodes { id text } } } }", json!({ "id": conversation })).await;
  assert!(!by_id.contains(WORDS) && !by_id.contains(&message), "{by_id}");
  let about = raw(&other, "query($id: ID) { auditLog(filter: { thingId: $id }) { nodes { id } } }", json!({ "id": message })).await;
  assert!(about.contains(r#""nodes":[]"#), "{about}");

  // Every mutation.
  assert_eq!(fields("Mutation"), ["sendMessage", "stopReply", "retryMessage", "updateSettings"], "a new mutation needs a place in this walk");
  for verb in ["stopReply", "retryMessage"] {
    let input = json!({ "requestKey": fresh_key(verb), "messageId": message });
    assert_eq!(other.mutate(verb, "MessageVerbInput", input).await.unwrap().code(), "NOT_FOUND", "{verb}");
  }
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
}
