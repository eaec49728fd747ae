//! What nobody should send: refused with a clear word, and nothing else stops.

use serde_json::{Value, json};

use super::sound;
use crate::harness::{Client, Model, Product, Setup, TOKEN};

const SEND: &str = "mutation($input: SendMessageInput!) { sendMessage(input: $input) { message { id } userErrors { code } } }";

/// The longest text is taken whole; one byte more is refused, and so is no text at all.
#[tokio::test]
async fn text_is_taken_up_to_its_limit_and_refused_beyond() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).env("PA__MODEL__CONTEXT_TOKENS", "400000").start().await;
  let owner = product.owner();
  let longest = "a".repeat(262_144);
  let id = owner.send(&longest).await.id();
  assert_eq!(owner.send(&format!("{longest}a")).await.code(), "TEXT_TOO_LONG");
  // Bytes count, not letters.
  assert_eq!(owner.send(&"é".repeat(131_073)).await.code(), "TEXT_TOO_LONG");
  assert_eq!(owner.send("").await.code(), "TEXT_EMPTY");
  assert_eq!(owner.send(" \n\t").await.code(), "TEXT_EMPTY");
  let settled = owner.settled().await;
  assert_eq!(settled.iter().find(|message| message.id == id).unwrap().text.len(), 262_144);
  assert_eq!(settled.iter().filter(|message| message.role == "OWNER").count(), 1);
  sound(&product);
}

/// Bodies that are too large, no JSON, or no question that we answer.
#[tokio::test]
async fn a_body_of_five_megabytes_and_nonsense_are_refused() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let large = json!({ "query": SEND, "variables": { "input": { "requestKey": "large", "text": "a".repeat(5 * 1024 * 1024) } } });
  let (status, answer) = owner.post_bytes(large.to_string().into_bytes()).await.unwrap();
  assert_eq!((status, &answer["errors"][0]["extensions"]["code"]), (413, &json!("TOO_LARGE")), "{answer}");
  for nonsense in ["", "{", "[]", "null", r#"{"query":7}"#, "\u{0}\u{1}\u{2}"] {
    let (status, _) = owner.post_bytes(nonsense.as_bytes().to_vec()).await.unwrap();
    assert_eq!(status, 400, "{nonsense:?}");
  }
  let deep = format!("{{ {}conversation{{id}}{} }}", "a:agent{".repeat(200), "}".repeat(200));
  let (status, answer) = owner.post(&deep, json!({})).await.unwrap();
  assert!(status == 200 && !answer["errors"].is_null(), "{status} {answer}");
  let (status, answer) = owner.upload("large.bin", "application/octet-stream", vec![0; 20 * 1024 * 1024 + 1]).await;
  assert_eq!((status, &answer["errors"][0]["extensions"]["code"]), (413, &json!("TOO_LARGE")));

  let id = owner.send("still there?").await.id();
  owner.reply_to(&id).await;
  sound(&product);
}

/// A wrong token opens nothing: not the queries, not the files, not the socket.
#[tokio::test]
async fn a_wrong_token_is_refused_everywhere() {
  let product = Setup::new().await.start().await;
  let wrong = Client::new(&product.url, "pa_owner_token_of_somebody_else");
  let (status, answer) = wrong.post("{ agent { id } }", json!({})).await.unwrap();
  assert_eq!((status, &answer["errors"][0]["extensions"]["code"]), (401, &json!("UNAUTHENTICATED")));
  assert_eq!(wrong.upload("x", "text/plain", b"x".to_vec()).await.0, 401);
  assert_eq!(wrong.get("/files/00000000-0000-0000-0000-000000000000").await.unwrap().status(), 401);
  let none = wrong.http.post(format!("{}/graphql", product.url)).json(&json!({ "query": "{ agent { id } }" })).send().await.unwrap();
  assert_eq!(none.status(), 401);

  let mut socket = wrong.socket(&[]).await.unwrap();
  socket.say(json!({ "type": "connection_init", "payload": { "authorization": "Bearer nonsense-nonsense" } })).await;
  assert_eq!(socket.hears().await, Err(4403));
  let mut socket = wrong.socket(&[]).await.unwrap();
  socket.say(json!({ "type": "connection_init" })).await;
  assert_eq!(socket.hears().await, Err(4403));
  assert_eq!(product.owner().ask("{ viewer { name } }", json!({})).await["viewer"]["name"], "Owner");
}

/// Signs a browser in by the link; its cookie.
async fn sign_in(product: &Product) -> String {
  let http = &product.owner().http;
  let shown = http.get(&product.sign_in).send().await.unwrap();
  assert_eq!(shown.status(), 200, "a preview of the link consumes nothing");
  let entered = http.post(&product.sign_in).header("origin", &product.url).send().await.unwrap();
  assert_eq!(entered.status(), 303);
  let cookie = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
  assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite="), "{cookie}");
  cookie.split(';').next().unwrap().to_owned()
}

