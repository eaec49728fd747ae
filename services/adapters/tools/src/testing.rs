//! Tools for tests: one of each class, with effects that a test can count and hold.

mod effects;
mod processes;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pa_domain::call::{Class, Gate, GateKind, ResultPart};
use pa_domain::{CallId, Origin};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::tool::arguments;
use crate::{Context, Error, Place, Tool};

pub use effects::EffectTool;
pub use processes::ProcessGroupTool;

/// Counts and holds the calls of a test's tool.
#[derive(Clone, Default)]
pub struct Counter(Arc<Inner>);

#[derive(Default)]
struct Inner {
  begun: AtomicUsize,
  done: AtomicUsize,
  held: AtomicUsize,
  calls: std::sync::Mutex<Vec<CallId>>,
  moved: Notify,
}

impl Counter {
  /// Calls that began, also those that were dropped.
  pub fn begun(&self) -> usize {
    self.0.begun.load(Ordering::SeqCst)
  }

  /// Calls whose effect happened.
  pub fn done(&self) -> usize {
    self.0.done.load(Ordering::SeqCst)
  }

  /// Which calls began, in order.
  pub fn calls(&self) -> Vec<CallId> {
    self.0.calls.lock().expect("no test panics while it holds this lock").clone()
  }

  /// Holds calls before their effect, until [`Self::release`].
  pub fn hold(&self) {
    self.0.held.store(1, Ordering::SeqCst);
  }

  /// Lets held calls go on.
  pub fn release(&self) {
    self.0.held.store(0, Ordering::SeqCst);
    self.0.moved.notify_waiters();
  }

  /// Waits until so many calls have begun.
  pub async fn reached(&self, begun: usize) {
    self.until(|| self.begun() >= begun).await;
  }

  async fn until(&self, is_so: impl Fn() -> bool) {
    loop {
      let moved = self.0.moved.notified();
      if is_so() {
        return;
      }
      moved.await;
    }
  }

  async fn pass(&self, call: CallId) {
    self.0.begun.fetch_add(1, Ordering::SeqCst);
    self.0.calls.lock().expect("no test panics while it holds this lock").push(call);
    self.0.moved.notify_waiters();
    self.until(|| self.0.held.load(Ordering::SeqCst) == 0).await;
    self.0.done.fetch_add(1, Ordering::SeqCst);
    self.0.moved.notify_waiters();
  }
}

/// How a test's tool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
  Returns,
  Fails,
  /// The effect happened, and the tool can't tell.
  DoesNotKnow,
}

/// A tool of any class whose effect is a counter.
pub struct TestTool {
  name: &'static str,
  class: Class,
  limit: Duration,
  ending: Ending,
  counter: Counter,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
  #[serde(default)]
  text: String,
}

impl TestTool {
  /// `pa_slow_read`: repeatable.
  pub fn slow_read(counter: Counter) -> Self {
    Self::new("pa_slow_read", Class::Repeatable, counter)
  }

  /// `pa_contained`: as a command in the agent's computer.
  pub fn contained(counter: Counter) -> Self {
    Self::new("pa_contained", Class::Contained, counter)
  }

  /// `pa_external`: as an email; the counter is the outside world.
  pub fn external(counter: Counter) -> Self {
    Self::new("pa_external", Class::External, counter)
  }

  /// Another ending than returning.
  #[must_use]
  pub fn ending(self, ending: Ending) -> Self {
    Self { ending, ..self }
  }

  /// Another time limit than ten seconds.
  #[must_use]
  pub fn limited_to(self, limit: Duration) -> Self {
    Self { limit, ..self }
  }

  fn new(name: &'static str, class: Class, counter: Counter) -> Self {
    Self { name, class, limit: Duration::from_secs(10), ending: Ending::Returns, counter }
  }
}

#[async_trait]
impl Tool for TestTool {
  fn name(&self) -> &'static str {
    self.name
  }

  fn description(&self) -> &'static str {
    "Counts its calls."
  }

  fn parameters(&self) -> Value {
    json!({ "type": "object", "properties": { "text": { "type": "string", "description": "Comes back." } }, "additionalProperties": false })
  }

  fn class(&self) -> Class {
    self.class
  }

  fn time_limit(&self) -> Duration {
    self.limit
  }

  fn places(&self) -> &'static [Place] {
    &[Place::Conversation, Place::Task]
  }

  async fn gate(&self, _: &Context, given: &Map<String, Value>) -> Result<Option<Gate>, Error> {
    let Arguments { text } = arguments(given)?;
    let target = format!("somebody: {text}");
    Ok((self.class == Class::External).then_some(Gate { kind: GateKind::Email, target, scope: None, valid_until_ms: None }))
  }

  async fn call(&self, context: &Context, given: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
    let Arguments { text } = arguments(given)?;
    self.counter.pass(context.call).await;
    match self.ending {
      Ending::Returns => Ok(vec![ResultPart { origin: Origin::Tool, text: format!("done: {text}"), blob: None }]),
      Ending::Fails => Err(Error::Failed { code: "TEST_FAILED", reason: "as the test wants it".to_owned() }),
      Ending::DoesNotKnow => Err(Error::Unknown { reason: "as the test wants it".to_owned() }),
    }
  }
}

#[cfg(test)]
mod tests {
  use pa_domain::{AgentId, ConversationId, JobId};
  use uuid::Uuid;

  use super::*;
  use crate::{Tools, contract};

  #[tokio::test]
  async fn the_test_tools_keep_the_contract() {
    let id = Uuid::from_u128(1);
    let context = Context { agent: AgentId(id), job: JobId(id), conversation: ConversationId(id), execution: 1, call: CallId(id) };
    for tool in [TestTool::slow_read(Counter::default()), TestTool::contained(Counter::default()), TestTool::external(Counter::default())] {
      contract::check(&tool, &context).await;
    }
  }

  #[test]
  fn two_tools_of_one_name_are_refused() {
    let tool = || -> Arc<dyn Tool> { Arc::new(TestTool::external(Counter::default())) };
    assert_eq!(Tools::new([tool(), tool()]).err().map(|error| error.name), Some("pa_external"));
    let tools = Tools::new([tool()]).unwrap();
    assert!(tools.get("pa_external").is_some() && tools.get("pa_other").is_none());
    assert_eq!((tools.at(Place::Conversation).count(), tools.at(Place::Heartbeat).count()), (1, 0));
  }
}
