//! The world outside: a model, tools whose effects can't be taken back, and the ledger of what happened.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pa_domain::call::{Class, ResultPart};
use pa_domain::{CallId, Origin};
use pa_eventlog::meta::partition_of;
use pa_eventlog::sim::SimLog;
use pa_eventlog::{Position, Stream};
use pa_model::{Answer, Config, Finish, Message, Model, Part, Pieces, Request, ToolCall};
use pa_tools::{Context, Place, Tool, Tools};
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::world::PARTITIONS;

/// Something that happened outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
  pub(super) call: CallId,
  pub(super) execution: i32,
  pub(super) class: Class,
  /// The position after the last record of the log when it began.
  pub(super) log_end: Position,
}

/// Everything that happened outside.
#[derive(Clone)]
pub(super) struct Ledger {
  log: SimLog,
  effects: Arc<Mutex<Vec<Effect>>>,
}

impl Ledger {
  pub(super) fn new(log: SimLog) -> Self {
    Self { log, effects: Arc::default() }
  }

  fn note(&self, context: &Context, class: Class) {
    let records = self.log.records(Stream::Events, partition_of(context.agent, PARTITIONS));
    let log_end = records.last().map_or(0, |stored| stored.position + 1);
    self.effects.lock().push(Effect { call: context.call, execution: context.execution, class, log_end });
  }

  /// Whether a call has had its effect.
  pub(super) fn happened(&self, call: CallId) -> bool {
    self.effects.lock().iter().any(|effect| effect.call == call)
  }

  pub(super) fn effects(&self) -> Vec<Effect> {
    self.effects.lock().clone()
  }

  /// The tools, one of each class.
  pub(super) fn tools(&self, random: &Arc<Mutex<StdRng>>) -> Tools {
    let tool = |name, class| -> Arc<dyn Tool> { Arc::new(SimTool { name, class, ledger: self.clone(), random: Arc::clone(random) }) };
    Tools::new([tool("pa_read", Class::Repeatable), tool("pa_shell", Class::Contained), tool("pa_email", Class::External)]).expect("three names")
  }
}

struct SimTool {
  name: &'static str,
  class: Class,
  ledger: Ledger,
  random: Arc<Mutex<StdRng>>,
}

#[async_trait]
impl Tool for SimTool {
  fn name(&self) -> &'static str {
    self.name
  }

  fn description(&self) -> &'static str {
    "Does something outside."
  }

  fn parameters(&self) -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
  }

  fn class(&self) -> Class {
    self.class
  }

  fn time_limit(&self) -> Duration {
    Duration::from_secs(5)
  }

  fn places(&self) -> &'static [Place] {
    &[Place::Conversation]
  }

  /// The effect is at the beginning; then it takes a while.
  async fn call(&self, context: &Context, _: &Map<String, Value>) -> Result<Vec<ResultPart>, pa_tools::Error> {
    self.ledger.note(context, self.class);
    let time = Duration::from_millis(self.random.lock().random_range(1..1_500));
    sleep(time).await;
    Ok(vec![ResultPart { origin: Origin::Tool, text: "done".to_owned(), blob: None }])
  }
}

/// A model that does what the message's text says: one step for each word that is a tool's name, then an answer.
pub(super) struct SimModel {
  config: Config,
  random: Arc<Mutex<StdRng>>,
}

impl SimModel {
  pub(super) fn new(random: &Arc<Mutex<StdRng>>) -> Self {
    Self { config: Config::new("http://fake.invalid/v1", "sim"), random: Arc::clone(random) }
  }
}

#[async_trait]
impl Model for SimModel {
  fn config(&self) -> &Config {
    &self.config
  }

  async fn stream(&self, request: &Request, _: &mut dyn Pieces) -> Result<Answer, pa_model::Error> {
    let time = Duration::from_millis(self.random.lock().random_range(1..2_500));
    sleep(time).await;
    Ok(said_to(request))
  }
}

fn said_to(request: &Request) -> Answer {
  let asked = request.messages.iter().rposition(|message| matches!(message, Message::User(_)));
  let text = match asked.map(|asked| &request.messages[asked]) {
    Some(Message::User(parts)) => parts.iter().map(|part| if let Part::Text(text) = part { text.as_str() } else { "" }).collect::<Vec<_>>().join(" "),
    _ => String::new(),
  };
  let steps =
    request.messages.iter().skip(asked.unwrap_or(0)).filter(|message| matches!(message, Message::Assistant { calls, .. } if !calls.is_empty())).count();
  let wanted = text.split_whitespace().filter(|word| word.starts_with("pa_")).nth(steps);
  let Some(wanted) = wanted.filter(|_| !request.tools.is_empty()) else { return Answer::of_text("It is done.") };
  let call = |(number, name): (usize, &str)| ToolCall { id: format!("c{number}"), name: name.to_owned(), arguments: "{}".to_owned() };
  let calls = wanted.split('+').enumerate().map(call).collect();
  Answer { calls, finish: Finish::ToolCalls, ..Answer::of_text("I look.") }
}

/// What a message may want done; names joined by `+` go into one step.
pub(super) fn some_wish(random: &mut StdRng) -> &'static str {
  match random.random_range(0..16) {
    0 | 1 => "pa_email",
    2 => "pa_read+pa_read",
    3 => "pa_read pa_email",
    4 => "pa_shell",
    5 => "pa_email+pa_shell pa_read",
    _ => "talk",
  }
}
