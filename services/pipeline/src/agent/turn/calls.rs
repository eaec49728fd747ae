//! The calls of recorded steps: asked for when they can begin, made by permit, reported (design.md 5).
//!
//! Read-only calls of a step go together, any other after what stands before it. A permit is for one use by this process, until 30 s after its ask was sent, by a
//! clock that counts suspension, looked at directly before the call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use pa_domain::call::{self, CallOutcomeReported, Class, Outcome, ResultPart};
use pa_domain::codes::{notice, reason};
use pa_domain::execution::JobKind;
use pa_domain::limits::{PERMIT_MILLIS, RESULT_TEXT_BYTES_MAX};
use pa_domain::{CallId, Event, Origin};
use pa_eventlog::guards::{self, Guard};
use pa_eventlog::reader::Decision;
use pa_tools::{Error, Tool};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::failure::Failure;
use super::plan::{Plan, Planned, context, group};
use super::work::{Desk, again, fold, reach, refresh};
use super::{Execution, Turn};
use crate::agent::Worker;
use crate::agent::asks::{Sent, refusal};
use crate::agent::inner::{At, Inner};
use crate::agent::progress::{Call, CallState, Progress};

/// How long a result waits for its blob: that something was done is worth more than all of what it said.
const KEEP_MAX: Duration = Duration::from_secs(20);
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
    let at = (step.step, if turn.kind() == JobKind::Task { step.knew } else { desk.progress.seen });
    let open: Vec<Call> = step.calls.iter().filter(|call| !call.is_settled()).cloned().collect();
    match open[0].state {
      // What an order leads to is on its way from the task that it is about.
      CallState::Started { class: Class::Repeatable, execution } if execution == turn.is.execution => {
        if changes.changed().await.is_ok() {
          let ordinal = *changes.borrow_and_update();
          refresh(desk, ordinal).await?;
        }
        continue;
      }
      CallState::Unknown { .. } | CallState::Started { class: Class::External, .. } => return Ok(Settling::Waits),
      CallState::Started { class: Class::Contained, .. } => {
        // An observer says when nobody can be at it any more, or its worker still reports.
        if changes.changed().await.is_ok() {
          let ordinal = *changes.borrow_and_update();
          refresh(desk, ordinal).await?;
        }
        continue;
      }
      CallState::Started { class: Class::Repeatable, .. } | CallState::Unasked | CallState::Held => {}
      CallState::Skipped(_) | CallState::Returned(_) | CallState::Failed { .. } | CallState::Reconciled { .. } => continue,
    }
    let group = group(turn, at, &open).await;
    turn.worker.pieces.step(turn.is.agent, turn.is.conversation, Some(&group[0].tool));
    match Box::pin(make(desk, group)).await? {
      Settling::Settled => {}
      end => return Ok(end),
    }
  }
}

/// Asks for calls together, and makes each that is permitted.
async fn make(desk: &mut Desk<'_>, group: Vec<Planned>) -> Result<Settling, Failure> {
  let turn = desk.turn;
  let mut asks = Vec::with_capacity(group.len());
  for call in &group {
    asks.push(turn.worker.asks.prepare(turn.is.agent, turn.is.chain, call.ask(turn.is).into()).await?);
  }
  let sent_at = turn.worker.boot.millis();
  let sent = turn.worker.asks.send(asks).await?;
  let progress = &desk.progress;
  let made = join_all(group.into_iter().zip(sent).map(|(call, sent)| make_one((turn, progress), call, sent, sent_at))).await;
  let mut newest = None;
  let mut settling = Settling::Settled;
  let mut folded: Vec<Arc<Decision>> = Vec::new();
  for made in made {
    match made? {
      Asked::Done(decisions) => folded.extend(decisions),
      Asked::LookAgain(ordinal) => newest = newest.max(Some(ordinal)),
      Asked::Waits => settling = Settling::Waits,
      Asked::Over => return Ok(Settling::Over),
    }
  }
  // What goes together is decided in turns: it is taken in as it stands in the log.
  folded.sort_by_key(|decision| decision.last_ordinal());
  for decision in folded {
    fold(&mut desk.progress, &decision);
  }
  if let Some(ordinal) = newest {
    refresh(desk, ordinal).await?;
  }
  Ok(settling)
}

