//! One request into the log and its decision back.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::log::Settlement;
use pa_domain::{Event, Input, Origin, log};
use pa_eventlog::appender::{self, Appender, Prepared, Submission};
use pa_eventlog::reader::Decision;
use pa_store::Disposition;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::auth::Viewer;
use crate::edge::Edge;

/// Who made the keys of all requests of an account: the account, whichever way it came in.
const PRODUCER: &str = "account";
/// Who acts in them.
const ACTOR: &str = "owner";
/// Between two tries of an append.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What became of a request.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
  /// Decided: its facts stand in the log.
  Decided(Arc<Decision>),
  /// Decided before, under the same key, as the input with this id.
  Repeated { of: Uuid, ordinal: i64 },
  /// There was nothing to change.
  Unchanged { ordinal: i64 },
  /// Refused by a rule.
  Refused { reason: String },
  /// Accepted and not decided yet: also when it is held until somebody lets its agent go on.
  Undecided,
  /// Perhaps accepted: the log has not said so in time.
  Unconfirmed,
}

/// What became of an append.
enum Fate {
  Durable,
  Unknown,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
  /// The client's key.
  pub key: &'a str,
  /// What the client asked for under it: the same key with anything else is a conflict.
  pub content: Vec<u8>,
  pub input: Input,
}

impl<'a> Asked<'a> {
  /// A request named `verb` with the fields that the client gave.
  pub(crate) fn new(key: &'a str, verb: &str, fields: &serde_json::Value, input: Input) -> Self {
    Self { key, content: format!("{verb} {fields}").into_bytes(), input }
  }
}

/// A request that was certainly not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
  #[error("the input can't be appended")]
  Append(#[from] appender::Error),
  #[error("too many requests are under way")]
  Busy,
  #[error("the request's task ended early")]
  Ended,
}

impl crate::graphql::env::Failure for Error {
  fn passes(&self) -> bool {
    match self {
      Self::Append(error) => error.disposition() != Disposition::Fail,
      Self::Busy => true,
      Self::Ended => false,
    }
  }

  fn lacks_key(&self) -> bool {
    matches!(self, Self::Append(appender::Error::NoKey { .. }))
  }
}

/// Appends an input under the client's key and waits for its decision, until `deadline`.
pub(crate) async fn submit(edge: &Edge, viewer: &Viewer, asked: Asked<'_>, deadline: Instant) -> Result<Outcome, Error> {
  let permit = Arc::clone(&edge.mutations).try_acquire_owned().map_err(|_| Error::Busy)?;
  let submission = Submission {
    agent: viewer.account,
    input: asked.input,
    producer: PRODUCER,
    key: Some(asked.key),
    content: Some(&asked.content),
    actor: ACTOR,
    origin: Origin::Owner,
    cause: None,
    correlation: None,
    traceparent: None,
  };
  let prepared = edge.appender.prepare(submission).await?;
  let expected = edge.tail.expect(viewer.account, prepared.id);
  let appender = edge.appender.clone();
  let appending = edge.tasks.spawn(async move {
    let fate = append(&appender, prepared, deadline).await;
    drop(permit);
    fate
  });
  let fate = match timeout_at(deadline, appending).await {
    Ok(Ok(fate)) => fate?,
    Ok(Err(_)) => return Err(Error::Ended),
    // The append goes on in its task.
    Err(_) => Fate::Unknown,
  };
  // A decision proves that the record stands, whatever the append was told.
  let left = deadline.saturating_duration_since(Instant::now());
  let undecided = match fate {
    Fate::Durable => Outcome::Undecided,
    Fate::Unknown => Outcome::Unconfirmed,
  };
  Ok(expected.within(left).await.map_or(undecided, outcome))
}

/// Appends until it is certain that the record stands or until the time is over; the same record again is a repeat.
async fn append(appender: &Appender, prepared: Prepared, deadline: Instant) -> Result<Fate, Error> {
  let records = [prepared];
  let mut perhaps = false;
  loop {
    pa_store::fail_point!("gateway.before_append");
    let Err(error) = appender.append(&records).await else {
      pa_store::fail_point!("gateway.after_append");
      return Ok(Fate::Durable);
    };
    perhaps |= error.disposition() == Disposition::Unknown;
    if error.disposition() != Disposition::Fail && Instant::now() + AGAIN_AFTER < deadline {
      sleep(AGAIN_AFTER).await;
      continue;
    }
    if perhaps {
      tracing::warn!(error = &error as &dyn std::error::Error, input.id = %records[0].id, "the fate of an input is unknown");
      return Ok(Fate::Unknown);
    }
    return Err(error.into());
  }
}

fn outcome(decision: Arc<Decision>) -> Outcome {
  let ordinal = decision.ordinal;
  if decision.events.iter().any(|recorded| matches!(recorded.event, Event::Log(log::Event::InputHeld(_) | log::Event::InputQuarantined(_)))) {
    return Outcome::Undecided;
  }
  let settled = decision.events.iter().find_map(|recorded| match &recorded.event {
    Event::Log(log::Event::InputSettled(settled)) => Some(settled.clone()),
    _ => None,
  });
  match settled {
    None => Outcome::Decided(decision),
    Some(settled) => match (settled.outcome, settled.of) {
      (Settlement::Refused, _) => Outcome::Refused { reason: settled.reason },
      (Settlement::Repeated, Some(of)) => Outcome::Repeated { of: of.0, ordinal },
      (Settlement::Repeated, None) | (Settlement::NoChange, _) => Outcome::Unchanged { ordinal },
    },
  }
}
