//! The calls of recorded steps: asked for when they can begin, made by permit, reported (design.md 5).
//!
//! Read-only calls of a step go together, any other after what stands before it. A permit is for one use by this process, until 30 s after its ask was sent, by a
//! clock that counts suspension, looked at directly before the call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use pa_domain::call::{self, CallAsked, CallOutcomeReported, Class, Outcome, ResultPart};
use pa_domain::codes::{notice, reason};
use pa_domain::limits::{ARGUMENTS_BYTES_MAX, PERMIT_MILLIS, RESULT_TEXT_BYTES_MAX};
use pa_domain::{CallId, Event, Origin};
use pa_eventlog::guards::{self, Guard};
use pa_eventlog::reader::Decision;
use pa_tools::{Context, Error, Place, Tool, canonical};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::failure::Failure;
use super::work::{Desk, again, fold, refresh};
use super::{Execution, Turn};
use crate::agent::Worker;
use crate::agent::asks::{Sent, refusal};
use crate::agent::progress::{Call, CallState};

/// How long a result waits for its blob: that something was done is worth more than all of what it said.
const KEEP_MAX: Duration = Duration::from_secs(20);
/// The limit of a call that is refused without being made.
const REFUSED_LIMIT: Duration = Duration::from_secs(1);

/// What became of the open calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settling {
  /// None is open.
  Settled,
  /// An external call's outcome is unknown.
  Waits,
  /// The execution is over.
  Over,
}

/// How a call is to be made.
#[derive(Clone)]
enum Plan {
  Make {
    tool: Arc<dyn Tool>,
    arguments: Map<String, Value>,
  },
  /// It can't be made; the model is told why.
  Refuse {
    code: &'static str,
    why: String,
  },
}

/// A call that is to be asked for.
#[derive(Clone)]
struct Planned {
  id: CallId,
  step: i32,
  index: i32,
  tool: String,
  action: String,
  class: Class,
  limit: Duration,
  plan: Plan,
}

/// What an ask led to.
enum Asked {
  /// Decisions to fold: the grant or the skip, and the outcome.
  Done(Vec<Arc<Decision>>),
  /// Somebody else settled it, or the order was another one: the record says more.
  LookAgain(i64),
  Waits,
  Over,
}

/// Settles every open call of the recorded steps.
pub(super) async fn settle(desk: &mut Desk<'_>) -> Result<Settling, Failure> {
  let turn = desk.turn;
  // Subscribed before the record is looked at: nothing is missed in between.
  let mut changes = turn.signals.calls();
  loop {
    let Some(step) = desk.progress.unsettled() else {
      turn.worker.pieces.step(turn.is.agent, turn.is.conversation, None);
      return Ok(Settling::Settled);
    };
    let number = step.step;
    let open: Vec<Call> = step.calls.iter().filter(|call| !call.is_settled()).cloned().collect();
    match open[0].state {
      CallState::Unknown { .. } | CallState::Started { class: Class::External, .. } => return Ok(Settling::Waits),
      CallState::Started { class: Class::Contained, .. } => {
        // An observer says when nobody can be at it any more, or its worker still reports.
        if changes.changed().await.is_ok() {
          let ordinal = *changes.borrow_and_update();
          refresh(desk, ordinal).await?;
        }
        continue;
      }
      CallState::Started { class: Class::Repeatable, .. } | CallState::Unasked => {}
      CallState::Skipped(_) | CallState::Returned(_) | CallState::Failed { .. } | CallState::Reconciled { .. } => continue,
    }
    let group = group(&turn.worker, number, &open);
    turn.worker.pieces.step(turn.is.agent, turn.is.conversation, Some(&group[0].tool));
    match Box::pin(make(desk, group)).await? {
      Settling::Settled => {}
      end => return Ok(end),
    }
  }
}

/// The calls that go together: read-only ones that follow each other, or one other.
fn group(worker: &Worker, step: i32, open: &[Call]) -> Vec<Planned> {
  let planned: Vec<Planned> = open
    .iter()
    .take_while(|call| matches!(call.state, CallState::Unasked | CallState::Started { class: Class::Repeatable, .. }))
    .map(|call| plan(worker, step, call))
    .collect();
  let together = planned.iter().take_while(|call| call.class == Class::Repeatable).count();
  planned.into_iter().take(together.max(1)).collect()
}

