//! Changes: accepted, refused, repeated, undecided, of unknown fate.

use pa_domain::execution::{ExecutionAsked, JobKind};
use pa_domain::{AgentId, ConversationId, Event, JobId, MessageId, Origin, execution};
use pa_eventlog::Stream;
use pa_eventlog::pieces::Piece;
use pa_eventlog::sim::Fault;
use serde_json::{Value, json};
use uuid::Uuid;

use super::decider::Switches;
use super::world::World;

const VERB: &str = "message { id status replyId } position decided userErrors { code field }";

impl World {
  async fn verb(&self, verb: &str, key: &str, message: &Value) -> Value {
    let query = format!("mutation($input: MessageVerbInput!) {{ {verb}(input: $input) {{ {VERB} }} }}");
    let answer = self.ask(&query, json!({ "input": { "requestKey": key, "messageId": message } })).await;
    assert!(answer["errors"].is_null(), "{answer}");
    answer["data"][verb].clone()
  }

  pub(super) async fn execute(&self, agent: AgentId, message: &Value) -> (JobId, i32, ConversationId, MessageId) {
    let job = JobId(Uuid::parse_str(message.as_str().unwrap()).unwrap());
    let asked = execution::Input::from(ExecutionAsked { job, kind: JobKind::Reply });
    let decision = self.decided(agent, asked.into(), Origin::Platform).await;
    let Event::Execution(execution::Event::ExecutionStarted(started)) = &decision.events[0].event else { panic!("started: {decision:?}") };
    (job, started.execution, started.conversation, started.reply)
  }
}

/// Proves BB-02 for client keys.
#[tokio::test]
async fn the_same_request_key_gets_the_same_message_however_often_and_at_once() {
  let world = World::new().await;
  let answers = futures::future::join_all((0..5).map(|_| world.send("k1", "hello"))).await;
  for answer in &answers {
    assert_eq!(answer["decided"], true, "{answer}");
    assert_eq!(answer["message"]["id"], answers[0]["message"]["id"]);
    assert_eq!(answer["position"], answers[0]["position"]);
    assert_eq!(answer["userErrors"], json!([]));
  }
  let conflict = world.send("k1", "something else").await;
  assert_eq!((&conflict["message"], &conflict["position"], &conflict["decided"]), (&Value::Null, &Value::Null, &json!(true)));
  assert_eq!((&conflict["userErrors"][0]["code"], &conflict["userErrors"][0]["field"]), (&json!("REQUEST_KEY_CONFLICT"), &json!(["input", "requestKey"])));
  let page = world.ask("{ conversation { messages { nodes { text } } } }", json!({})).await;
  assert_eq!(page["data"]["conversation"]["messages"]["nodes"], json!([{ "text": "hello" }]));
}

#[tokio::test]
async fn an_answer_says_honestly_that_it_is_undecided_and_the_key_gets_the_decision_later() {
  let world = World::new().await;
  world.switch(Switches { undecided: true, ..Switches::default() });
  let undecided = world.send("k1", "hello").await;
  assert_eq!(undecided, json!({ "message": null, "position": null, "decided": false, "userErrors": [] }));
  world.switch(Switches::default());
  let decided = world.send("k1", "hello").await;
  assert_eq!((&decided["decided"], &decided["message"]["text"], &decided["message"]["status"]), (&json!(true), &json!("hello"), &json!("PENDING")));
}

#[tokio::test]
async fn what_is_held_behind_a_quarantine_is_not_decided() {
  let world = World::new().await;
  world.switch(Switches { held: true, ..Switches::default() });
  let held = world.send("k1", "hello").await;
  assert_eq!(held, json!({ "message": null, "position": null, "decided": false, "userErrors": [] }));
}

#[tokio::test]
async fn a_refusal_is_given_again_under_its_key() {
  let world = World::new().await;
  let nobody = json!("01890000-0000-7000-8000-000000000000");
  for _ in 0..2 {
    let refused = world.verb("stopReply", "k1", &nobody).await;
    assert_eq!(refused, json!({ "message": null, "position": null, "decided": true, "userErrors": [{ "code": "NOT_FOUND", "field": null }] }));
  }
  let input = json!({ "requestKey": "k2", "text": "x", "conversationId": "01890000-0000-7000-8000-000000000000" });
  for _ in 0..2 {
    assert_eq!(world.sent(input.clone()).await["userErrors"][0]["code"], "NOT_FOUND");
  }
}

