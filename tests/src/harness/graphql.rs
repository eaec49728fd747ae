//! A client of an account, over HTTP.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{PATIENCE, eventually};

const MESSAGE: &str = "id conversationId place changed role text status replyToId replyId incomplete createdAt notice { code params { name value } } \
  attachments { id name mediaType size sha256 url }";

/// How far each account was told at each address that it is: what is read later must be at least that new.
static TOLD: LazyLock<Mutex<BTreeMap<(String, String), i64>>> = LazyLock::new(Mutex::default);

/// An account's way in.
#[derive(Clone)]
pub(crate) struct Client {
  pub(crate) http: reqwest::Client,
  pub(crate) url: String,
  pub(crate) token: String,
}

/// An entry of a conversation.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
  pub(crate) id: String,
  pub(crate) conversation_id: String,
  pub(crate) place: i64,
  pub(crate) changed: i64,
  pub(crate) role: String,
  pub(crate) text: String,
  pub(crate) status: String,
  pub(crate) reply_to_id: Option<String>,
  pub(crate) reply_id: Option<String>,
  pub(crate) incomplete: bool,
  pub(crate) created_at: String,
  pub(crate) notice: Option<Value>,
  pub(crate) attachments: Vec<Value>,
}

/// What a mutation about a message answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sent {
  pub(crate) message: Option<Message>,
  pub(crate) position: Option<String>,
  pub(crate) decided: bool,
  pub(crate) user_errors: Vec<Value>,
}

impl Sent {
  /// The id of the admitted message.
  pub(crate) fn id(&self) -> String {
    assert_eq!(self.user_errors, Vec::<Value>::new());
    self.message.as_ref().expect("the message was decided").id.clone()
  }

  /// The code of the refusal.
  pub(crate) fn code(&self) -> &str {
    self.user_errors.first().and_then(|error| error["code"].as_str()).unwrap_or("none")
  }
}

