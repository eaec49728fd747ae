//! `pa_history`: older messages of the conversation, page by page.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat};
use pa_domain::call::{Class, ResultPart};
use pa_domain::{AgentId, ConversationId, Origin, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::tool::arguments;
use crate::{Context, Error, Place, Tool};

/// Messages of one page when the model does not say.
const LAST_DEFAULT: u32 = 20;
/// Messages of one page at most: more would fill a small model's window.
const LAST_MAX: u32 = 50;
/// Characters of one message: a page should show many, and what was long was mostly pasted.
const CHARS_MAX: usize = 2_000;

/// A message as the tool shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldMessage {
  /// Its place in the conversation: the cursor.
  pub place: i64,
  pub at: Timestamp,
  pub origin: Origin,
  /// Who wrote it: `owner`, `you`, a person's name.
  pub author: String,
  pub text: String,
  /// Names of files on it.
  pub files: Vec<String>,
}

/// A page, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OldPage {
  pub messages: Vec<OldMessage>,
  /// There are older ones.
  pub has_previous: bool,
}

/// Reads older messages of one agent's conversation.
#[async_trait]
pub trait OlderMessages: Send + Sync + 'static {
  /// The newest `last` messages before a place (`None`: the newest of all).
  ///
  /// # Errors
  /// They can't be read now.
  async fn page(
    &self,
    agent: AgentId,
    conversation: ConversationId,
    last: u32,
    before: Option<i64>,
  ) -> Result<OldPage, Box<dyn std::error::Error + Send + Sync>>;
}

/// The tool.
pub struct HistoryTool {
  messages: Arc<dyn OlderMessages>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
  before: Option<i64>,
  last: Option<u32>,
}

impl HistoryTool {
  /// The tool over a reader of messages.
  pub fn new(messages: Arc<dyn OlderMessages>) -> Self {
    Self { messages }
  }
}

#[async_trait]
impl Tool for HistoryTool {
  fn name(&self) -> &'static str {
    "pa_history"
  }

  fn description(&self) -> &'static str {
    "Reads earlier messages of this conversation, also those that are no longer in front of you. Use it when the owner refers to something that you can't see. \
     Returns one page, oldest first, and the value of `before` that gives the page before it."
  }

  fn parameters(&self) -> Value {
    json!({
      "type": "object",
      "properties": {
        "before": { "type": "integer", "description": "Only messages before this place, as an earlier page named it. Left out: the newest page." },
        "last": { "type": "integer", "minimum": 1, "maximum": LAST_MAX, "description": "How many messages; 20 when left out." },
      },
      "additionalProperties": false,
    })
  }

  fn class(&self) -> Class {
    Class::Repeatable
  }

  fn time_limit(&self) -> Duration {
    Duration::from_secs(10)
  }

  fn places(&self) -> &'static [Place] {
    &[Place::Conversation, Place::Task]
  }

  async fn call(&self, context: &Context, given: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
    let Arguments { before, last } = arguments(given)?;
    let last = last.unwrap_or(LAST_DEFAULT).clamp(1, LAST_MAX);
    let page = self
      .messages
      .page(context.agent, context.conversation, last, before)
      .await
      .map_err(|error| Error::Failed { code: "HISTORY_UNAVAILABLE", reason: error.to_string() })?;
    Ok(shown(&page))
  }
}

/// A page with the product's own words about it first: one part for each message, with that message's origin.
fn shown(page: &OldPage) -> Vec<ResultPart> {
  let part = |origin, text| ResultPart { origin, text, blob: None };
  let head = match page.messages.first() {
    None => "There are no earlier messages.".to_owned(),
    Some(oldest) if page.has_previous => format!("{} messages, oldest first. Earlier ones: before={}", page.messages.len(), oldest.place),
    Some(_) => format!("{} messages, oldest first. This is the beginning of the conversation.", page.messages.len()),
  };
  let messages = page.messages.iter().map(|message| part(message.origin, line(message)));
  std::iter::once(part(Origin::Platform, head)).chain(messages).collect()
}

