//! Conversations as they were.

use pa_domain::account::Role;

use serde_json::{Value, json};

use super::decider::Switches;
use super::world::World;

const PAST: &str = "query($id: ID, $asOf: AsOf, $last: Int, $before: String, $atLeast: Position) { conversation(id: $id, asOf: $asOf, atLeast: $atLeast) { id kind title \
  messages(last: $last, before: $before) { pageInfo { hasPreviousPage hasNextPage startCursor endCursor } edges { cursor } nodes { id text role author status changed place \
  createdAt replyToId replyId incomplete notice { code } attachments { id name mediaType size sha256 url } } } } }";

impl World {
  async fn conversation(&self, variables: Value) -> Value {
    let answer = self.ask(PAST, variables).await;
    assert!(answer["errors"].is_null(), "{answer}");
    answer["data"]["conversation"].clone()
  }

  async fn code(&self, variables: Value) -> Value {
    let answer = self.ask(PAST, variables).await;
    assert!(answer["data"]["conversation"].is_null(), "{answer}");
    answer["errors"][0]["extensions"]["code"].clone()
  }

  /// Sends messages, one with a file; after each its position and the conversation as it is.
  async fn told(&self) -> Vec<(Value, Value)> {
    let file: Value = self.post("/files?name=a.txt").bearer_auth(&self.token).body("x").send().await.unwrap().json().await.unwrap();
    let mut told = Vec::new();
    for n in 0..5 {
      let files = if n == 2 { json!([file["id"]]) } else { json!([]) };
      let position = self.sent(json!({ "requestKey": n.to_string(), "text": format!("message {n}"), "attachmentIds": files })).await["position"].clone();
      let now = loop {
        let answer = self.ask(PAST, json!({ "atLeast": position, "last": 50 })).await;
        if answer["extensions"].is_null() {
          break answer["data"]["conversation"].clone();
        }
      };
      told.push((position, now));
    }
    told
  }
}

#[tokio::test]
async fn a_conversation_is_shown_as_it_was_at_each_position_and_instant() {
  let world = World::new().await;
  let told = world.told().await;
  let id = told[0].1["id"].clone();
  for (number, (position, then)) in told.iter().enumerate() {
    assert_eq!(then["messages"]["nodes"].as_array().unwrap().len(), number + 1);
    assert_eq!(world.conversation(json!({ "asOf": { "position": position }, "last": 50 })).await, *then);
    assert_eq!(world.conversation(json!({ "id": id, "asOf": { "position": position }, "last": 50 })).await, *then);
  }
  // What the page shows now, as of now; and the middle of it, page by page.
  let (newest, now) = told.last().unwrap();
  let ordinal = newest.as_str().unwrap().split('@').next().unwrap();
  for position in [ordinal.to_owned(), format!("{ordinal}@of_another_schema")] {
    assert_eq!(world.conversation(json!({ "asOf": { "position": position }, "last": 50 })).await, *now);
  }
  let page = json!({ "asOf": { "position": newest }, "last": 2, "before": now["messages"]["edges"][3]["cursor"] });
  let middle = world.conversation(page).await["messages"].clone();
  assert_eq!(middle["nodes"], json!([now["messages"]["nodes"][1], now["messages"]["nodes"][2]]));
  assert_eq!((&middle["pageInfo"]["hasPreviousPage"], &middle["pageInfo"]["hasNextPage"]), (&json!(true), &json!(true)));
  // A message's own instant shows it and nothing later.
  let at = now["messages"]["nodes"][1]["createdAt"].clone();
  let then = world.conversation(json!({ "asOf": { "time": at }, "last": 50 })).await;
  let texts: Vec<&str> = then["messages"]["nodes"].as_array().unwrap().iter().map(|node| node["text"].as_str().unwrap()).collect();
  assert!(texts.starts_with(&["message 0", "message 1"]) && texts.len() <= 3, "messages of one millisecond count together: {texts:?}");
}