fn plan(worker: &Worker, step: i32, call: &Call) -> Planned {
  let planned = |action: String, class, limit, plan| Planned { id: call.id, step, index: call.index, tool: call.tool.clone(), action, class, limit, plan };
  let refused = |code, why: String| planned(call.arguments.clone(), Class::Repeatable, REFUSED_LIMIT, Plan::Refuse { code, why });
  let tool = worker.tools.get(&call.tool).filter(|tool| tool.places().contains(&Place::Conversation));
  let Some(tool) = tool else { return refused("TOOL_UNKNOWN", "There is no such tool here.".to_owned()) };
  let arguments = match serde_json::from_str::<Value>(&call.arguments) {
    Ok(Value::Object(arguments)) => arguments,
    Ok(_) => return refused("ARGUMENTS_INVALID", "The arguments must be a JSON object.".to_owned()),
    Err(error) => return refused("ARGUMENTS_INVALID", format!("The arguments are no JSON: {error}.")),
  };
  match canonical(&Value::Object(arguments.clone())) {
    // Written in full, numbers can take more room than the model gave them.
    Ok(action) if action.len() > ARGUMENTS_BYTES_MAX => {
      refused("ARGUMENTS_INVALID", format!("The arguments are too long: they may have {ARGUMENTS_BYTES_MAX} bytes."))
    }
    Ok(action) => planned(action, tool.class(), tool.time_limit(), Plan::Make { tool: Arc::clone(tool), arguments }),
    Err(error) => refused("ARGUMENTS_INVALID", format!("The arguments can't be used: {error}.")),
  }
}

/// Asks for calls together, and makes each that is permitted.
async fn make(desk: &mut Desk<'_>, group: Vec<Planned>) -> Result<Settling, Failure> {
  let turn = desk.turn;
  let mut asks = Vec::with_capacity(group.len());
  for call in &group {
    asks.push(turn.worker.asks.prepare(turn.is.agent, turn.is.chain, ask(turn.is, call, desk.progress.seen).into()).await?);
  }
  let sent_at = turn.worker.boot.millis();
  let sent = turn.worker.asks.send(asks).await?;
  let made = join_all(group.into_iter().zip(sent).map(|(call, sent)| make_one(turn, call, sent, sent_at))).await;
  let mut newest = None;
  let mut settling = Settling::Settled;
  for made in made {
    match made? {
      Asked::Done(decisions) => decisions.iter().for_each(|decision| fold(&mut desk.progress, decision)),
      Asked::LookAgain(ordinal) => newest = newest.max(Some(ordinal)),
      Asked::Waits => settling = Settling::Waits,
      Asked::Over => return Ok(Settling::Over),
    }
  }
  if let Some(ordinal) = newest {
    refresh(desk, ordinal).await?;
  }
  Ok(settling)
}

fn ask(is: Execution, call: &Planned, seen: i64) -> CallAsked {
  CallAsked {
    job: is.job,
    execution: is.execution,
    step: call.step,
    index: call.index,
    call: call.id,
    tool: call.tool.clone(),
    class: call.class,
    action: call.action.clone(),
    limit_millis: i64::try_from(call.limit.as_millis()).unwrap_or(i64::MAX),
    seen,
    // Cards are for tasks: a turn of a conversation holds nothing that needs one.
    gate: None,
  }
}

async fn make_one(turn: &Turn, call: Planned, sent: Sent, sent_at: i64) -> Result<Asked, Failure> {
  if !guards::on(Guard::EffectBeforePermit) {
    let outcome = carry_out(turn, &call, sent_at).await?;
    return Ok(Asked::Done(sent.decided().await.into_iter().chain(outcome).collect()));
  }
  let Some(decision) = sent.decided().await else { return Ok(Asked::Over) };
  let permitted = decision.events.iter().any(
    |recorded| matches!(&recorded.event, Event::Call(call::Event::CallStarted(started)) if started.call == call.id && started.execution == turn.is.execution),
  );
  if permitted {
    let outcome = carry_out(turn, &call, sent_at).await?;
    return Ok(Asked::Done(std::iter::once(decision).chain(outcome).collect()));
  }
  Ok(match refusal(&decision).as_deref() {
    // Skipped.
    None => Asked::Done(vec![decision]),
    Some(reason::CALL_SETTLED | reason::CALL_STARTED | reason::CALL_OPEN | reason::CALL_OUT_OF_ORDER | reason::NO_SUCH_CALL) => {
      Asked::LookAgain(decision.last_ordinal())
    }
    Some(reason::WAITING_FOR_CALL) => Asked::Waits,
    Some(refused @ reason::VALUE_INVALID) => return Err(Failure::new(notice::FAILED, format!("the ask for a call of {} was refused: {refused}", call.tool))),
    Some(_) => Asked::Over,
  })
}

