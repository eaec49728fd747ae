//! Who is let in.

use axum::http::header;
use pa_domain::account::Role;
use pa_store::ops::tokens::Kind;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use super::world::World;
use crate::limits::WRONG_TRIES_MAX;

async fn code(response: Response) -> (u16, String) {
  let status = response.status().as_u16();
  let body: Value = response.json().await.unwrap();
  (status, body["errors"][0]["extensions"]["code"].as_str().unwrap_or_default().to_owned())
}

fn request() -> Value {
  json!({ "query": "{ viewer { account } }" })
}

#[tokio::test]
async fn without_a_right_credential_nothing_is_answered() {
  let world = World::new().await;
  let unauthenticated = (401, "UNAUTHENTICATED".to_owned());
  assert_eq!(code(world.post("/graphql").json(&request()).send().await.unwrap()).await, unauthenticated);
  for wrong in ["pa_wrong", "", "pa_"] {
    assert_eq!(code(world.post("/graphql").bearer_auth(wrong).json(&request()).send().await.unwrap()).await, unauthenticated);
  }
  let cookie = world.post("/graphql").header(header::COOKIE, "pa_session=pa_wrong").json(&request());
  assert_eq!(code(cookie.send().await.unwrap()).await, unauthenticated);
  for path in ["/files", "/sign-out"] {
    assert_eq!(code(world.post(path).send().await.unwrap()).await, unauthenticated, "{path}");
  }
  // A credential of another kind is none: a sign-in code or a session is no bearer.
  for kind in [Kind::SignIn, Kind::Session, Kind::Device, Kind::Task] {
    let token = world.credential(world.owner, kind, Some(60_000)).await;
    assert_eq!(code(world.post("/graphql").bearer_auth(token).json(&request()).send().await.unwrap()).await, unauthenticated, "{kind:?}");
  }
  assert_eq!(world.ask("{ viewer { account name role } }", json!({})).await["data"]["viewer"]["name"], "Ada");
}

#[tokio::test]
async fn whoever_guesses_waits_and_whoever_knows_does_not() {
  let world = World::new().await;
  world.ask("{ viewer { account } }", json!({})).await;
  for n in 0..WRONG_TRIES_MAX {
    let guess = world.post("/graphql").bearer_auth(format!("pa_{n}")).json(&request()).send().await.unwrap();
    assert_eq!(guess.status(), StatusCode::UNAUTHORIZED);
  }
  let refused = world.post("/graphql").bearer_auth("pa_more").json(&request()).send().await.unwrap();
  assert_eq!(refused.headers()[header::RETRY_AFTER], "2");
  assert_eq!(code(refused).await, (429, "TOO_MANY_TRIES".to_owned()));
  assert!(world.ask("{ viewer { account } }", json!({})).await["errors"].is_null());
}

async fn signed_in(world: &World) -> (String, Response) {
  let link = world.credential(world.owner, Kind::SignIn, Some(60_000)).await;
  let response = world.post(&format!("/sign-in/{link}")).header(header::ORIGIN, world.url("")).send().await.unwrap();
  let cookie = response.headers().get(header::SET_COOKIE).map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap().to_owned());
  (cookie.unwrap_or_default(), response)
}

#[tokio::test]
async fn a_sign_in_link_works_once_however_many_use_it_at_once() {
  let world = World::new().await;
  let link = format!("/sign-in/{}", world.credential(world.owner, Kind::SignIn, Some(60_000)).await);
  // A link preview opens it, and uses nothing up.
  for _ in 0..3 {
    let page = world.get(&link).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    assert!(page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("form-action 'self'"));
    assert!(page.text().await.unwrap().contains("<form method=\"post\">"));
  }
  let tries = futures::future::join_all((0..8).map(|_| world.post(&link).send())).await;
  let statuses: Vec<u16> = tries.into_iter().map(|response| response.unwrap().status().as_u16()).collect();
  assert_eq!(statuses.iter().filter(|status| **status == 303).count(), 1, "{statuses:?}");
  assert_eq!(statuses.iter().filter(|status| **status == 410).count(), 7, "{statuses:?}");
  let used = world.get(&link).header(header::ACCEPT_LANGUAGE, "zh-CN").send().await.unwrap();
  assert_eq!(used.status(), StatusCode::GONE);
  assert!(used.text().await.unwrap().contains("此链接已使用"));
}

