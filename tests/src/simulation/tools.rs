//! The world outside: tools whose effects can't be taken back, and the ledger of what happened in it.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::call::Class;
use pa_domain::{AgentId, CallId};
use parking_lot::Mutex;
use pa_eventlog::sim::SimLog;
use pa_eventlog::{Partition, Position, Stream};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// Something that happened outside.
#[derive(Clone, Debug)]
pub(super) struct Effect {
  pub(super) agent: AgentId,
  pub(super) partition: Partition,
  pub(super) call: CallId,
  pub(super) execution: i32,
  pub(super) class: Class,
  /// The ask whose permit allowed it.
  pub(super) ask: Uuid,
  /// The position after the last record of the log when it began.
  pub(super) log_end: Position,
  pub(super) at: Instant,
}

/// Everything that happened outside.
#[derive(Clone)]
pub(super) struct Tools {
  log: SimLog,
  effects: Arc<Mutex<Vec<Effect>>>,
}

/// The tools' own time limit.
pub(super) const LIMIT_MILLIS: i64 = 5_000;

/// The class that a tool declares.
pub(super) fn class_of(tool: &str) -> Class {
  match tool {
    "email_send" => Class::External,
    "shell" => Class::Contained,
    _ => Class::Repeatable,
  }
}

/// A call that is to have its effect.
pub(super) struct Act {
  pub(super) agent: AgentId,
  pub(super) partition: Partition,
  pub(super) call: CallId,
  pub(super) execution: i32,
  pub(super) class: Class,
  pub(super) ask: Uuid,
}

impl Tools {
  pub(super) fn new(log: SimLog) -> Self {
    Self { log, effects: Arc::default() }
  }

  /// Has the effect at once, and answers after `time`.
  pub(super) async fn act(&self, act: Act, time: Duration) {
    let Act { agent, partition, call, execution, class, ask } = act;
    let log_end = self.log.records(Stream::Events, partition).last().map_or(0, |stored| stored.position + 1);
    self.effects.lock().push(Effect { agent, partition, call, execution, class, ask, log_end, at: Instant::now() });
    sleep(time).await;
  }

  /// Whether a call has had its effect.
  pub(super) fn happened(&self, call: CallId) -> bool {
    self.effects.lock().iter().any(|effect| effect.call == call)
  }

  pub(super) fn effects(&self) -> Vec<Effect> {
    self.effects.lock().clone()
  }
}
