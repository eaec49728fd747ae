//! Requests that are too large, broken or hostile.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::world::World;

#[tokio::test]
async fn a_body_of_five_megabytes_is_refused_and_the_client_reads_why() {
  let world = World::new().await;
  let huge = json!({ "query": "{ viewer { account } }", "variables": { "padding": "x".repeat(5 * 1024 * 1024) } }).to_string();
  for chunked in [false, true] {
    let body = if chunked { reqwest::Body::wrap_stream(futures::stream::iter([Ok::<_, std::io::Error>(huge.clone())])) } else { huge.clone().into() };
    let response = world.post("/graphql").bearer_auth(&world.token).header("content-type", "application/json").body(body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE, "chunked: {chunked}");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["errors"][0]["extensions"]["code"], "TOO_LARGE");
  }
  assert!(world.ask("{ viewer { account } }", json!({})).await["errors"].is_null());
}

#[tokio::test]
async fn a_large_body_is_refused_by_its_stated_length_before_it_is_sent() {
  let world = World::new().await;
  let mut stream = TcpStream::connect(world.address).await.unwrap();
  let head = format!(
    "POST /graphql HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 5242880\r\n\r\n",
    world.address, world.token
  );
  let began = Instant::now();
  stream.write_all(head.as_bytes()).await.unwrap();
  let mut answer = [0; 12];
  stream.read_exact(&mut answer).await.unwrap();
  assert_eq!(&answer, b"HTTP/1.1 413");
  assert!(began.elapsed() < Duration::from_secs(10));
}

/// Sends raw bytes and reads one answer: its status, whether it says that the connection closes, and how long its body is.
async fn exchanged(stream: &mut TcpStream, request: &str) -> (u16, bool) {
  stream.write_all(request.as_bytes()).await.unwrap();
  let mut read = Vec::new();
  let head = loop {
    if let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
      break end + 4;
    }
    let before = read.len();
    stream.read_buf(&mut read).await.unwrap();
    assert!(read.len() > before, "the connection ends before an answer to {request}");
  };
  let text = String::from_utf8(read[..head].to_vec()).unwrap().to_ascii_lowercase();
  let length: usize = text.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |length| length.parse().unwrap());
  while read.len() < head + length {
    stream.read_buf(&mut read).await.unwrap();
  }
  (text[9..12].parse().unwrap(), text.contains("\r\nconnection: close\r\n"))
}

#[tokio::test]
async fn a_connection_outlives_a_refusal_or_the_answer_says_that_it_closes() {
  let world = World::new().await;
  let cookie = format!("Cookie: pa_session={}\r\n", world.credential(world.owner, pa_store::ops::tokens::Kind::Session, Some(60_000)).await);
  let ask = |path: &str, more: &str, body: &str| {
    format!("POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\n\r\n{body}", world.address, body.len())
  };
  let body = r#"{"query":"{ viewer { account } }"}"#.to_owned() + &" ".repeat(100_000);
  let bearer = format!("Authorization: Bearer {}\r\n", world.token);
  let mut stream = TcpStream::connect(world.address).await.unwrap();
  for _ in 0..3 {
    let foreign = format!("{cookie}Origin: https://evil.example\r\n");
    for (path, more, status) in
      [("/graphql", "", 401), ("/graphql", foreign.as_str(), 403), ("/hooks/lark/unknown", "", 404), ("/", "", 405), ("/graphql", bearer.as_str(), 200)]
    {
      assert_eq!(exchanged(&mut stream, &ask(path, more, &body)).await, (status, false), "{path} {more}");
    }
  }
  // A body that does not come, or is too large to be waited for, or is only sent when it is wanted.
  for (more, stated) in [("", 1_000), ("", 50_000_000), ("Expect: 100-continue\r\n", 10)] {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = format!("POST /graphql HTTP/1.1\r\nHost: {}\r\n{more}Content-Length: {stated}\r\n\r\n", world.address);
    assert_eq!(exchanged(&mut stream, &head).await, (401, true), "{more}{stated}");
  }
  // Of a body that is refused by its length the rest is taken in behind the answer.
  let mut stream = TcpStream::connect(world.address).await.unwrap();
  assert_eq!(exchanged(&mut stream, &ask("/graphql", &bearer, &"x".repeat(3_000_000))).await, (413, true));
}

#[tokio::test]
async fn what_is_no_json_request_is_refused_in_json() {
  let world = World::new().await;
  for (media_type, body, status) in [
    ("text/plain", r#"{"query":"{ viewer { account } }"}"#, StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ("application/x-www-form-urlencoded", "query=x", StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ("application/json", "{", StatusCode::BAD_REQUEST),
    ("application/json", r#"[{"query":"{ viewer { account } }"}]"#, StatusCode::BAD_REQUEST),
  ] {
    let response = world.post("/graphql").bearer_auth(&world.token).header("content-type", media_type).body(body).send().await.unwrap();
    assert_eq!(response.status(), status, "{media_type} {body}");
    assert!(response.json::<Value>().await.unwrap()["errors"][0]["message"].is_string());
  }
  assert_eq!(world.get("/graphql?query={viewer{account}}").bearer_auth(&world.token).send().await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_document_beyond_the_limits_is_refused_without_being_run() {
  let world = World::new().await;
  let aliases = (0..200).map(|n| format!("a{n}: viewer {{ account }}")).collect::<Vec<_>>().join(" ");
  let deep = format!("{}{}", "{ a ".repeat(5_000), "}".repeat(5_000));
  for query in [
    format!("{{ {aliases} }}"),
    deep,
    "{ conversation { messages(last: 1000000) { nodes { id } } } }".to_owned(),
    "{ conversation { messages(last: -1) { nodes { id } } } }".to_owned(),
    "{ conversations { messages(last: 200) { edges { node { id text } } nodes { id text } } } }".to_owned(),
    "subscription { updates { cursor } }".to_owned(),
    "{ nothing }".to_owned(),
  ] {
    let answer = world.ask(&query, json!({})).await;
    assert!(answer["data"].is_null() || answer["data"]["conversation"].is_null(), "{answer}");
    assert!(answer["errors"][0]["message"].is_string(), "{answer}");
  }
}

/// Proves D28.
#[tokio::test]
async fn nul_and_lone_surrogates_are_stored_as_the_replacement_character() {
  let world = World::new().await;
  let raw = br#"{"query":"mutation($i: SendMessageInput!) { sendMessage(input: $i) { message { text } } }","variables":{"i":{"requestKey":"k","text":"A\u0000B\ud800C\ud83d\ude00"}}}"#;
  let response = world.post("/graphql").bearer_auth(&world.token).header("content-type", "application/json").body(raw.to_vec()).send().await.unwrap();
  let answer: Value = response.json().await.unwrap();
  assert_eq!(answer["data"]["sendMessage"]["message"]["text"], "A\u{fffd}B\u{fffd}C😀", "{answer}");
  let literal = r#"mutation { sendMessage(input: { requestKey: "k2", text: "A\u0000B" }) { message { text } } }"#;
  assert_eq!(world.ask(literal, json!({})).await["data"]["sendMessage"]["message"]["text"], "A\u{fffd}B");
}

#[tokio::test]
async fn a_webhook_of_no_connection_says_so() {
  let world = World::new().await;
  let response = world.post("/hooks/lark/unknown").body("{}").send().await.unwrap();
  assert_eq!(response.status(), StatusCode::NOT_FOUND);
  assert_eq!(response.json::<Value>().await.unwrap()["errors"][0]["message"], "no such connection");
}