fn line(message: &OldMessage) -> String {
  let at = DateTime::from_timestamp_millis(message.at.0).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true);
  let mut text: String = message.text.chars().take(CHARS_MAX).collect();
  if text.len() < message.text.len() {
    text.push_str(" … (cut)");
  }
  let line = format!("{at} {}: {text}", message.author);
  message.files.iter().fold(line, |line, name| format!("{line} [file {name:?}]"))
}

#[cfg(test)]
mod tests {
  use std::sync::Arc;

  use pa_domain::{CallId, JobId};
  use uuid::Uuid;

  use super::*;
  use crate::contract;

  struct Pages(Vec<OldMessage>);

  #[async_trait]
  impl OlderMessages for Pages {
    async fn page(&self, _: AgentId, _: ConversationId, last: u32, before: Option<i64>) -> Result<OldPage, Box<dyn std::error::Error + Send + Sync>> {
      let before: Vec<_> = self.0.iter().filter(|message| before.is_none_or(|place| message.place < place)).cloned().collect();
      let from = before.len().saturating_sub(last as usize);
      Ok(OldPage { messages: before[from..].to_vec(), has_previous: from > 0 })
    }
  }

  struct Broken;

  #[async_trait]
  impl OlderMessages for Broken {
    async fn page(&self, _: AgentId, _: ConversationId, _: u32, _: Option<i64>) -> Result<OldPage, Box<dyn std::error::Error + Send + Sync>> {
      Err("the database is away".into())
    }
  }

  fn message(place: i64, origin: Origin, text: &str) -> OldMessage {
    OldMessage { place, at: Timestamp(0), origin, author: "owner".into(), text: text.into(), files: vec![] }
  }

  fn context() -> Context {
    let id = Uuid::from_u128(7);
    Context { agent: AgentId(id), job: JobId(id), conversation: ConversationId(id), execution: 1, call: CallId(id) }
  }

  async fn call(tool: &HistoryTool, arguments: Value) -> Result<Vec<ResultPart>, Error> {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    tool.call(&context(), &arguments).await
  }

  fn three() -> HistoryTool {
    let messages = vec![message(3, Origin::Owner, "one"), message(5, Origin::Agent, "two"), message(9, Origin::ThirdParty, "three")];
    HistoryTool::new(Arc::new(Pages(messages)))
  }

  #[tokio::test]
  async fn a_page_names_the_one_before_it_and_each_message_its_origin() {
    let parts = call(&three(), json!({"last": 2})).await.unwrap();
    assert_eq!(parts.iter().map(|part| part.origin).collect::<Vec<_>>(), [Origin::Platform, Origin::Agent, Origin::ThirdParty]);
    assert_eq!(parts[0].text, "2 messages, oldest first. Earlier ones: before=5");
    assert_eq!(parts[2].text, "1970-01-01T00:00:00Z owner: three");
    let parts = call(&three(), json!({"before": 5})).await.unwrap();
    assert_eq!(parts[0].text, "1 messages, oldest first. This is the beginning of the conversation.");
    let parts = call(&three(), json!({"before": 1})).await.unwrap();
    assert_eq!(parts[0].text, "There are no earlier messages.");
  }

  #[tokio::test]
  async fn arguments_that_it_does_not_know_are_an_error() {
    for arguments in [json!({"after": 3}), json!({"last": "many"}), json!({"last": -1})] {
      assert!(matches!(call(&three(), arguments.clone()).await, Err(Error::Arguments { .. })), "{arguments}");
    }
  }

  #[tokio::test]
  async fn messages_that_cant_be_read_are_a_failure_without_effect() {
    let error = call(&HistoryTool::new(Arc::new(Broken)), json!({})).await.unwrap_err();
    assert_eq!((error.outcome(), error.code()), (pa_domain::call::Outcome::Failed, "HISTORY_UNAVAILABLE"));
  }

  #[tokio::test]
  async fn a_long_message_is_cut_between_characters() {
    let tool = HistoryTool::new(Arc::new(Pages(vec![message(1, Origin::Owner, &"界".repeat(5_000))])));
    let parts = call(&tool, json!({})).await.unwrap();
    assert!(parts[1].text.ends_with("界 … (cut)"));
    assert!(parts[1].text.chars().count() < 2_100);
  }

  #[tokio::test]
  async fn it_keeps_the_contract() {
    contract::check(&three(), &context()).await;
  }
}