#[tokio::test]
async fn an_expired_link_signs_nobody_in() {
  let world = World::new().await;
  let link = format!("/sign-in/{}", world.credential(world.owner, Kind::SignIn, Some(-1)).await);
  assert_eq!(world.get(&link).send().await.unwrap().status(), StatusCode::GONE);
  let response = world.post(&link).send().await.unwrap();
  assert_eq!(response.status(), StatusCode::GONE);
  assert!(!response.headers().contains_key(header::SET_COOKIE));
}

#[tokio::test]
async fn a_session_counts_from_our_own_page_only_and_until_sign_out() {
  let world = World::new().await;
  let (cookie, response) = signed_in(&world).await;
  assert_eq!(response.headers()[header::LOCATION], "/");
  let line = response.headers()[header::SET_COOKIE].to_str().unwrap();
  assert!(line.contains("HttpOnly") && line.contains("SameSite=Strict") && line.contains("Path=/"), "{line}");
  let ask = |origin: &str| world.post("/graphql").header(header::COOKIE, &cookie).header(header::ORIGIN, origin).json(&request());
  assert_eq!(ask(&world.url("")).send().await.unwrap().status(), StatusCode::OK);
  assert_eq!(code(ask("https://evil.example").send().await.unwrap()).await, (403, "FOREIGN_ORIGIN".to_owned()));
  assert_eq!(code(ask("null").send().await.unwrap()).await, (403, "FOREIGN_ORIGIN".to_owned()));
  let rebound = ask("http://evil.example").header(header::HOST, "evil.example");
  assert_eq!(code(rebound.send().await.unwrap()).await, (403, "FOREIGN_ORIGIN".to_owned()));
  let foreign_exit = world.post("/sign-out").header(header::COOKIE, &cookie).header(header::ORIGIN, "https://evil.example");
  assert_eq!(foreign_exit.send().await.unwrap().status(), StatusCode::FORBIDDEN);
  let exit = world.post("/sign-out").header(header::COOKIE, &cookie).header(header::ORIGIN, world.url("")).send().await.unwrap();
  assert_eq!(exit.status(), StatusCode::NO_CONTENT);
  assert!(exit.headers()[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
  assert_eq!(code(ask(&world.url("")).send().await.unwrap()).await, (401, "UNAUTHENTICATED".to_owned()));
}

#[tokio::test]
async fn a_session_that_is_used_lives_on() {
  let world = World::new().await;
  let session = world.credential(world.owner, Kind::Session, Some(60_000)).await;
  let response = world.post("/graphql").header(header::COOKIE, format!("pa_session={session}")).json(&request()).send().await.unwrap();
  assert!(response.headers()[header::SET_COOKIE].to_str().unwrap().starts_with(&format!("pa_session={session}; Path=/; Max-Age=2592000")));
  let days: f64 =
    sqlx::query_scalar("SELECT extract(epoch FROM expires_at - clock_timestamp())::double precision / 86400 FROM ops.tokens WHERE kind = 'session'")
      .fetch_one(&world.db.pool)
      .await
      .unwrap();
  assert!(days > 29.0, "{days}");
}

#[tokio::test]
async fn nobody_sees_what_is_another_accounts() {
  let world = World::new().await;
  let other = world.account("Grace", Role::Member).await;
  let other_token = world.bearer(other).await;
  let payload = world.send("k1", "for Ada alone").await;
  let message = &payload["message"]["id"];
  let conversation = world.ask("{ conversation { id } }", json!({})).await["data"]["conversation"]["id"].clone();
  let query = "query($id: ID) { conversation(id: $id) { id messages { nodes { text } } } viewer { name role } system { parked { agentId } } }";
  let seen = world.asked_by(&other_token, query, json!({ "id": conversation })).await;
  assert_eq!(seen["data"], json!({ "conversation": null, "viewer": { "name": "Grace", "role": "MEMBER" }, "system": { "parked": [] } }));
  let stop = "mutation($input: MessageVerbInput!) { stopReply(input: $input) { message { id } userErrors { code } } }";
  let stopped = world.asked_by(&other_token, stop, json!({ "input": { "requestKey": "k1", "messageId": message } })).await;
  assert_eq!(stopped["data"]["stopReply"], json!({ "message": null, "userErrors": [{ "code": "NOT_FOUND" }] }));
}
