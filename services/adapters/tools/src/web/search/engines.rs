//! The engines: how each is asked, and what it answers. Only what all of them give is used.

use std::fmt;
use std::str::FromStr;

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde_json::{Value, json};

use super::{Found, SAID_CHARS_MAX, TITLE_CHARS_MAX};

/// A search engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
  /// The Brave Search API.
  Brave,
  /// A `SearXNG` of one's own, with `json` among its formats.
  Searxng,
  /// The Tavily API.
  Tavily,
}

impl fmt::Display for Engine {
  fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    formatter.write_str(match self {
      Self::Brave => "Brave",
      Self::Searxng => "SearXNG",
      Self::Tavily => "Tavily",
    })
  }
}

/// A name that is no engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engines are brave, searxng or tavily")]
pub struct UnknownEngine;

impl FromStr for Engine {
  type Err = UnknownEngine;

  fn from_str(name: &str) -> Result<Self, UnknownEngine> {
    match name.to_ascii_lowercase().as_str() {
      "brave" => Ok(Self::Brave),
      "searxng" => Ok(Self::Searxng),
      "tavily" => Ok(Self::Tavily),
      _ => Err(UnknownEngine),
    }
  }
}

impl Engine {
  pub(super) fn needs_key(self) -> bool {
    match self {
      Self::Brave | Self::Tavily => true,
      Self::Searxng => false,
    }
  }

  pub(super) fn usual_address(self) -> Option<&'static str> {
    match self {
      Self::Brave => Some("https://api.search.brave.com"),
      Self::Tavily => Some("https://api.tavily.com"),
      Self::Searxng => None,
    }
  }

  /// The request for a query. The key is known to fit a header.
  pub(super) fn request(self, client: &Client, base: &Url, key: &str, query: &str, count: u8) -> RequestBuilder {
    let base = base.as_str().trim_end_matches('/');
    match self {
      Self::Brave => {
        let address = with_query(&format!("{base}/res/v1/web/search"), &[("q", query), ("count", &count.to_string()), ("text_decorations", "false")]);
        client.get(address).header("X-Subscription-Token", secret(key)).header(ACCEPT, "application/json")
      }
      Self::Searxng => {
        let request = client.get(with_query(&format!("{base}/search"), &[("q", query), ("format", "json")])).header(ACCEPT, "application/json");
        // For one that stands behind a door of its owner's.
        if key.is_empty() { request } else { request.bearer_auth(key) }
      }
      Self::Tavily => client.post(format!("{base}/search")).bearer_auth(key).json(&json!({ "query": query, "max_results": count, "search_depth": "basic" })),
    }
  }

  /// What is found in an answer; `None` when it is not one of this engine.
  pub(super) fn found(self, answer: &Value) -> Option<impl Iterator<Item = Found>> {
    let (results, said, dates): (&Value, &str, &[&str]) = match self {
      // Without a result there is no `web` at all.
      Self::Brave if answer.get("type").is_some_and(|kind| kind == "search") && answer.get("web").is_none() => (&Value::Null, "", &[]),
      Self::Brave => (answer.pointer("/web/results")?, "description", &["page_age", "age"]),
      Self::Searxng => (answer.get("results")?, "content", &["publishedDate"]),
      Self::Tavily => (answer.get("results")?, "content", &["published_date"]),
    };
    let results = match results {
      Value::Null => &[],
      results => results.as_array()?.as_slice(),
    };
    Some(results.iter().filter_map(move |result| {
      let text = |name: &str, chars_max| line(result.get(name).and_then(Value::as_str).unwrap_or_default(), chars_max);
      let url = Url::parse(result.get("url")?.as_str()?).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
      let date = dates.iter().map(|name| text(name, 40)).find(|date| !date.is_empty()).unwrap_or_default();
      Some(Found { title: text("title", TITLE_CHARS_MAX), url: url.into(), said: text(said, SAID_CHARS_MAX), date })
    }))
  }

  /// What a status of this engine means, for whoever can mend it.
  pub(super) fn meaning(self, status: StatusCode) -> &'static str {
    match (self, status.as_u16()) {
      (Self::Searxng, 403) => "its settings must have json among search.formats",
      (_, 401 | 403) => "it does not take the key",
      (_, 422 | 400) => "it does not take this query",
      (_, 402 | 432 | 433) => "its plan is used up",
      (_, 429) => "too many searches; wait a little",
      (_, 500..) => "it has trouble of its own",
      _ => "it does not answer searches there",
    }
  }
}

fn secret(key: &str) -> HeaderValue {
  let mut value = HeaderValue::from_str(key).expect("the key was tried when the tool was made");
  value.set_sensitive(true);
  value
}

fn with_query(address: &str, pairs: &[(&str, &str)]) -> Url {
  let mut url = Url::parse(address).expect("a path behind an address that was parsed");
  url.query_pairs_mut().extend_pairs(pairs);
  url
}

/// Text on one line, bounded, without the marks that engines put around words.
fn line(text: &str, chars_max: usize) -> String {
  let bare = ["<strong>", "</strong>", "<b>", "</b>"].iter().fold(text.to_owned(), |text, mark| text.replace(mark, ""));
  let spaced = bare.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
  let mut cut: String = spaced.chars().take(chars_max).collect();
  if cut.len() < spaced.len() {
    cut.push('…');
  }
  cut
}
