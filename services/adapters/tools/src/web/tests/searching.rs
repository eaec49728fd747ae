//! The search engines' protocols, spoken by servers on loopback.

use pa_domain::Origin;
use secrecy::SecretString;
use serde_json::json;

use super::server::{Answer, Server, page, redirect, status};
use super::{call, context};
use crate::web::{Engine, NotOffered, SearchConfig, SearchTool};
use crate::{Error, Place, Tool as _, contract};

const KEY: &str = "planted-key-42";
const JSON: &str = "Content-Type: application/json";

const BRAVE: &str = r#"{"type":"search","query":{"original":"x"},"web":{"type":"search","results":[
  {"title":"The <strong>Rust</strong> book","url":"https://doc.rust-lang.org/book/","description":"By  the\ncommunity \ud800.","page_age":"2026-01-02T00:00:00","age":"January 2, 2026"},
  {"title":"Script","url":"javascript:alert(1)","description":"no"},
  {"title":"Second","url":"https://example.org/2","description":""}]}}"#;
const SEARXNG: &str = r#"{"query":"x","number_of_results":0,"results":[
  {"url":"https://example.org/1","title":"One","content":"About one","engine":"duckduckgo","publishedDate":null,"score":1.5},
  {"url":"https://example.org/2","title":"Two","content":"About two","publishedDate":"2026-02-03T00:00:00"}],"answers":[],"suggestions":[]}"#;
const TAVILY: &str = r#"{"query":"x","answer":null,"images":[],"results":[
  {"title":"One","url":"https://example.org/1","content":"About one","score":0.98,"raw_content":null},
  {"title":"Two","url":"https://example.org/2","content":"About two","score":0.5,"published_date":"Tue, 03 Feb 2026"}],"response_time":1.2}"#;

fn config(engine: Engine, base_url: String) -> SearchConfig {
  let key = if engine == Engine::Searxng { "" } else { KEY };
  SearchConfig { engine: Some(engine), base_url, api_key: SecretString::from(key) }
}

async fn tool(engine: Engine, answer: Answer) -> (SearchTool, Server) {
  let server = Server::new(move |_| answer.clone()).await;
  (SearchTool::new(&config(engine, server.url("/"))).unwrap(), server)
}

/// Proves CAP-4.
#[tokio::test]
async fn each_engine_is_asked_and_understood_in_its_own_way() {
  for (engine, answer, line, headers, first) in [
    (
      Engine::Brave,
      BRAVE,
      "GET /res/v1/web/search?q=caf%C3%A9+%26+bar&count=2&text_decorations=false HTTP/1.1",
      "x-subscription-token: planted-key-42",
      "1. The Rust book (2026-01-02T00:00:00)\n   https://doc.rust-lang.org/book/\n   By the community \u{fffd}.\n",
    ),
    (
      Engine::Searxng,
      SEARXNG,
      "GET /search?q=caf%C3%A9+%26+bar&format=json HTTP/1.1",
      "accept: application/json",
      "1. One\n   https://example.org/1\n   About one\n",
    ),
    (Engine::Tavily, TAVILY, "POST /search HTTP/1.1", "authorization: bearer planted-key-42", "1. One\n   https://example.org/1\n   About one\n"),
  ] {
    let (tool, server) = tool(engine, page(JSON, answer)).await;
    let parts = call(&tool, json!({"query": " café & bar ", "count": 2})).await.unwrap();
    assert_eq!(parts.iter().map(|part| part.origin).collect::<Vec<_>>(), [Origin::Platform, Origin::ThirdParty]);
    assert_eq!(parts[0].text, format!("2 results of {engine}."));
    assert!(parts[1].text.starts_with(first) && parts[1].text.contains("\n2. ") && !parts[1].text.contains("javascript:"), "{}", parts[1].text);
    let request = server.requests().remove(0);
    assert!(request.starts_with(line) && request.to_ascii_lowercase().contains(headers), "{request}");
    if engine == Engine::Tavily {
      let body: serde_json::Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
      assert_eq!(body, json!({"query": "café & bar", "max_results": 2, "search_depth": "basic"}));
    }
  }
}

