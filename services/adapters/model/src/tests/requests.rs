//! What goes over the wire.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{KEY, Rig, said};
use crate::{ChatCompletions, Config, Effort, Message, Model as _, OutputLimitField, Part, Request, Tool, ToolCall};

async fn sent(rig: &Rig, request: Request) -> Value {
  rig.ask(request).await.answer();
  rig.script.requests().pop().expect("a request").body
}

#[tokio::test]
async fn a_plain_request_asks_for_a_stream_with_usage() {
  let rig = Rig::new().await;
  let body = sent(&rig, said("hi")).await;
  let expected = json!({
      "model": "rehearsal",
      "messages": [{"role": "user", "content": "hi"}],
      "stream": true,
      "stream_options": {"include_usage": true},
  });
  assert_eq!(body, expected);
}

#[tokio::test]
async fn a_whole_conversation_with_tools_is_written_as_the_protocol_wants_it() {
  let rig = Rig::new().await;
  let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}});
  let tool = Tool { name: "pa_history".into(), description: "Looks back.".into(), parameters: Arc::new(parameters.clone()) };
  let picture = Part::Picture { media_type: "image/png".into(), bytes: Bytes::from_static(b"\x89PNG") };
  let request = Request {
    model: Some("other".into()),
    messages: vec![
      Message::System("Rules.".into()),
      Message::User(vec![Part::Text("look".into()), picture]),
      Message::Assistant { text: String::new(), calls: vec![ToolCall { id: "a".into(), name: "pa_history".into(), arguments: r#"{"q":"x"}"#.into() }] },
      Message::Tool { call_id: "a".into(), text: "nothing".into() },
      Message::Assistant { text: "Nothing.".into(), calls: vec![] },
      Message::User(vec![Part::Text("one".into()), Part::Text("two".into())]),
    ],
    tools: Arc::new([tool]),
    max_output_tokens: Some(99),
    ..Request::default()
  };
  let body = sent(&rig, request).await;
  let messages = json!([
      {"role": "system", "content": "Rules."},
      {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}]},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "pa_history", "arguments": "{\"q\":\"x\"}"}}]},
      {"role": "tool", "tool_call_id": "a", "content": "nothing"},
      {"role": "assistant", "content": "Nothing."},
      {"role": "user", "content": "one\n\ntwo"},
  ]);
  assert_eq!(body["messages"], messages);
  assert_eq!(body["tools"], json!([{"type": "function", "function": {"name": "pa_history", "description": "Looks back.", "parameters": parameters}}]));
  assert_eq!((body["model"].as_str(), body["max_tokens"].as_i64()), (Some("other"), Some(99)));
}

#[tokio::test]
async fn a_model_that_can_not_see_is_told_of_the_picture() {
  let rig = Rig::configured(|config| config.sees_pictures = false).await;
  let picture = Part::Picture { media_type: "image/png".into(), bytes: Bytes::from_static(b"\x89PNG") };
  let body = sent(&rig, Request { messages: vec![Message::User(vec![picture])], ..Request::default() }).await;
  assert_eq!(body["messages"][0]["content"], "[picture, image/png, 4 bytes: this model can't see pictures]");
}

/// Proves SID-19, SID-20 (the model port part): fast adds no thinking, and efforts follow the model's configuration.
#[tokio::test]
async fn an_effort_is_what_the_model_offers() {
  let plain = Rig::new().await;
  let body = sent(&plain, Request { effort: Effort::High, ..said("hi") }).await;
  assert_eq!(body.get("reasoning_effort"), None);
  let rig = Rig::configured(|config| {
    config.efforts = vec![Effort::High, Effort::Low];
    config.effort_fields.insert(Effort::Fast, serde_json::from_value(json!({"enable_thinking": false})).expect("a map"));
  })
  .await;
  assert_eq!(rig.model.config().efforts(), [Effort::Fast, Effort::Low, Effort::High]);
  let cases = [(Effort::Low, "low"), (Effort::Medium, "low"), (Effort::High, "high")];
  for (wished, expected) in cases {
    let body = sent(&rig, Request { effort: wished, ..said("hi") }).await;
    assert_eq!((body["reasoning_effort"].as_str(), body.get("enable_thinking")), (Some(expected), None));
  }
  let body = sent(&rig, said("hi")).await;
  assert_eq!((body.get("reasoning_effort"), &body["enable_thinking"]), (None, &json!(false)));
  assert_eq!(Request::default().effort, Effort::Fast);
}

#[tokio::test]
async fn the_configuration_adds_its_own_fields() {
  let rig = Rig::configured(|config| {
    config.extra_fields.insert("seed".into(), json!(7));
    config.max_output_tokens = Some(50);
    config.output_limit_field = OutputLimitField::MaxCompletionTokens;
  })
  .await;
  let body = sent(&rig, said("hi")).await;
  assert_eq!((&body["seed"], &body["max_completion_tokens"], body.get("max_tokens")), (&json!(7), &json!(50), None));
}

#[tokio::test]
async fn a_key_is_sent_when_there_is_one() {
  let with = Rig::new().await;
  sent(&with, said("hi")).await;
  assert_eq!(with.script.requests()[0].authorization, Some(format!("Bearer {KEY}")));
  for none in [None, Some("".into())] {
    let without = Rig::configured(|config| config.api_key = none).await;
    sent(&without, said("hi")).await;
    assert_eq!(without.script.requests()[0].authorization, None);
  }
}

#[test]
fn a_configuration_that_can_not_work_is_refused_before_any_request() {
  let cases = [("http://host/v1", "", "no name"), ("host/v1", "x", "no URL"), ("ftp://host/v1", "x", "not http"), ("unix:/tmp/x", "x", "not http")];
  for (base, name, reason) in cases {
    let error = ChatCompletions::new(Config::new(base, name)).err().expect("refused");
    assert!(error.to_string().contains(reason), "{base}: {error}");
  }
  let key = Config { api_key: Some("a\nb".into()), ..Config::new("http://host/v1", "x") };
  let error = ChatCompletions::new(key).err().expect("refused");
  assert_eq!(error.code(), "configuration");
}

#[test]
fn a_configuration_is_read_with_defaults() {
  let config: Config = serde_json::from_value(json!({
      "base_url": "https://host/api/", "name": "x", "api_key": "k", "efforts": ["low", "high"],
      "effort_fields": {"fast": {"reasoning_effort": "none"}},
      "prices": {"currency": "USD", "input_micros": 1, "output_micros": 2}, "timeouts": {"idle_ms": 5},
  }))
  .expect("a configuration");
  assert_eq!(config.endpoint().expect("an address").as_str(), "https://host/api/chat/completions");
  assert_eq!((config.context_tokens, config.timeouts.idle_ms, config.timeouts.connect_ms), (32_768, 5, 10_000));
  assert!(serde_json::from_value::<Config>(json!({"base_url": "http://h", "name": "x", "typo": 1})).is_err());
}