/// Proves D36.
#[tokio::test]
async fn what_has_the_wrong_form_is_refused_before_it_is_appended() {
  let world = World::new().await;
  let before = pa_eventlog::EventLog::end(&world.log, Stream::Inputs, 0).await.unwrap();
  for (input, code, field) in [
    (json!({ "requestKey": "k", "text": " " }), "TEXT_EMPTY", "text"),
    (json!({ "requestKey": "k", "text": "x".repeat(262_145) }), "TEXT_TOO_LONG", "text"),
    (json!({ "requestKey": "", "text": "x" }), "VALUE_INVALID", "requestKey"),
    (json!({ "requestKey": "k".repeat(201), "text": "x" }), "VALUE_INVALID", "requestKey"),
    (json!({ "requestKey": "k", "text": "x", "conversationId": "main" }), "NOT_FOUND", "conversationId"),
    (json!({ "requestKey": "k", "text": "x", "attachmentIds": ["../../etc/passwd"] }), "NOT_FOUND", "attachmentIds"),
  ] {
    let payload = world.sent(input).await;
    assert_eq!((&payload["userErrors"][0]["code"], &payload["userErrors"][0]["field"]), (&json!(code), &json!(["input", field])));
    assert_eq!((&payload["decided"], &payload["position"]), (&json!(true), &Value::Null));
  }
  assert_eq!(pa_eventlog::EventLog::end(&world.log, Stream::Inputs, 0).await.unwrap(), before);
  assert_eq!(world.sent(json!({ "requestKey": "k", "text": "x".repeat(262_144) })).await["message"]["status"], "PENDING");
}

#[tokio::test]
async fn an_append_of_unknown_fate_ends_in_one_message() {
  let world = World::new().await;
  for (key, fault) in [("lost-ack", Fault::LostAck), ("lost", Fault::Lost), ("twice", Fault::Duplicate), ("refused", Fault::Refused)] {
    world.log.inject(Stream::Inputs, fault);
    let payload = world.send(key, key).await;
    assert_eq!((&payload["decided"], &payload["message"]["text"]), (&json!(true), &json!(key)), "{payload}");
  }
  let page = world.ask("{ conversation { messages { nodes { text } } } }", json!({})).await;
  let texts = page["data"]["conversation"]["messages"]["nodes"].clone();
  assert_eq!(texts, json!([{ "text": "lost-ack" }, { "text": "lost" }, { "text": "twice" }, { "text": "refused" }]));
}

/// The log is away for longer than a request waits: nobody knows what became of it, and nobody says that it was accepted.
#[tokio::test]
async fn an_unknown_fate_is_said_as_such_and_the_same_key_finds_out() {
  let world = World::new().await;
  // More than the tries that one request has, fewer than those of two.
  for _ in 0..25 {
    world.log.inject(Stream::Inputs, Fault::Lost);
  }
  let answer = world.ask(super::world::SEND, json!({ "input": { "requestKey": "k", "text": "hello" } })).await;
  assert_eq!((&answer["data"], &answer["errors"][0]["extensions"]["code"]), (&Value::Null, &json!("UNCONFIRMED")), "{answer}");
  assert!(answer["errors"][0]["message"].as_str().unwrap().contains("same requestKey"), "{answer}");
  let decided = world.send("k", "hello").await;
  assert_eq!((&decided["decided"], &decided["message"]["text"]), (&json!(true), &json!("hello")), "{decided}");
  assert_eq!(world.send("k", "hello").await["message"]["id"], decided["message"]["id"]);
  let page = world.ask("{ conversation { messages { nodes { text } } } }", json!({})).await;
  assert_eq!(page["data"]["conversation"]["messages"]["nodes"], json!([{ "text": "hello" }]));
}