#[tokio::test]
async fn nothing_found_is_said() {
  for (engine, answer) in [(Engine::Brave, r#"{"type":"search","query":{}}"#), (Engine::Searxng, r#"{"results":[]}"#), (Engine::Tavily, r#"{"results":[]}"#)] {
    let (tool, _server) = tool(engine, page(JSON, answer)).await;
    let parts = call(&tool, json!({"query": "x"})).await.unwrap();
    assert_eq!(parts[0].text, format!("{engine} found nothing for this query."));
  }
}

/// Proves CAP-39.
#[tokio::test]
async fn a_failure_says_what_can_be_mended_and_never_the_key() {
  for (engine, answer, code, hint) in [
    (Engine::Brave, status("401 Unauthorized", KEY), "SEARCH_REFUSED", "does not take the key"),
    (Engine::Searxng, status("403 Forbidden", ""), "SEARCH_REFUSED", "search.formats"),
    (Engine::Tavily, status("429 Too Many Requests", ""), "SEARCH_REFUSED", "wait a little"),
    (Engine::Tavily, status("432 X", ""), "SEARCH_REFUSED", "used up"),
    (Engine::Brave, status("503 Unavailable", ""), "SEARCH_REFUSED", "trouble of its own"),
    (Engine::Brave, page(JSON, "<html>"), "SEARCH_BROKEN", "can't be understood"),
    (Engine::Brave, page(JSON, r#"{"web":{"results":3}}"#), "SEARCH_BROKEN", "can't be understood"),
    (Engine::Searxng, page(JSON, "{}"), "SEARCH_BROKEN", "can't be understood"),
    (Engine::Tavily, page(JSON, format!("\"{}\"", "x".repeat(6_000_000))), "SEARCH_BROKEN", "too long"),
    (Engine::Tavily, Answer::Bytes(b"nonsense".to_vec()), "SEARCH_UNREACHABLE", "could not be reached"),
    // The key is for the engine alone.
    (Engine::Tavily, redirect("http://127.0.0.1:9/"), "SEARCH_REFUSED", "does not answer searches there"),
  ] {
    let (tool, server) = tool(engine, answer).await;
    let error = call(&tool, json!({"query": "x"})).await.unwrap_err();
    let said = format!("{error} {error:?}");
    assert!(error.code() == code && said.contains(hint) && !said.contains(KEY), "{engine}: {said}");
    assert_eq!(server.requests().len(), 1);
  }
}

/// Proves CAP-4.
#[tokio::test]
async fn without_an_engine_there_is_no_tool_and_a_reason() {
  let with = |engine, base: &str, key: &str| SearchTool::new(&SearchConfig { engine, base_url: base.into(), api_key: SecretString::from(key) }).err();
  assert!(matches!(with(None, "", ""), Some(NotOffered::NoEngine)));
  assert!(matches!(with(Some(Engine::Brave), "", " "), Some(NotOffered::NoKey { engine: Engine::Brave })));
  assert!(matches!(with(Some(Engine::Searxng), "", ""), Some(NotOffered::NoAddress { engine: Engine::Searxng })));
  assert!(matches!(with(Some(Engine::Searxng), "searx.lan", ""), Some(NotOffered::BadAddress)));
  assert!(matches!(with(Some(Engine::Tavily), "", "a\nb"), Some(NotOffered::BadKey)));
  assert!(with(Some(Engine::Brave), "", KEY).is_none() && with(Some(Engine::Tavily), "", KEY).is_none());
  assert_eq!(with(None, "", "").unwrap().code(), "SEARCH_NOT_CONFIGURED");
  assert_eq!(with(Some(Engine::Brave), "", "").unwrap().to_string(), "Brave needs a key, and none is configured");
}

#[tokio::test]
async fn it_keeps_the_contract_and_refuses_queries_that_are_none() {
  let (tool, server) = tool(Engine::Searxng, page(JSON, SEARXNG)).await;
  contract::check(&tool, &context()).await;
  assert_eq!(tool.places(), [Place::Conversation, Place::Task, Place::Heartbeat]);
  for query in ["", " ", &"x".repeat(401)] {
    assert!(matches!(call(&tool, json!({"query": query})).await, Err(Error::Arguments { .. })));
  }
  assert_eq!(server.requests().len(), 0);
}
