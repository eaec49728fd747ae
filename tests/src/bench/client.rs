//! A client of the product's GraphQL over one keep-alive connection.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::http::Http;
use super::product::Account;

const SEND: &str = "mutation($input: SendMessageInput!) { sendMessage(input: $input) { decided position message { id } userErrors { code } } }";
const SEE: &str = "query($position: Position) { conversation(atLeast: $position) { messages(last: 5) { nodes { id role status text } } } }";

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

  /// Whether a query that waits for the message's position shows the message.
  pub(super) async fn sees(&mut self, sent: &Sent) -> Result<bool> {
    let answer = self.ask(SEE, &json!({ "position": sent.position })).await?;
    let nodes = answer["data"]["conversation"]["messages"]["nodes"].as_array().with_context(|| format!("a page without messages: {answer}"))?;
    Ok(answer["extensions"]["stale"].is_null() && nodes.iter().any(|node| node["id"] == json!(sent.id)))
  }

  async fn ask(&mut self, query: &str, variables: &Value) -> Result<Value> {
    let body = serde_json::to_vec(&json!({ "query": query, "variables": variables })).context("write a request")?;
    let answer = self.http.post("/graphql", &self.headers, &body).await?;
    ensure!(answer.status == 200, "GraphQL answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).context("read an answer")
  }
}
