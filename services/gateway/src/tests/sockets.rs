//! The protocol of the socket: who gets in, how it ends, and what a slow reader costs.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use pa_domain::account::Role;
use pa_domain::{ConversationId, MessageId};
use pa_eventlog::pieces::Piece;
use pa_store::ops::tokens::{self, Kind, TokenHash};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::{Error, Message};
use uuid::Uuid;

use super::socket_client::{Got, UPDATES};
use super::world::{PATIENCE, World};
use crate::limits::{OPERATIONS_PER_SOCKET_MAX, REQUEST_BYTES_MAX, SOCKETS_PER_ACCOUNT_MAX, WRITE_WITHIN};

#[tokio::test]
async fn a_socket_ends_with_the_code_that_says_why() {
  let world = World::new().await;
  let init = |token: &str| json!({ "type": "connection_init", "payload": { "authorization": format!("Bearer {token}") } });
  for (messages, code) in [
    (vec![json!({ "type": "connection_init" })], 4403),
    (vec![init("pa_wrong")], 4403),
    (vec![json!({ "type": "connection_init", "payload": { "authorization": world.token } })], 4403),
    (vec![json!({ "type": "subscribe", "id": "1", "payload": { "query": UPDATES } })], 4401),
    (vec![json!({ "type": "nonsense" })], 4400),
    (vec![json!([])], 4400),
    (vec![init(&world.token), init(&world.token)], 4429),
    (vec![init(&world.token), json!({ "type": "start", "id": "1" })], 4400),
  ] {
    let mut socket = world.plain_socket().await;
    for message in &messages {
      socket.say(message.clone()).await;
    }
    assert_eq!(socket.closed().await, code, "{messages:?}");
  }
  let mut binary = world.owner_socket().await;
  binary.0.send(Message::binary(vec![1, 2, 3])).await.unwrap();
  assert_eq!(binary.closed().await, 4400);
  let mut twice = world.updates(json!(null)).await;
  twice.subscribe("u", UPDATES, json!({})).await;
  assert_eq!(twice.closed().await, 4409);
  assert_eq!(world.socket(&[]).await.unwrap().closed().await, 4406);
}

#[tokio::test]
async fn a_credential_in_the_upgrade_counts_and_a_cookie_from_a_foreign_page_does_not() {
  let world = World::new().await;
  let protocol = ("sec-websocket-protocol", "graphql-transport-ws");
  let bearer = format!("Bearer {}", world.token);
  let cookie = format!("pa_session={}", world.credential(world.owner, Kind::Session, Some(60_000)).await);
  let own = world.url("");
  for headers in [vec![protocol, ("authorization", bearer.as_str())], vec![protocol, ("cookie", cookie.as_str()), ("origin", own.as_str())]] {
    let mut socket = world.socket(&headers).await.unwrap();
    socket.say(json!({ "type": "connection_init" })).await;
    assert_eq!(socket.next().await, Got::Said(json!({ "type": "connection_ack" })));
  }
  let foreign = world.socket(&[protocol, ("cookie", cookie.as_str()), ("origin", "https://evil.example")]).await;
  assert!(matches!(foreign, Err(Error::Http(response)) if response.status() == 403));
}

#[tokio::test]
async fn a_sign_out_ends_the_sockets_of_its_session() {
  let world = World::new().await;
  let session = world.credential(world.owner, Kind::Session, Some(60_000)).await;
  let cookie = format!("pa_session={session}");
  let mut socket = world.socket(&[("sec-websocket-protocol", "graphql-transport-ws"), ("cookie", &cookie)]).await.unwrap();
  socket.say(json!({ "type": "connection_init" })).await;
  socket.next().await;
  let mut other = world.owner_socket().await;
  let ended = async || tokens::ended(&world.db.pool, &[TokenHash::of(&session)]).await.unwrap();
  assert_eq!(ended().await, []);
  assert_eq!(world.post("/sign-out").header("cookie", cookie).send().await.unwrap().status(), 204);
  assert_eq!(socket.closed().await, 4403);
  assert_eq!(ended().await, [TokenHash::of(&session)]);
  other.say(json!({ "type": "ping" })).await;
  assert_eq!(other.next().await, Got::Said(json!({ "type": "pong" })));
}