impl Client {
  pub(crate) fn new(url: &str, token: &str) -> Self {
    // A pool would keep connections to a product that was killed.
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE).connect_timeout(Duration::from_secs(10)).build();
    Self { http: http.expect("a client without TLS can be made"), url: url.to_owned(), token: token.to_owned() }
  }

  pub(crate) async fn get(&self, path: &str) -> Result<reqwest::Response, reqwest::Error> {
    self.http.get(format!("{}{path}", self.url)).bearer_auth(&self.token).send().await
  }

  /// Posts a GraphQL request: the status and the whole answer.
  pub(crate) async fn post(&self, query: &str, variables: Value) -> Result<(u16, Value), reqwest::Error> {
    self.post_bytes(json!({ "query": query, "variables": variables }).to_string().into_bytes()).await
  }

  /// Posts a GraphQL request as these bytes.
  pub(crate) async fn post_bytes(&self, body: Vec<u8>) -> Result<(u16, Value), reqwest::Error> {
    let request = self.http.post(format!("{}/graphql", self.url)).bearer_auth(&self.token).header("content-type", "application/json").body(body);
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    Ok((status, answer.json().await?))
  }

  /// The data of an answer without errors.
  pub(crate) async fn ask(&self, query: &str, variables: Value) -> Value {
    let (status, answer) = self.post(query, variables).await.expect("the product answers");
    assert_eq!(status, 200, "{answer}");
    assert!(answer["errors"].is_null(), "{answer}");
    answer["data"].clone()
  }

  /// A mutation of one message; why not, when nobody said that it was accepted.
  pub(crate) async fn mutate(&self, name: &str, kind: &str, input: Value) -> Result<Sent, String> {
    let query = format!(
      "mutation($input: {kind}!) {{ answer: {name}(input: $input) {{ message {{ {MESSAGE} }} position decided userErrors {{ code message field }} }} }}"
    );
    let (status, answer) = self.post(&query, json!({ "input": input })).await.map_err(|error| format!("no answer: {error:?}"))?;
    if status != 200 || !answer["errors"].is_null() {
      return Err(format!("{status} {answer}"));
    }
    let sent: Sent = serde_json::from_value(answer["data"]["answer"].clone()).expect("the payload of a message");
    if let Some(position) = &sent.position {
      self.told(position);
    }
    Ok(sent)
  }

  fn told(&self, position: &str) {
    let ordinal: i64 = position.split('@').next().and_then(|ordinal| ordinal.parse().ok()).expect("a position begins with an ordinal");
    let mut told = TOLD.lock().expect("nobody panics while holding this lock");
    let known = told.entry((self.url.clone(), self.token.clone())).or_insert(0);
    *known = ordinal.max(*known);
  }

  /// The newest position that this account was told here.
  fn newest(&self) -> Option<String> {
    let told = TOLD.lock().expect("nobody panics while holding this lock");
    told.get(&(self.url.clone(), self.token.clone())).map(i64::to_string)
  }

  /// Sends a message under a key; `None` when nobody said that it was accepted.
  pub(crate) async fn try_send(&self, key: &str, text: &str) -> Option<Sent> {
    self.give(key, text).await.ok()
  }

  async fn give(&self, key: &str, text: &str) -> Result<Sent, String> {
    self.mutate("sendMessage", "SendMessageInput", json!({ "requestKey": key, "text": text })).await
  }

  /// Sends a message under a key of its own.
  pub(crate) async fn send(&self, text: &str) -> Sent {
    self.send_as(&super::fresh_key("m"), text).await
  }

  /// Sends a message as the product asks its clients to: under one key, until it says what became of it.
  pub(crate) async fn send_surely(&self, text: &str) -> Sent {
    let (key, deadline) = (super::fresh_key("m"), tokio::time::Instant::now() + PATIENCE);
    // By hand, so that a task of its own may do it.
    loop {
      if let Some(sent) = self.try_send(&key, text).await.filter(|sent| sent.decided) {
        return sent;
      }
      assert!(tokio::time::Instant::now() < deadline, "not in {PATIENCE:?}: {text:?} is decided");
      tokio::time::sleep(super::LOOK_EVERY).await;
    }
  }

  pub(crate) async fn send_as(&self, key: &str, text: &str) -> Sent {
    self.give(key, text).await.expect("the message is taken")
  }

  pub(crate) async fn send_with(&self, text: &str, files: &[&str]) -> Sent {
    let input = json!({ "requestKey": super::fresh_key("m"), "text": text, "attachmentIds": files });
    self.mutate("sendMessage", "SendMessageInput", input).await.expect("the message is taken")
  }

  pub(crate) async fn stop(&self, message: &str) -> Sent {
    self.verb("stopReply", message).await
  }

  pub(crate) async fn retry(&self, message: &str) -> Sent {
    self.verb("retryMessage", message).await
  }

  async fn verb(&self, name: &str, message: &str) -> Sent {
    let input = json!({ "requestKey": super::fresh_key(name), "messageId": message });
    self.mutate(name, "MessageVerbInput", input).await.expect("the request is taken")
  }

  /// Uploads a file; the answer's status and body.
  pub(crate) async fn upload(&self, name: &str, media_type: &str, bytes: Vec<u8>) -> (u16, Value) {
    let mut url = reqwest::Url::parse(&format!("{}/files", self.url)).expect("an address");
    url.query_pairs_mut().append_pair("name", name);
    let answer = self.http.post(url).bearer_auth(&self.token).header("content-type", media_type).body(bytes).send().await.expect("it answers");
    let status = answer.status().as_u16();
    (status, answer.json().await.expect("it answers JSON"))
  }

  /// One page of a conversation: its entries and whether there are older ones, with the cursor to ask for them.
  pub(crate) async fn page(&self, last: u32, before: Option<&str>, at_least: Option<&str>) -> (Vec<Message>, Option<String>) {
    let query = format!(
      "query($last: Int, $before: String, $atLeast: Position) {{ conversation(atLeast: $atLeast) {{ id messages(last: $last, before: $before) \
       {{ pageInfo {{ hasPreviousPage startCursor }} nodes {{ {MESSAGE} }} }} }} }}"
    );
    let at_least = at_least.map(str::to_owned).or_else(|| self.newest());
    let data = self.ask(&query, json!({ "last": last, "before": before, "atLeast": at_least })).await;
    let page = &data["conversation"]["messages"];
    let nodes = serde_json::from_value(page["nodes"].clone()).expect("entries");
    let more = page["pageInfo"]["hasPreviousPage"] == true;
    (nodes, page["pageInfo"]["startCursor"].as_str().filter(|_| more).map(str::to_owned))
  }

  /// The whole main conversation, oldest first.
  pub(crate) async fn messages(&self) -> Vec<Message> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
      let (mut page, older) = self.page(200, before.as_deref(), None).await;
      page.append(&mut all);
      all = page;
      if older.is_none() {
        return all;
      }
      before = older;
    }
  }

  /// Waits until every message has an outcome; the whole conversation.
  pub(crate) async fn settled(&self) -> Vec<Message> {
    eventually("every message has its outcome", async || {
      let messages = self.messages().await;
      let open = messages.iter().any(|message| matches!(message.status.as_str(), "PENDING" | "WRITING"));
      (!open && !messages.is_empty()).then_some(messages)
    })
    .await
  }

  /// Waits until this message has that status.
  pub(crate) async fn has_status(&self, id: &str, status: &str) -> Message {
    eventually(&format!("message {id} is {status}"), async || {
      let (page, _) = self.page(200, None, None).await;
      page.into_iter().find(|message| message.id == id && message.status == status)
    })
    .await
  }

  /// The reply to a message, once it is posted.
  pub(crate) async fn reply_to(&self, id: &str) -> Message {
    eventually(&format!("message {id} is answered"), async || {
      let (page, _) = self.page(200, None, None).await;
      page.into_iter().find(|message| message.role == "AGENT" && message.status == "POSTED" && message.reply_to_id.as_deref() == Some(id))
    })
    .await
  }
}