/// Makes a permitted call and reports its outcome; the decision on the report.
async fn carry_out(turn: &Turn, call: &Planned, sent_at: i64) -> Result<Option<Arc<Decision>>, Failure> {
  let Plan::Make { tool, arguments } = &call.plan else {
    let Plan::Refuse { code, why } = &call.plan else { return Ok(None) };
    return report(&turn.worker, turn.is, call.id, failed(code, why)).await;
  };
  if call.class == Class::Contained {
    turn.contained.lock().push(call.id);
  }
  let made = Made {
    worker: Arc::clone(&turn.worker),
    is: turn.is,
    id: call.id,
    class: call.class,
    limit: call.limit,
    tool: Arc::clone(tool),
    arguments: arguments.clone(),
    sent_at,
  };
  let decision = if call.class == Class::External {
    // It has a life of its own: once begun, it is neither dropped nor forgotten with its turn.
    turn.worker.tasks.spawn(made.finish()).await.unwrap_or_else(|_| Err(Failure::new(notice::FAILED, "a tool ended its task")))
  } else {
    Box::pin(made.finish()).await
  };
  turn.contained.lock().retain(|other| *other != call.id);
  decision
}

/// A permitted call on its way.
struct Made {
  worker: Arc<Worker>,
  is: Execution,
  id: CallId,
  class: Class,
  limit: Duration,
  tool: Arc<dyn Tool>,
  arguments: Map<String, Value>,
  sent_at: i64,
}

/// What is reported of a call.
struct Reported {
  outcome: Outcome,
  code: String,
  parts: Vec<ResultPart>,
}

impl Made {
  async fn finish(self) -> Result<Option<Arc<Decision>>, Failure> {
    let context = Context { agent: self.is.agent, job: self.is.job, conversation: self.is.conversation, execution: self.is.execution, call: self.id };
    let called = async {
      // Directly before the first byte: nothing that can wait stands between this and the call.
      let age = self.worker.boot.millis() - self.sent_at;
      if age >= PERMIT_MILLIS && guards::on(Guard::PermitWindow) {
        return None;
      }
      Some(self.tool.call(&context, &self.arguments).await)
    };
    let reported = match timeout(self.limit, called).await {
      Ok(Some(Ok(parts))) => Reported { outcome: Outcome::Returned, code: String::new(), parts: self.bounded(parts).await },
      Ok(Some(Err(error))) => self.of_error(&error),
      Ok(None) => failed("PERMIT_EXPIRED", "It was not begun in time, and not done."),
      Err(_) => self.timed_out(),
    };
    report(&self.worker, self.is, self.id, reported).await
  }

  fn of_error(&self, error: &Error) -> Reported {
    match error.outcome() {
      Outcome::Failed | Outcome::Returned => failed(error.code(), &error.to_string()),
      // A read whose outcome nobody knows did nothing.
      Outcome::Unknown if self.class == Class::Repeatable => failed("FAILED", &error.to_string()),
      Outcome::Unknown => unknown(),
    }
  }

  fn timed_out(&self) -> Reported {
    match self.class {
      Class::Repeatable => failed("TIMED_OUT", "It took too long and was broken off."),
      Class::Contained | Class::External => unknown(),
    }
  }

  /// Parts as a record can carry them; the whole of a longer one is kept as a blob.
  async fn bounded(&self, parts: Vec<ResultPart>) -> Vec<ResultPart> {
    let mut room = RESULT_TEXT_BYTES_MAX;
    let mut bounded = Vec::with_capacity(parts.len());
    for mut part in parts {
      if part.text.len() > room {
        let whole = Bytes::from(part.text.clone());
        match timeout(KEEP_MAX, again(|| self.worker.history.keep(self.is.agent, whole.clone()))).await {
          Ok(Ok(blob)) => part.blob = Some(blob),
          Ok(Err(error)) => tracing::warn!(call.id = %self.id, error = &error as &dyn std::error::Error, "a long result is kept only in part"),
          Err(_) => tracing::warn!(call.id = %self.id, "a long result could not be kept in time, and is kept only in part"),
        }
        part.text.truncate(part.text.floor_char_boundary(room));
      }
      room -= part.text.len();
      bounded.push(part);
    }
    bounded
  }
}

fn failed(code: &str, why: &str) -> Reported {
  let why = ResultPart { origin: Origin::Platform, text: why.to_owned(), blob: None };
  Reported { outcome: Outcome::Failed, code: code.to_owned(), parts: vec![why] }
}

fn unknown() -> Reported {
  Reported { outcome: Outcome::Unknown, code: String::new(), parts: Vec::new() }
}

async fn report(worker: &Worker, is: Execution, call: CallId, reported: Reported) -> Result<Option<Arc<Decision>>, Failure> {
  let Reported { outcome, code, parts } = reported;
  let input = CallOutcomeReported { job: is.job, execution: is.execution, call, outcome, code, parts };
  Ok(worker.asks.ask(is.agent, is.chain, input).await?)
}
