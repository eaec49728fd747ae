//! Pages of servers that misbehave, on loopback, which is allowed here.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use pa_domain::Origin;
use serde_json::json;

use super::server::{Answer, Server, page, redirect, status};
use super::{Book, call, context};
use crate::web::{Allow, FetchTool};
use crate::{Error, Place, Tool as _, contract};

const HTML: &str = "Content-Type: text/html; charset=utf-8";
const ENDLESS_HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";

fn tool_within(limit: Duration) -> FetchTool {
  let book = Book::default();
  book.add("site.test", &[&["127.0.0.1"]]);
  FetchTool::with(Arc::new(book), Allow::parse(&["127.0.0.1".into()]).unwrap(), limit).unwrap()
}

fn tool() -> FetchTool {
  tool_within(Duration::from_secs(60))
}

/// Our words and the page's.
async fn said(tool: &FetchTool, url: &str, from: u64) -> (String, String) {
  let parts = call(tool, json!({"url": url, "from": from})).await.unwrap();
  assert_eq!(parts.iter().map(|part| part.origin).collect::<Vec<_>>(), [Origin::Platform, Origin::ThirdParty]);
  (parts[0].text.clone(), parts[1].text.clone())
}

async fn failure(tool: &FetchTool, url: &str) -> (&'static str, String) {
  match call(tool, json!({"url": url})).await {
    Err(error) => (error.code(), error.to_string()),
    Ok(parts) => panic!("{parts:?}"),
  }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
  let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
  encoder.write_all(bytes).unwrap();
  encoder.finish().unwrap()
}

/// Proves CAP-4, CAP-34.
#[tokio::test]
async fn it_keeps_the_contract_and_is_offered_in_conversations_too() {
  contract::check(&tool(), &context()).await;
  assert_eq!(tool().places(), [Place::Conversation, Place::Task, Place::Heartbeat]);
}

/// Proves CAP-4.
#[tokio::test]
async fn a_page_comes_as_text_of_somebody_else_with_its_address() {
  let body = "<title>Prices</title><h1>Fruit</h1><p>Apples: <b>1.20</b> <a href=/more>more</a>";
  let server = Server::new(move |_| page(HTML, body)).await;
  let port = server.address.port();
  let url = format!("http://site.test:{port}/list?x=1");
  let (head, text) = said(&tool(), &url, 1).await;
  let shown = format!("# Fruit\n\nApples: 1.20 more <http://site.test:{port}/more>");
  let length = shown.len();
  assert_eq!(head, format!("From site.test: status 200, text/html, {} bytes. Characters 1 to {length} of {length}.", body.len()));
  assert_eq!(text, format!("Address: {url}\nTitle: Prices\n\n{shown}"));
  let request = server.requests().remove(0).to_ascii_lowercase();
  assert!(request.starts_with("get /list?x=1 http/1.1") && request.contains("user-agent: personal-agent/") && !request.contains("cookie"), "{request}");
}

#[tokio::test]
async fn an_endless_body_is_cut() {
  let server = Server::new(|_| Answer::Endless { head: ENDLESS_HEAD.into(), piece: vec![b'a'; 100_000] }).await;
  let (head, text) = said(&tool(), &server.url("/"), 1).await;
  assert!(head.contains("5242880 bytes") && head.contains("its end is missing") && head.contains("More: from=32769."), "{head}");
  assert!(text.len() < 33_000);
  server.closed().await;
}

#[tokio::test]
async fn a_bomb_is_unpacked_no_further_than_a_page_may_be() {
  let bomb = packed(&vec![b'0'; 200_000_000]);
  assert!(bomb.len() < 300_000);
  let server = Server::new(move |_| page("Content-Type: text/plain\r\nContent-Encoding: gzip", &bomb)).await;
  let (head, _) = said(&tool(), &server.url("/"), 1).await;
  assert!(head.contains("5242880 bytes") && head.contains("its end is missing"), "{head}");
}

#[tokio::test]
async fn packed_pages_are_read_and_damaged_ones_are_said() {
  let whole = packed("na\u{ef}ve".as_bytes());
  let server = Server::new(move |request| match request.split(' ').nth(1) {
    Some("/whole") => page("Content-Type: text/plain\r\nContent-Encoding: GZIP", &whole),
    Some("/half") => page("Content-Type: text/plain\r\nContent-Encoding: gzip", &whole[..whole.len() / 2]),
    Some("/twice") => page("Content-Type: text/plain\r\nContent-Encoding: gzip, gzip", packed(&whole)),
    _ => page("Content-Type: text/plain\r\nContent-Encoding: br", "x"),
  })
  .await;
  assert!(said(&tool(), &server.url("/whole"), 1).await.1.ends_with("naïve"));
  for path in ["/half", "/twice", "/br"] {
    assert_eq!(failure(&tool(), &server.url(path)).await.0, "WEB_BROKEN", "{path}");
  }
}

