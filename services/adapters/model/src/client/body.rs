//! The request as the protocol writes it. It is written once and sent as often as needed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Config, Effort, Error, Message, OutputLimitField, Part, Request, Tool, ToolCall};

/// Twenty MiB of attachments as base64, twice over: what is larger no server takes.
const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Serialize)]
struct Body<'a> {
  model: &'a str,
  messages: Vec<Outgoing<'a>>,
  stream: bool,
  stream_options: StreamOptions,
  #[serde(skip_serializing_if = "Vec::is_empty")]
  tools: Vec<OutgoingTool<'a>>,
  #[serde(skip_serializing_if = "Option::is_none")]
  max_tokens: Option<u32>,
  #[serde(skip_serializing_if = "Option::is_none")]
  max_completion_tokens: Option<u32>,
  #[serde(flatten)]
  extra: &'a Map<String, Value>,
  #[serde(flatten)]
  effort: Map<String, Value>,
}

#[derive(Serialize)]
struct StreamOptions {
  include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Outgoing<'a> {
  System {
    content: &'a str,
  },
  User {
    content: Content,
  },
  Assistant {
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OutgoingCall<'a>>,
  },
  Tool {
    tool_call_id: &'a str,
    content: &'a str,
  },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content {
  /// Every server takes a string; only those for models that see take parts for sure.
  Text(String),
  Parts(Vec<OutgoingPart>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutgoingPart {
  Text { text: String },
  ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
  url: String,
}

#[derive(Serialize)]
struct OutgoingTool<'a> {
  #[serde(rename = "type")]
  kind: &'static str,
  function: &'a Tool,
}

#[derive(Serialize)]
struct OutgoingCall<'a> {
  id: &'a str,
  #[serde(rename = "type")]
  kind: &'static str,
  function: OutgoingFunction<'a>,
}

#[derive(Serialize)]
struct OutgoingFunction<'a> {
  name: &'a str,
  arguments: &'a str,
}

pub(super) fn write(config: &Config, request: &Request) -> Result<Bytes, Error> {
  let limit = request.max_output_tokens.or(config.max_output_tokens);
  let body = Body {
    model: request.model.as_deref().unwrap_or(&config.name),
    messages: request.messages.iter().map(|message| outgoing(message, config.sees_pictures)).collect(),
    stream: true,
    stream_options: StreamOptions { include_usage: true },
    tools: request.tools.iter().map(|function| OutgoingTool { kind: "function", function }).collect(),
    max_tokens: limit.filter(|_| config.output_limit_field == OutputLimitField::MaxTokens),
    max_completion_tokens: limit.filter(|_| config.output_limit_field == OutputLimitField::MaxCompletionTokens),
    extra: &config.extra_fields,
    effort: effort_fields(config, request.effort),
  };
  let bytes = serde_json::to_vec(&body).map_err(|source| Error::WriteFailed { source })?;
  if bytes.len() > REQUEST_BYTES_MAX {
    return Err(Error::RequestTooLarge { detail: format!("{} bytes, at most {REQUEST_BYTES_MAX}", bytes.len()) });
  }
  Ok(bytes.into())
}

fn effort_fields(config: &Config, wished: Effort) -> Map<String, Value> {
  let effort = config.effort_for(wished);
  match config.effort_fields.get(&effort) {
    Some(fields) => fields.clone(),
    None if effort == Effort::Fast => Map::new(),
    None => Map::from_iter([("reasoning_effort".to_owned(), Value::from(effort.as_str()))]),
  }
}

fn outgoing(message: &Message, sees_pictures: bool) -> Outgoing<'_> {
  match message {
    Message::System(content) => Outgoing::System { content },
    Message::User(parts) => Outgoing::User { content: content(parts, sees_pictures) },
    Message::Assistant { text, calls } => {
      Outgoing::Assistant { content: (calls.is_empty() || !text.is_empty()).then_some(text), tool_calls: calls.iter().map(outgoing_call).collect() }
    }
    Message::Tool { call_id, text } => Outgoing::Tool { tool_call_id: call_id, content: text },
  }
}

fn outgoing_call(call: &ToolCall) -> OutgoingCall<'_> {
  OutgoingCall { id: &call.id, kind: "function", function: OutgoingFunction { name: &call.name, arguments: &call.arguments } }
}

fn content(parts: &[Part], sees_pictures: bool) -> Content {
  let pictures = parts.iter().any(|part| matches!(part, Part::Picture { .. }));
  if pictures && sees_pictures {
    return Content::Parts(parts.iter().map(outgoing_part).collect());
  }
  let texts: Vec<String> = parts.iter().map(words).collect();
  Content::Text(texts.join("\n\n"))
}

fn outgoing_part(part: &Part) -> OutgoingPart {
  match part {
    Part::Text(text) => OutgoingPart::Text { text: text.clone() },
    Part::Picture { media_type, bytes } => {
      let mut url = format!("data:{media_type};base64,");
      STANDARD.encode_string(bytes, &mut url);
      OutgoingPart::ImageUrl { image_url: ImageUrl { url } }
    }
  }
}

/// A picture is never silently left out: a model that can't see learns that there is one.
fn words(part: &Part) -> String {
  match part {
    Part::Text(text) => text.clone(),
    Part::Picture { media_type, bytes } => {
      format!("[picture, {media_type}, {} bytes: this model can't see pictures]", bytes.len())
    }
  }
}