#[tokio::test]
async fn a_sign_out_everywhere_ends_every_session_of_the_account_and_no_bearer() {
  let world = World::new().await;
  let stranger = world.account("Grace", Role::Member).await;
  let mut sockets = Vec::new();
  for account in [world.owner, world.owner, stranger] {
    let cookie = format!("pa_session={}", world.credential(account, Kind::Session, Some(60_000)).await);
    let mut socket = world.socket(&[("sec-websocket-protocol", "graphql-transport-ws"), ("cookie", &cookie)]).await.unwrap();
    socket.say(json!({ "type": "connection_init" })).await;
    socket.next().await;
    sockets.push((cookie, socket));
  }
  let mut bearer = world.owner_socket().await;
  let leave = |cookie: &str| world.post("/sign-out/everywhere").header("cookie", cookie.to_owned());
  assert_eq!(leave(&sockets[0].0).header("origin", "https://evil.example").send().await.unwrap().status(), 403);
  let left = leave(&sockets[0].0).send().await.unwrap();
  assert_eq!(left.status(), 204);
  assert!(left.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
  assert_eq!(leave(&sockets[1].0).send().await.unwrap().status(), 401);
  for (_, socket) in &mut sockets[..2] {
    assert_eq!(socket.closed().await, 4403);
  }
  for socket in [&mut sockets[2].1, &mut bearer] {
    socket.say(json!({ "type": "ping" })).await;
    assert_eq!(socket.next().await, Got::Said(json!({ "type": "pong" })));
  }
}

#[tokio::test]
async fn a_credential_that_another_process_revokes_or_that_runs_out_ends_its_sockets_within_seconds() {
  let world = World::new().await;
  let revoked = world.credential(world.owner, Kind::Api, None).await;
  let short = world.credential(world.owner, Kind::Api, Some(3_000)).await;
  let mut sockets = Vec::new();
  for token in [&revoked, &short] {
    let mut socket = world.plain_socket().await;
    socket.say(json!({ "type": "connection_init", "payload": { "authorization": format!("Bearer {token}") } })).await;
    assert_eq!(socket.next().await, Got::Said(json!({ "type": "connection_ack" })));
    sockets.push(socket);
  }
  let mut other = world.owner_socket().await;
  // As `pa token reset` does it in its own process: the table alone knows.
  let began = Instant::now();
  tokens::revoke(&world.db.pool, TokenHash::of(&revoked)).await.unwrap();
  for socket in &mut sockets {
    assert_eq!(socket.closed().await, 4403);
  }
  assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
  other.say(json!({ "type": "ping" })).await;
  assert_eq!(other.next().await, Got::Said(json!({ "type": "pong" })));
}

#[tokio::test]
async fn queries_and_mistakes_are_answered_on_the_socket_too() {
  let world = World::new().await;
  let mut socket = world.owner_socket().await;
  socket.subscribe("q", "{ viewer { name } }", json!({})).await;
  assert_eq!(socket.next().await, Got::Said(json!({ "type": "next", "id": "q", "payload": { "data": { "viewer": { "name": "Ada" } } } })));
  assert_eq!(socket.next().await, Got::Said(json!({ "type": "complete", "id": "q" })));
  socket.subscribe("e", "{ nothing }", json!({})).await;
  let Got::Said(error) = socket.next().await else { panic!("the socket stays") };
  assert_eq!((&error["type"], &error["id"]), (&json!("error"), &json!("e")));
  assert!(error["payload"][0]["message"].is_string());
  // An id is free again when its operation has ended.
  socket.subscribe("q", "{ viewer { name } }", json!({})).await;
  assert!(matches!(socket.next().await, Got::Said(said) if said["type"] == "next"));
}

#[tokio::test]
async fn sockets_and_operations_are_limited() {
  let world = World::new().await;
  let mut socket = world.owner_socket().await;
  for n in 0..OPERATIONS_PER_SOCKET_MAX {
    socket.subscribe(&n.to_string(), UPDATES, json!({})).await;
  }
  socket.subscribe("more", UPDATES, json!({})).await;
  assert!(matches!(socket.next().await, Got::Said(said) if said["type"] == "error" && said["id"] == "more"));
  let mut sockets = vec![socket];
  while sockets.len() < SOCKETS_PER_ACCOUNT_MAX {
    sockets.push(world.owner_socket().await);
  }
  let mut more = world.plain_socket().await;
  more.say(json!({ "type": "connection_init", "payload": { "Authorization": format!("Bearer {}", world.token) } })).await;
  assert_eq!(more.closed().await, 4429);
  drop(sockets.pop());
  let deadline = Instant::now() + PATIENCE;
  loop {
    let mut again = world.plain_socket().await;
    again.say(json!({ "type": "connection_init", "payload": { "authorization": format!("Bearer {}", world.token) } })).await;
    if matches!(again.next().await, Got::Said(_)) {
      break;
    }
    assert!(Instant::now() < deadline, "the place is free again");
  }
  let mut large = world.plain_socket().await;
  large.0.send(Message::text("x".repeat(REQUEST_BYTES_MAX + 1))).await.ok();
  assert!(matches!(large.closed().await, 1006 | 1009));
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
  let deadline = Instant::now() + PATIENCE;
  while !holds() {
    assert!(Instant::now() < deadline, "{what}");
    sleep(Duration::from_millis(10)).await;
  }
}

#[tokio::test]
async fn subscriptions_end_with_their_socket_and_a_slow_reader_is_closed() {
  let world = World::new().await;
  let mut completed = world.updates(json!(null)).await;
  completed.subscribe("second", UPDATES, json!({})).await;
  eventually("two live", || world.gateway.open_subscriptions() == 2).await;
  completed.say(json!({ "type": "complete", "id": "second" })).await;
  let dropped = world.updates(json!(null)).await;
  drop(dropped);
  drop(completed);
  eventually("all are gone", || world.gateway.open_subscriptions() == 0).await;

  // It subscribes, and never reads again, while large pieces come.
  let slow = world.updates(json!(null)).await;
  let reply = MessageId(Uuid::from_u128(5));
  let text: std::sync::Arc<str> = "x".repeat(200_000).into();
  let began = Instant::now();
  let mut attempt = 0;
  while began.elapsed() < WRITE_WITHIN * 3 {
    attempt += 1;
    world.pieces.publish(world.owner, &Piece { message: reply, attempt, offset_utf16: 0, text: text.clone() });
    sleep(Duration::from_millis(30)).await;
    if attempt > 100 && world.gateway.open_subscriptions() == 0 {
      break;
    }
  }
  eventually("the slow reader's subscription is gone", || world.gateway.open_subscriptions() == 0).await;
  assert!(began.elapsed() >= WRITE_WITHIN, "it got its time");
  drop(slow);
  // Others were served meanwhile, and still are.
  let mut other = world.updates(json!(null)).await;
  world.pieces.step(world.owner, ConversationId(Uuid::from_u128(6)), Some("MEMORY"));
  other.until(|change| change["__typename"] == "StepNamed").await;
}

#[tokio::test]
async fn a_silent_client_is_not_awaited_and_a_quiet_one_is_pinged() {
  let world = World::new().await;
  let mut silent = world.plain_socket().await;
  let mut quiet = world.owner_socket().await;
  assert_eq!(silent.closed().await, 4408);
  let pinged = tokio::time::timeout(PATIENCE, quiet.0.next()).await.unwrap();
  assert_eq!(pinged.unwrap().unwrap(), Message::text(r#"{"type":"ping"}"#));
}

#[tokio::test]
async fn when_the_process_stops_sockets_are_told() {
  let world = World::new().await;
  let mut socket = world.updates(json!(null)).await;
  let mut uninitialised = world.plain_socket().await;
  sleep(Duration::from_millis(50)).await;
  world.shutdown.cancel();
  // Nothing comes before the close: a client could take `complete` for the end of what it asked for.
  assert_eq!(socket.next().await, Got::Closed(1001));
  assert_eq!(uninitialised.next().await, Got::Closed(1001));
}
