//! A client of the product's GraphQL over one keep-alive connection.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::http::Http;
use super::product::Account;

/// Longer than any stall of a product that works.
const PATIENCE: Duration = Duration::from_secs(60);
const SEND: &str = "mutation($input: SendMessageInput!) { sendMessage(input: $input) { decided position message { id } userErrors { code } } }";
const SEE: &str = "query($position: Position) { conversation(atLeast: $position) { messages(last: 5) { nodes { id role status text } } } }";
const RENAME: &str = "mutation($input: UpdateSettingsInput!) { updateSettings(input: $input) { decided userErrors { code } } }";
const AUDIT: &str = "query { auditLog(first: 50) { nodes { ordinal type at } } }";
const PAGE: &str = "query { conversation { messages(last: 50) { nodes { id role author text status createdAt replyToId replyId } } } }";

/// A client of one account.
pub(super) struct Client {
  http: Http,
  headers: String,
}

/// A message that was decided.
pub(super) struct Sent {
  pub(super) id: String,
  position: String,
}

impl Client {
  pub(super) async fn connect(address: &str, account: &Account) -> Result<Self> {
    let headers = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", account.token);
    Ok(Self { http: Http::connect(address).await?, headers })
  }

  /// Sends a message; `None` when its decision was not read back in time.
  pub(super) async fn send(&mut self, key: &str, text: &str) -> Result<Option<Sent>> {
    let answer = self.ask(SEND, &json!({ "input": { "requestKey": key, "text": text } })).await?;
    let payload = &answer["data"]["sendMessage"];
    ensure!(payload["userErrors"].as_array().is_some_and(Vec::is_empty), "a message was refused: {answer}");
    if payload["decided"] != json!(true) {
      return Ok(None);
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Ok(text(&payload["message"]["id"]).zip(text(&payload["position"])).map(|(id, position)| Sent { id, position }))
  }

  /// Sends a message until it is decided, as whoever wants an answer does: the same key again.
  pub(super) async fn say(&mut self, key: &str, text: &str) -> Result<Sent> {
    let begun = Instant::now();
    loop {
      if let Some(sent) = self.send(key, text).await? {
        return Ok(sent);
      }
      ensure!(begun.elapsed() < PATIENCE, "a message was not decided in {PATIENCE:?}");
    }
  }

  /// Reads at a message's position until the message is shown.
  pub(super) async fn see(&mut self, sent: &Sent) -> Result<()> {
    let begun = Instant::now();
    while !self.sees(sent).await? {
      ensure!(begun.elapsed() < PATIENCE, "a query at a message's position did not show it in {PATIENCE:?}");
    }
    Ok(())
  }

  /// Whether a query that waits for the message's position shows the message.
  async fn sees(&mut self, sent: &Sent) -> Result<bool> {
    let answer = self.ask(SEE, &json!({ "position": sent.position })).await?;
    let nodes = answer["data"]["conversation"]["messages"]["nodes"].as_array().with_context(|| format!("a page without messages: {answer}"))?;
    Ok(answer["extensions"]["stale"].is_null() && nodes.iter().any(|node| node["id"] == json!(sent.id)))
  }

  /// Changes a setting that was last changed as `version`, until that is decided.
  pub(super) async fn rename(&mut self, version: i64, name: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
      let answer = self.ask(RENAME, &json!({ "input": { "requestKey": name, "version": version, "name": name } })).await?;
      let payload = &answer["data"]["updateSettings"];
      ensure!(payload["userErrors"].as_array().is_some_and(Vec::is_empty), "a change was refused: {answer}");
      if payload["decided"] == json!(true) {
        return Ok(());
      }
      ensure!(begun.elapsed() < PATIENCE, "a change was not decided in {PATIENCE:?}");
    }
  }

  /// Reads the last messages of the main conversation; how many came.
  pub(super) async fn page(&mut self) -> Result<usize> {
    let answer = self.ask(PAGE, &json!({})).await?;
    answer["data"]["conversation"]["messages"]["nodes"].as_array().map(Vec::len).with_context(|| format!("a page without messages: {answer}"))
  }

  /// Reads the first lines of the account's audit; how many came.
  pub(super) async fn audit(&mut self) -> Result<usize> {
    let answer = self.ask(AUDIT, &json!({})).await?;
    answer["data"]["auditLog"]["nodes"].as_array().map(Vec::len).with_context(|| format!("no audit: {answer}"))
  }

  async fn ask(&mut self, query: &str, variables: &Value) -> Result<Value> {
    let body = serde_json::to_vec(&json!({ "query": query, "variables": variables })).context("write a request")?;
    let answer = self.http.post("/graphql", &self.headers, &body).await?;
    ensure!(answer.status == 200, "GraphQL answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).context("read an answer")
  }
}