async fn make_one(at: (&Turn, &Progress), call: Planned, sent: Sent, sent_at: i64) -> Result<Asked, Failure> {
  let (turn, _) = at;
  if !guards::on(Guard::EffectBeforePermit) {
    let outcome = carry_out(at, &call, sent_at).await?;
    return Ok(Asked::Done(sent.decided().await.into_iter().chain(outcome).collect()));
  }
  let Some(decision) = sent.decided().await else { return Ok(Asked::Over) };
  let begins =
    |event: &Event| matches!(event, Event::Call(call::Event::CallStarted(started)) if started.call == call.id && started.execution == turn.is.execution);
  let fails = |event: &Event| matches!(event, Event::Call(call::Event::CallFailed(failed)) if failed.call == call.id);
  let has = |is: &dyn Fn(&Event) -> bool| decision.events.iter().any(|recorded| is(&recorded.event));
  // An order that can't be given fails as it begins.
  if has(&begins) && !has(&fails) {
    if let Plan::Inner { inner: Inner::Read | Inner::List, .. } = &call.plan {
      // What a turn reads of tasks is at least as new as its permit (REP-3).
      reach(turn, decision.last_ordinal()).await?;
    }
    let outcome = carry_out(at, &call, sent_at).await?;
    return Ok(Asked::Done(std::iter::once(decision).chain(outcome).collect()));
  }
  Ok(match refusal(&decision).as_deref() {
    // Skipped, held, or over as it began.
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
async fn carry_out(at: (&Turn, &Progress), call: &Planned, sent_at: i64) -> Result<Vec<Arc<Decision>>, Failure> {
  let (turn, progress) = at;
  let (tool, arguments) = match &call.plan {
    Plan::Make { tool, arguments } => (tool, arguments),
    Plan::Refuse { code, why } => return Ok(report(&turn.worker, turn.is, call.id, failed(code, why)).await?.into_iter().collect()),
    Plan::Inner { inner: Inner::Order, .. } => return Ok(Vec::new()),
    Plan::Inner { inner, arguments } => {
      if call.class == Class::Contained {
        turn.contained.lock().push(call.id);
      }
      let decided = Mutex::default();
      let at = At { worker: &turn.worker, is: turn.is, call: call.id, decided: &decided };
      let reported = match timeout(call.limit, inner.call(at, progress, arguments)).await {
        Ok(Ok(parts)) => Reported { outcome: Outcome::Returned, code: String::new(), parts: bounded(&turn.worker, turn.is, call.id, parts).await },
        Ok(Err(error)) => of_error(call.class, &error),
        Err(_) => timed_out(call.class),
      };
      let reported = report(&turn.worker, turn.is, call.id, reported).await?;
      turn.contained.lock().retain(|other| *other != call.id);
      return Ok(decided.into_inner().into_iter().chain(reported).collect());
    }
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
  Ok(decision?.into_iter().collect())
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
    let context = context(self.is, self.id);
    let called = async {
      // Directly before the first byte: nothing that can wait stands between this and the call.
      let age = self.worker.boot.millis() - self.sent_at;
      if age >= PERMIT_MILLIS && guards::on(Guard::PermitWindow) {
        return None;
      }
      Some(self.tool.call(&context, &self.arguments).await)
    };
    let reported = match timeout(self.limit, called).await {
      Ok(Some(Ok(parts))) => Reported { outcome: Outcome::Returned, code: String::new(), parts: bounded(&self.worker, self.is, self.id, parts).await },
      Ok(Some(Err(error))) => of_error(self.class, &error),
      Ok(None) => failed("PERMIT_EXPIRED", "It was not begun in time, and not done."),
      Err(_) => timed_out(self.class),
    };
    report(&self.worker, self.is, self.id, reported).await
  }
}

fn of_error(class: Class, error: &Error) -> Reported {
  match error.outcome() {
    Outcome::Failed | Outcome::Returned => failed(error.code(), &error.to_string()),
    // A read whose outcome nobody knows did nothing.
    Outcome::Unknown if class == Class::Repeatable => failed("FAILED", &error.to_string()),
    Outcome::Unknown => unknown(),
  }
}

fn timed_out(class: Class) -> Reported {
  match class {
    Class::Repeatable => failed("TIMED_OUT", "It took too long and was broken off."),
    Class::Contained | Class::External => unknown(),
  }
}

/// Parts as a record can carry them; the whole of a longer one is kept as a blob.
async fn bounded(worker: &Worker, is: Execution, call: CallId, parts: Vec<ResultPart>) -> Vec<ResultPart> {
  let mut room = RESULT_TEXT_BYTES_MAX;
  let mut bounded = Vec::with_capacity(parts.len());
  for mut part in parts {
    if part.text.len() > room {
      let whole = Bytes::from(part.text.clone());
      match timeout(KEEP_MAX, again(|| worker.history.keep(is.agent, whole.clone()))).await {
        Ok(Ok(blob)) => part.blob = Some(blob),
        Ok(Err(error)) => tracing::warn!(call.id = %call, error = &error as &dyn std::error::Error, "a long result is kept only in part"),
        Err(_) => tracing::warn!(call.id = %call, "a long result could not be kept in time, and is kept only in part"),
      }
      part.text.truncate(part.text.floor_char_boundary(room));
    }
    room -= part.text.len();
    bounded.push(part);
  }
  bounded
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