#[tokio::test]
async fn a_server_that_takes_its_time_is_given_up() {
  let server = Server::new(|request| match request.split(' ').nth(1) {
    Some("/drip") => Answer::Drip { head: ENDLESS_HEAD.into() },
    Some("/drip-head") => Answer::Drip { head: "HTTP/1.1 200 OK\r\nX-A: ".into() },
    _ => Answer::Silence,
  })
  .await;
  for path in ["/drip", "/drip-head", "/silence"] {
    let (code, reason) = failure(&tool_within(Duration::from_secs(1)), &server.url(path)).await;
    assert_eq!((code, reason.contains("within 1 seconds")), ("WEB_TIMED_OUT", true), "{path}: {reason}");
    server.closed().await;
  }
}

/// Seen from the other end: the open request is gone.
#[tokio::test]
async fn a_call_that_is_dropped_ends_its_request() {
  let server = Server::new(|_| Answer::Drip { head: ENDLESS_HEAD.into() }).await;
  let tool = tool();
  let url = server.url("/");
  tokio::select! {
    result = call(&tool, json!({"url": url})) => panic!("{result:?}"),
    () = async { while server.requests().is_empty() { tokio::task::yield_now().await; } } => {}
  }
  server.closed().await;
}

#[tokio::test]
async fn redirects_have_an_end() {
  let server = Server::new(|request| {
    let number: u32 = request.split(' ').nth(1).and_then(|path| path.strip_prefix("/")?.parse().ok()).unwrap_or(0);
    if number == 4 { page("Content-Type: text/plain", "there") } else { redirect(&format!("/{}", number + 1)) }
  })
  .await;
  assert!(said(&tool(), &server.url("/0"), 1).await.1.contains("/4\n\nthere"));
  assert_eq!(failure(&tool(), &server.url("/5")).await.0, "WEB_REDIRECTS");
  assert_eq!(server.requests().len(), 5 + 6);
}

#[tokio::test]
async fn what_is_no_answer_or_no_text_is_said() {
  let server = Server::new(|request| match request.split(' ').nth(1) {
    Some("/pdf") => page("Content-Type: application/pdf", "%PDF-1.7"),
    Some("/nul") => page("Content-Type: text/plain", vec![0; 100]),
    Some("/noise") => Answer::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
    Some("/flood") => Answer::Bytes(format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: b\r\n".repeat(200_000)).into_bytes()),
    Some("/short") => Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc".to_vec()),
    Some("/nowhere") => redirect("http://"),
    _ => status("404 Not Found", "no such page"),
  })
  .await;
  for (path, code) in [
    ("/pdf", "WEB_NOT_TEXT"),
    ("/nul", "WEB_NOT_TEXT"),
    ("/noise", "WEB_UNREACHABLE"),
    ("/flood", "WEB_UNREACHABLE"),
    ("/short", "WEB_BROKEN"),
    ("/nowhere", "WEB_ADDRESS_INVALID"),
  ] {
    let (found, reason) = failure(&tool(), &server.url(path)).await;
    assert_eq!(found, code, "{path}: {reason}");
  }
  let (head, text) = said(&tool(), &server.url("/missing"), 1).await;
  assert!(head.contains("status 404") && head.contains("error of the site") && text.ends_with("no such page"), "{head} {text}");
  assert_eq!(failure(&tool(), "http://missing.test/").await.0, "WEB_UNREACHABLE");
}

#[tokio::test]
async fn a_long_page_is_read_piece_by_piece() {
  let body = (0..20_000).fold(String::new(), |text, number| text + &number.to_string() + " 界 ");
  let text = body.clone();
  let server = Server::new(move |_| page("Content-Type: text/plain; charset=UTF-8", &body)).await;
  let (mut from, mut seen) = (1, String::new());
  loop {
    let (head, piece) = said(&tool(), &server.url("/"), from).await;
    seen.push_str(piece.split_once("\n\n").unwrap().1);
    let Some((_, more)) = head.split_once("More: from=") else { break };
    from = more.trim_end_matches('.').parse().unwrap();
  }
  assert_eq!(seen, text);
  let (head, _) = said(&tool(), &server.url("/"), 10_000_000).await;
  assert!(head.contains("It has only"), "{head}");
}

#[tokio::test]
async fn an_address_that_is_none_is_told_before_anything_is_sent() {
  for (url, hint) in [
    ("", "no address"),
    ("example.org", "no address"),
    ("ftp://example.org/", "neither http://"),
    ("file:///etc/passwd", "neither http://"),
    ("data:text/html,x", "neither http://"),
    ("http://name:word@example.org/", "a password"),
    (&format!("http://example.org/{}", "x".repeat(3_000)), "too long"),
  ] {
    match call(&tool(), json!({"url": url})).await {
      Err(Error::Arguments { reason }) => assert!(reason.contains(hint), "{url}: {reason}"),
      other => panic!("{url}: {other:?}"),
    }
  }
}