#[tokio::test]
async fn what_certainly_was_not_accepted_is_said_so() {
  let world = World::new().await;
  for _ in 0..100 {
    world.log.inject(Stream::Inputs, Fault::Refused);
  }
  let answer = world.ask(super::world::SEND, json!({ "input": { "requestKey": "k", "text": "x" } })).await;
  assert_eq!((&answer["data"], &answer["errors"][0]["extensions"]["code"]), (&Value::Null, &json!("UNAVAILABLE")));
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_cancel_its_request() {
  let world = World::new().await;
  world.switch(Switches { undecided: true, ..Switches::default() });
  let body = json!({ "query": super::world::SEND, "variables": { "input": { "requestKey": "k1", "text": "hello" } } });
  let gone = world.post("/graphql").bearer_auth(&world.token).json(&body).timeout(std::time::Duration::from_millis(300)).send().await;
  assert!(gone.unwrap_err().is_timeout());
  world.switch(Switches::default());
  let first = world.send("k1", "hello").await;
  assert_eq!(first["message"]["text"], "hello");
  let page = world.ask("{ conversation { messages { nodes { id } } } }", json!({})).await;
  assert_eq!(page["data"]["conversation"]["messages"]["nodes"], json!([{ "id": first["message"]["id"] }]));
}

#[tokio::test]
async fn a_stopped_reply_keeps_what_was_shown_and_a_retry_asks_again() {
  let world = World::new().await;
  let message = world.send("k1", "hello").await["message"]["id"].clone();
  let (_, execution, _, reply) = world.execute(world.owner, &message).await;
  world.pieces.publish(world.owner, &Piece { message: reply, attempt: execution, offset_utf16: 0, text: "Half a rep".into() });
  let stopped = world.verb("stopReply", "k2", &message).await;
  assert_eq!((&stopped["message"]["status"], &stopped["decided"], &stopped["userErrors"]), (&json!("STOPPED"), &json!(true), &json!([])), "{stopped}");
  world.pieces.publish(world.owner, &Piece { message: reply, attempt: execution, offset_utf16: 10, text: "ly".into() });
  // The same request a moment later, when more had been shown, is the same request.
  assert_eq!(world.verb("stopReply", "k2", &message).await["message"]["status"], "STOPPED");
  assert_eq!(world.verb("stopReply", "k3", &message).await["userErrors"][0]["code"], "STATE_CHANGED");
  let page = world.ask("{ conversation { messages { nodes { text status role } } } }", json!({})).await;
  assert_eq!(page["data"]["conversation"]["messages"]["nodes"][1], json!({ "text": "Half a rep", "status": "STOPPED", "role": "AGENT" }));
  let retried = world.verb("retryMessage", "k4", &message).await;
  assert_eq!(retried["message"]["status"], "PENDING", "{retried}");
}

/// Proves RUN-42, SET-8 and SID-19 at the edge.
#[tokio::test]
async fn settings_change_on_the_version_that_was_seen() {
  let world = World::new().await;
  let query = "mutation($input: UpdateSettingsInput!) { updateSettings(input: $input) { settings { version timeZone model effort concurrency availableModels { name rehearsal } } position decided userErrors { code field } } }";
  let update = async |input: Value| {
    let answer = world.ask(query, json!({ "input": input })).await;
    assert!(answer["errors"].is_null(), "{answer}");
    answer["data"]["updateSettings"].clone()
  };
  let changed = update(json!({ "requestKey": "k1", "version": 1, "timeZone": "Asia/Shanghai", "concurrency": 3 })).await;
  assert_eq!(
    (&changed["settings"]["version"], &changed["settings"]["timeZone"], &changed["settings"]["concurrency"]),
    (&json!(2), &json!("Asia/Shanghai"), &json!(3))
  );
  assert_eq!((&changed["settings"]["effort"], &changed["settings"]["availableModels"]), (&json!("FAST"), &json!([{ "name": "rehearsal", "rehearsal": true }])));
  let again = update(json!({ "requestKey": "k1", "version": 1, "timeZone": "Asia/Shanghai", "concurrency": 3 })).await;
  assert_eq!((&again["settings"]["version"], &again["decided"]), (&json!(2), &json!(true)));
  for (input, code) in [
    (json!({ "requestKey": "k2", "version": 1, "timeZone": "UTC" }), "STATE_CHANGED"),
    (json!({ "requestKey": "k3", "version": 2, "timeZone": "Mars/Olympus" }), "VALUE_INVALID"),
    (json!({ "requestKey": "k4", "version": 2, "model": "unknown" }), "VALUE_INVALID"),
    (json!({ "requestKey": "k5", "version": 2, "effort": "HIGH" }), "VALUE_INVALID"),
  ] {
    let refused = update(input).await;
    assert_eq!((&refused["settings"], &refused["userErrors"][0]["code"]), (&Value::Null, &json!(code)));
  }
}