/// A link works once; a session counts only from our own page under our own name.
#[tokio::test]
async fn a_session_is_of_no_use_to_a_foreign_page() {
  let product = Setup::new().await.start().await;
  let (url, http) = (product.url.clone(), product.owner().http);
  let cookie = sign_in(&product).await;
  let again = http.post(&product.sign_in).header("origin", &url).send().await.unwrap();
  assert_eq!(again.status(), 410, "a sign-in link works once");

  let ask = async |headers: &[(&str, &str)]| {
    let mut request = http.post(format!("{url}/graphql")).header("cookie", &cookie).json(&json!({ "query": "{ viewer { name } }" }));
    for (name, value) in headers {
      request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json::<Value>().await.unwrap()["errors"][0]["extensions"]["code"].clone())
  };
  assert_eq!(ask(&[("origin", &url)]).await, (200, Value::Null));
  for foreign in [[("origin", "https://evil.example")], [("origin", "null")], [("sec-fetch-site", "cross-site")], [("host", "evil.example")]] {
    assert_eq!(ask(&foreign).await, (403, json!("FOREIGN_ORIGIN")), "{foreign:?}");
  }
  let foreign = product.owner().socket(&[("cookie", &cookie), ("origin", "https://evil.example")]).await;
  match foreign {
    Err(_) => {}
    Ok(mut socket) => {
      socket.say(json!({ "type": "connection_init" })).await;
      assert_eq!(socket.hears().await, Err(4403));
    }
  }
  let mut own = product.owner().socket(&[("cookie", &cookie), ("origin", &url)]).await.unwrap();
  own.say(json!({ "type": "connection_init" })).await;
  assert_eq!(own.hears().await.unwrap()["type"], "connection_ack");
}

/// A token that was stolen is worth nothing once it was reset, and neither are the sessions made with the account.
#[tokio::test]
async fn a_stolen_token_ends_when_it_is_reset() {
  let product = Setup::new().await.env("PA_OWNER_TOKEN", "").start().await;
  let show = |tool: crate::harness::Tool| tool.out.lines().last().unwrap_or_default().to_owned();
  let stolen = show(product.tool(&["token", "show"]));
  let thief = Client::new(&product.url, &stolen);
  assert_eq!(thief.ask("{ viewer { name } }", json!({})).await["viewer"]["name"], "Owner");
  let cookie = sign_in(&product).await;

  let fresh = show(product.tool(&["token", "reset"]));
  assert_ne!(fresh, stolen);
  assert_eq!(thief.post("{ viewer { name } }", json!({})).await.unwrap().0, 401);
  let session = thief.http.post(format!("{}/graphql", product.url)).header("cookie", &cookie).header("origin", &product.url);
  assert_eq!(session.json(&json!({ "query": "{ viewer { name } }" })).send().await.unwrap().status(), 401);
  assert_eq!(Client::new(&product.url, &fresh).ask("{ viewer { name } }", json!({})).await["viewer"]["name"], "Owner");
  // A fresh link leads in again.
  let link = show(product.tool(&["token", "link"]));
  assert!(link.starts_with(&product.url), "{link}");
  assert_eq!(thief.http.get(&link).send().await.unwrap().status(), 200);
}

/// The same key with other content is a conflict, by any way in, and changes nothing.
#[tokio::test]
async fn a_request_key_with_other_content_is_a_conflict() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let id = owner.send_as("key", "one text").await.id();
  assert_eq!(owner.send_as("key", "another text").await.code(), "REQUEST_KEY_CONFLICT");
  assert_eq!(owner.send_as("key", "one text").await.id(), id);
  let other = owner.mutate("stopReply", "MessageVerbInput", json!({ "requestKey": "key", "messageId": id })).await.unwrap();
  assert_eq!(other.code(), "REQUEST_KEY_CONFLICT");
  product.restart9().await;
  assert_eq!(product.owner().send_as("key", "another text").await.code(), "REQUEST_KEY_CONFLICT");
  for key in ["", &"k".repeat(201)] {
    assert_eq!(product.owner().send_as(key, "text").await.code(), "VALUE_INVALID", "{key:?}");
  }
  let messages = product.owner().settled().await;
  assert_eq!(messages.iter().filter(|message| message.role == "OWNER").count(), 1);
  sound(&product);
}

/// What is planted as a secret stands in no record, no line of the log, and no table.
#[tokio::test]
async fn a_secret_appears_nowhere() {
  const KEY: &str = "sk-planted-model-key-0123456789";
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).env("PA_MODEL_API_KEY", KEY).env("PA_LOG", "debug").start().await;
  let cookie = sign_in(&product).await;
  let owner = product.owner();
  owner.send("hello").await;
  owner.settled().await;
  Client::new(&product.url, "pa_wrong_token_planted").post("{ agent { id } }", json!({})).await.unwrap();
  assert_eq!(model.script.requests()[0].authorization.as_deref(), Some(&*format!("Bearer {KEY}")));

  let session = cookie.split_once('=').unwrap().1.to_owned();
  let code = product.sign_in.rsplit('/').next().unwrap().to_owned();
  let dump = sound(&product);
  let tables = everything_stored(&product).await;
  let lines = product.process().log().replace(&format!("sign-in={}", product.sign_in), "");
  for secret in [KEY, TOKEN, &session, &code, "pa_wrong_token_planted"] {
    for (place, text) in [("the log", &dump.text), ("a log line", &lines), ("a table", &tables)] {
      assert!(!text.contains(secret), "{secret} stands in {place}");
      let hex: String = secret.bytes().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(|digit| char::from_digit(digit.into(), 16)).collect();
      assert!(!text.contains(&hex), "{secret} stands in {place}, in hex");
    }
  }
  // The words of a person stand in no table of the log either, since its values are sealed.
  assert!(lines.lines().all(|line| !line.contains("re: hello")), "no log line has a message's text");
}

/// Every row of every table, as text.
async fn everything_stored(product: &Product) -> String {
  let pool = product.setup.pool();
  let tables: Vec<String> = sqlx::query_scalar(
    "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'",
  )
  .fetch_all(pool)
  .await
  .unwrap();
  assert!(tables.len() > 20, "{tables:?}");
  let mut text = String::new();
  for table in tables {
    let rows: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT t::text FROM {table} t"))).fetch_all(pool).await.unwrap();
    text.extend(rows);
  }
  text
}