#[tokio::test]
async fn before_a_conversation_was_open_there_is_none() {
  let world = World::new().await;
  world.told().await;
  for as_of in [json!({ "position": "0" }), json!({ "time": "2001-01-01T00:00:00Z" })] {
    assert_eq!(world.conversation(json!({ "asOf": as_of })).await, Value::Null);
  }
}

#[tokio::test]
async fn what_has_not_happened_yet_can_not_be_shown_as_it_was() {
  let world = World::new().await;
  let told = world.told().await;
  assert_eq!(world.code(json!({ "asOf": { "position": "9999" } })).await, "AHEAD_OF_HISTORY");
  assert_eq!(world.code(json!({ "asOf": { "time": "2999-01-01T00:00:00Z" } })).await, "AHEAD_OF_HISTORY");
  // Decided, and not in the read model: it is waited for, and then it is an error and no older answer.
  world.switch(Switches { unprojected: true, ..Switches::default() });
  let position = world.send("unprojected", "not yet").await["position"].clone();
  assert_eq!(world.code(json!({ "asOf": { "position": position } })).await, "AHEAD_OF_HISTORY");
  world.switch(Switches::default());
  assert_eq!(
    world.conversation(json!({ "atLeast": position, "asOf": { "position": position }, "last": 50 })).await["messages"]["nodes"].as_array().unwrap().len(),
    6
  );
  assert_eq!(world.conversation(json!({ "asOf": { "position": told[4].0 }, "last": 50 })).await, told[4].1);
}

#[tokio::test]
async fn as_of_takes_one_of_both_and_a_document_takes_few() {
  let world = World::new().await;
  for wrong in [json!({}), json!({ "position": "1", "time": "2026-01-01T00:00:00Z" }), json!({ "position": "x" }), json!({ "time": "yesterday" })] {
    let answer = world.ask(PAST, json!({ "asOf": wrong })).await;
    assert!(answer["data"].is_null() && answer["errors"][0]["message"].is_string(), "{answer}");
  }
  let many = (0..20).map(|n| format!("a{n}: conversation(asOf: {{ position: \"1\" }}) {{ id }}")).collect::<Vec<_>>().join(" ");
  let answer = world.ask(&format!("{{ {many} }}"), json!({})).await;
  assert!(answer["errors"][0]["message"].as_str().unwrap().contains("complex"), "{answer}");
}

#[tokio::test]
async fn the_past_of_another_account_is_not_shown() {
  let world = World::new().await;
  let told = world.told().await;
  let (position, mine) = told.last().unwrap();
  let other = world.account("Eve", Role::Member).await;
  let token = world.bearer(other).await;
  let now = json!({ "time": mine["messages"]["nodes"][4]["createdAt"] });
  for as_of in [json!({ "position": "1" }), now] {
    let answer = world.asked_by(&token, PAST, json!({ "id": mine["id"], "asOf": as_of })).await;
    assert_eq!((&answer["data"]["conversation"], &answer["errors"]), (&Value::Null, &Value::Null), "{answer}");
  }
  let answer = world.asked_by(&token, PAST, json!({ "id": mine["id"], "asOf": { "position": position } })).await;
  assert_eq!(answer["errors"][0]["extensions"]["code"], "AHEAD_OF_HISTORY", "a position is one of the own history: {answer}");
}

/// The read model says where an event stands; the record there must be that one.
#[tokio::test]
async fn an_event_that_is_not_where_it_should_be_is_no_other_events_text() {
  let world = World::new().await;
  let told = world.told().await;
  let schema = pa_projections::schema::current();
  let (position, _) = &told[3];
  let swapped = format!("UPDATE {}.audit SET position = position - 1 WHERE agent = $1 AND ordinal = $2", schema.name());
  let ordinal: i64 = position.as_str().unwrap().split('@').next().unwrap().parse().unwrap();
  let done = sqlx::query(sqlx::AssertSqlSafe(swapped)).bind(world.owner.0).bind(ordinal).execute(&world.db.pool).await.unwrap();
  assert_eq!(done.rows_affected(), 1);
  let answer = world.ask(PAST, json!({ "asOf": { "position": position } })).await;
  assert_eq!(answer["errors"][0]["extensions"]["code"], "INTERNAL", "{answer}");
}
