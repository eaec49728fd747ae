//! A reply of the scripted model, step by step.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

/// What a scripted server answers to one request. Without an end of its own it finishes properly: reason, usage, `[DONE]`.
#[derive(Debug, Clone, Default)]
pub struct Reply {
  pub(super) steps: Vec<Step>,
  pub(super) opening: Opening,
  pub(super) finish: Option<String>,
  pub(super) usage: UsageReport,
  pub(super) without_done: bool,
  calls: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) enum Opening {
  #[default]
  Stream,
  Refuse {
    status: u16,
    retry_after: Option<String>,
    body: String,
  },
  /// Status 200 and a body that is no stream.
  Json(String),
  HangUp,
  /// Not even the headers come before this is released.
  Held(Hold),
}

#[derive(Debug, Clone)]
pub(super) enum Step {
  /// The delta of a chunk, as JSON.
  Delta(String),
  /// Bytes as they are.
  Raw(Vec<u8>),
  Hold(Hold),
  Pause(Duration),
  /// The connection breaks.
  Cut,
  /// The response ends as if it were complete.
  End,
}

#[derive(Debug, Clone, Default)]
pub(super) enum UsageReport {
  /// A chunk of its own, as asked for; counted by us.
  #[default]
  Counted,
  Own(Value),
  InLastChoice(Value),
  Never,
}

/// Stops a reply until the test releases it. Clones are the same hold.
#[derive(Debug, Clone)]
pub struct Hold {
  released: watch::Sender<bool>,
  reached: watch::Sender<usize>,
}

impl Default for Hold {
  fn default() -> Self {
    Self { released: watch::Sender::new(false), reached: watch::Sender::new(0) }
  }
}

impl Hold {
  pub fn new() -> Self {
    Self::default()
  }

  /// Lets every reply go on that waits here, now or later.
  pub fn release(&self) {
    self.released.send_replace(true);
  }

  /// Waits until a reply stands here; all pieces before it have been handed to the connection.
  pub async fn reached(&self) {
    self.reached_by(1).await;
  }

  /// Waits until so many replies have come here in all.
  pub async fn reached_by(&self, replies: usize) {
    self.reached.subscribe().wait_for(|&count| count >= replies).await.expect("the sender lives as long as this");
  }

  pub(super) async fn wait(&self) {
    self.reached.send_modify(|count| *count += 1);
    self.released.subscribe().wait_for(|&released| released).await.expect("the sender lives as long as this");
  }
}

impl Reply {
  pub fn new() -> Self {
    Self::default()
  }

  /// Says one text in one piece and finishes.
  pub fn text(text: &str) -> Self {
    Self::new().say(text)
  }

  /// Refuses with a status and a plain error body.
  pub fn status(status: u16) -> Self {
    let body = json!({"error": {"message": format!("scripted {status}")}}).to_string();
    Self { opening: Opening::Refuse { status, retry_after: None, body }, ..Self::default() }
  }

  /// Answers status 200 with this JSON instead of a stream.
  pub fn json(body: &Value) -> Self {
    Self { opening: Opening::Json(body.to_string()), ..Self::default() }
  }

  /// Breaks the connection before a byte of an answer.
  pub fn hang_up() -> Self {
    Self { opening: Opening::HangUp, ..Self::default() }
  }

  /// Holds back everything, the headers too.
  #[must_use]
  pub fn held_from_the_start(mut self, hold: &Hold) -> Self {
    self.opening = Opening::Held(hold.clone());
    self
  }

  /// Adds a Retry-After header to a refusal.
  #[must_use]
  pub fn retry_after(mut self, value: &str) -> Self {
    if let Opening::Refuse { retry_after, .. } = &mut self.opening {
      *retry_after = Some(value.to_owned());
    }
    self
  }

  /// Gives a refusal another body.
  #[must_use]
  pub fn body(mut self, text: &str) -> Self {
    if let Opening::Refuse { body, .. } = &mut self.opening {
      text.clone_into(body);
    }
    self
  }

  /// Sends a piece of text.
  #[must_use]
  pub fn say(self, text: &str) -> Self {
    self.delta(&json!({"content": text}).to_string())
  }

