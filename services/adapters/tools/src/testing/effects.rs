//! Tools whose effects happen on a server of the test: one carries the fields of an email, one those of a batch of input to a computer.

use std::time::Duration;

use async_trait::async_trait;
use pa_domain::Origin;
use pa_domain::call::{Class, Gate, GateKind, ResultPart};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::tool::arguments;
use crate::{Context, Error, Place, Tool};

/// Which effect it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
  Email,
  Computer,
}

/// `pa_test_email` or `pa_test_computer`.
pub struct EffectTool {
  effect: Effect,
  url: String,
  http: reqwest::Client,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Email {
  to: Vec<String>,
  subject: String,
  body: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Batch {
  device: String,
  application: String,
  window: String,
  snapshot_id: String,
  steps: Vec<Value>,
}

impl EffectTool {
  /// Sends an email to the server at this address.
  pub fn email(url: &str) -> Self {
    Self::new(Effect::Email, url)
  }

  /// Sends input to a computer behind the server at this address.
  pub fn computer(url: &str) -> Self {
    Self::new(Effect::Computer, url)
  }

  fn new(effect: Effect, url: &str) -> Self {
    let http = reqwest::Client::builder().pool_max_idle_per_host(0).build().expect("a client without TLS of its own can be made");
    Self { effect, url: url.to_owned(), http }
  }
}

#[async_trait]
impl Tool for EffectTool {
  fn name(&self) -> &'static str {
    match self.effect {
      Effect::Email => "pa_test_email",
      Effect::Computer => "pa_test_computer",
    }
  }

  fn description(&self) -> &'static str {
    match self.effect {
      Effect::Email => "Sends an email.",
      Effect::Computer => "Sends input to a computer.",
    }
  }

  fn parameters(&self) -> Value {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let properties = match self.effect {
      Effect::Email => json!({
        "to": { "type": "array", "items": { "type": "string" }, "description": "Recipients." },
        "subject": text("The subject."),
        "body": text("The text."),
      }),
      Effect::Computer => json!({
        "device": text("The computer."),
        "application": text("The application."),
        "window": text("The window's title."),
        "snapshot_id": text("The picture that it is based on."),
        "steps": { "type": "array", "items": { "type": "object" }, "description": "The input, step by step." },
      }),
    };
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
  }

  fn class(&self) -> Class {
    Class::External
  }

  fn time_limit(&self) -> Duration {
    Duration::from_secs(5)
  }

  fn places(&self) -> &'static [Place] {
    &[Place::Task]
  }

  async fn gate(&self, _: &Context, given: &Map<String, Value>) -> Result<Option<Gate>, Error> {
    Ok(Some(match self.effect {
      Effect::Email => {
        let Email { to, subject, .. } = arguments(given)?;
        Gate { kind: GateKind::Email, target: format!("{}\n{subject}", to.join(", ")), scope: None, valid_until_ms: None }
      }
      Effect::Computer => {
        let Batch { device, application, window, .. } = arguments(given)?;
        let target = format!("{device} / {application} / {window}");
        Gate { kind: GateKind::Computer, target, scope: Some(format!("{application} on {device}")), valid_until_ms: None }
      }
    }))
  }

  async fn call(&self, context: &Context, given: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
    let action = match self.effect {
      Effect::Email => json!(arguments::<Email>(given)?),
      Effect::Computer => json!(arguments::<Batch>(given)?),
    };
    let sent = self.http.post(format!("{}/effect", self.url)).json(&json!({ "call": context.call, "tool": self.name(), "action": action })).send().await;
    match sent {
      Ok(answer) if answer.status().is_success() => Ok(vec![ResultPart { origin: Origin::Tool, text: "accepted".to_owned(), blob: None }]),
      Ok(answer) if answer.status().is_client_error() => Err(Error::Failed { code: "REFUSED", reason: "the other side refused it".to_owned() }),
      Err(error) if error.is_connect() => Err(Error::Failed { code: "UNREACHABLE", reason: "the other side could not be reached".to_owned() }),
      // It was sent; what became of it nobody can tell.
      Ok(_) | Err(_) => Err(Error::Unknown { reason: "no answer came".to_owned() }),
    }
  }
}

#[cfg(test)]
mod tests {
  use pa_domain::{AgentId, CallId, ConversationId, JobId};
  use uuid::Uuid;

  use super::*;
  use crate::contract;

  #[tokio::test]
  async fn the_tools_of_effects_keep_the_contract_and_say_what_their_card_is_about() {
    let id = Uuid::from_u128(1);
    let context = Context { agent: AgentId(id), job: JobId(id), conversation: ConversationId(id), execution: 1, call: CallId(id) };
    for tool in [EffectTool::email("http://127.0.0.1:1"), EffectTool::computer("http://127.0.0.1:1")] {
      contract::check(&tool, &context).await;
    }
    let Value::Object(email) = json!({ "to": ["a@example.org", "b@example.org"], "subject": "Hello", "body": "Hi" }) else { panic!("an object") };
    let tool = EffectTool::email("http://127.0.0.1:1");
    let gate = tool.gate(&context, &email).await.unwrap().unwrap();
    assert_eq!((gate.target.as_str(), gate.scope), ("a@example.org, b@example.org\nHello", None));
    assert!(matches!(tool.call(&context, &email).await, Err(Error::Failed { code: "UNREACHABLE", .. })));
  }
}