  /// Sends a piece of text given as the inside of a JSON string, escapes and all.
  #[must_use]
  pub fn say_escaped(self, inside: &str) -> Self {
    self.delta(&format!(r#"{{"content":"{inside}"}}"#))
  }

  /// Sends a piece of reasoning in its own field.
  #[must_use]
  pub fn think(self, text: &str) -> Self {
    self.delta(&json!({"reasoning_content": text, "content": null}).to_string())
  }

  /// Sends a chunk with any delta.
  #[must_use]
  pub fn delta(self, json: &str) -> Self {
    self.step(Step::Delta(json.to_owned()))
  }

  /// Sends bytes as they are.
  #[must_use]
  pub fn raw(self, bytes: impl Into<Vec<u8>>) -> Self {
    self.step(Step::Raw(bytes.into()))
  }

  /// Calls a tool, its arguments in two pieces; empty arguments are not sent at all.
  #[must_use]
  pub fn call(self, id: &str, name: &str, arguments: &str) -> Self {
    self.calls(&[(id, name, arguments)])
  }

  /// Calls tools in parallel, their pieces interleaved.
  #[must_use]
  pub fn calls(mut self, calls: &[(&str, &str, &str)]) -> Self {
    let first = self.calls;
    for (at, (id, name, _)) in calls.iter().enumerate() {
      self = self.call_piece(json!({"index": first + at, "id": id, "type": "function", "function": {"name": name}}));
    }
    let halves = calls.iter().map(|(_, _, arguments)| arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2)));
    let halves: Vec<(&str, &str)> = halves.collect();
    for side in [0, 1] {
      for (at, half) in halves.iter().enumerate() {
        let part = if side == 0 { half.0 } else { half.1 };
        if !part.is_empty() {
          self = self.call_piece(json!({"index": first + at, "function": {"arguments": part}}));
        }
      }
    }
    self.calls = first + calls.len();
    self
  }

  /// Begins a call and sends only this much of its arguments.
  #[must_use]
  pub fn half_a_call(mut self, id: &str, name: &str, arguments: &str) -> Self {
    let index = self.calls;
    self.calls += 1;
    self.call_piece(json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
  }

  /// Waits for the test; what was said before is sent.
  #[must_use]
  pub fn hold(self, hold: &Hold) -> Self {
    self.step(Step::Hold(hold.clone()))
  }

  #[must_use]
  pub fn pause(self, time: Duration) -> Self {
    self.step(Step::Pause(time))
  }

  /// Breaks the connection here.
  #[must_use]
  pub fn cut(self) -> Self {
    self.step(Step::Cut)
  }

  /// Ends the response here, as a proxy does that lost the model: complete as HTTP, without a reason to finish.
  #[must_use]
  pub fn end(self) -> Self {
    self.step(Step::End)
  }

  /// Finishes with another reason than `stop` or `tool_calls`.
  #[must_use]
  pub fn finish(mut self, reason: &str) -> Self {
    self.finish = Some(reason.to_owned());
    self
  }

  /// Reports this usage.
  #[must_use]
  pub fn usage(mut self, usage: Value) -> Self {
    self.usage = UsageReport::Own(usage);
    self
  }

  /// Reports this usage in the chunk that finishes.
  #[must_use]
  pub fn usage_in_last_choice(mut self, usage: Value) -> Self {
    self.usage = UsageReport::InLastChoice(usage);
    self
  }

  /// Reports no usage, although asked.
  #[must_use]
  pub fn without_usage(mut self) -> Self {
    self.usage = UsageReport::Never;
    self
  }

  /// Ends without `[DONE]`.
  #[must_use]
  pub fn without_done(mut self) -> Self {
    self.without_done = true;
    self
  }

  /// Says whether any call was begun.
  pub(super) fn has_calls(&self) -> bool {
    self.calls > 0
  }

  #[expect(clippy::needless_pass_by_value, reason = "each caller makes the value for this call alone")]
  fn call_piece(self, call: Value) -> Self {
    self.delta(&json!({"tool_calls": [call]}).to_string())
  }

  fn step(mut self, step: Step) -> Self {
    self.steps.push(step);
    self
  }
}
