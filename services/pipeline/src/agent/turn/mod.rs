//! One execution of a reply or a task: asked for, granted, carried out, ended.
//!
//! Invariants
//! - Nothing is done before the `ExecutionStarted` that this process's own ask caused was read.
//! - Whatever cuts it off (an end in the log, the attempt's limit, a stop of the process, a lost lease) drops the model request and what can be dropped at once.
//! - An external call that has begun runs to its own end and is reported, also when its execution is over.
//!
//! Next: `work.rs` for replies and `task.rs` for tasks, then `request.rs`, `plan.rs` and `calls.rs`.

mod calls;
mod exact;
mod failure;
mod plan;
mod request;
mod task;
mod work;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pa_domain::call::{CallOutcomeReported, Outcome};
use pa_domain::execution::{self, ExecutionFailureReported, ExecutionLossReported, ExecutionStarted, ExecutionYieldReported, JobKind, LossReason};
use pa_domain::limits::{DETAIL_CHARS_MAX, REPLY_ATTEMPT_MILLIS};
use pa_domain::task::OutputLoopReported;
use pa_domain::{AgentId, CallId, ConversationId, Event, Input, JobId, MessageId};
use pa_eventlog::appender::{self, Prepared};
use pa_eventlog::reader::Decision;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout};

#[cfg(test)]
pub(super) use work::STEPS_MAX;

use super::Worker;
use super::asks::{Chain, refusal};
use super::inner::Audience;
use super::running::{Registered, Signals};
use failure::Failure;

/// How long an ask waits for its decision: longer than another decider needs to take its partition over. Then the claim is given up; a grant that comes later is
/// seen as abandoned by the observers.
const GRANT_MAX: Duration = Duration::from_secs(120);
/// How long a stopping process waits for a grant, so that it can give it back.
const GRANT_AT_STOP: Duration = Duration::from_secs(2);
/// How long the last reports of a turn may take.
const REPORTS_MAX: Duration = Duration::from_secs(10);

/// What an execution is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
  pub(super) agent: AgentId,
  pub(super) job: JobId,
  pub(super) execution: i32,
  pub(super) conversation: ConversationId,
  pub(super) reply: MessageId,
  pub(super) chain: Chain,
}

/// A granted execution in this process.
struct Turn {
  worker: Arc<Worker>,
  signals: Arc<Signals>,
  is: Execution,
  /// The decision that granted it.
  granted: Arc<Decision>,
  /// When this attempt is over, by this process's own clock. A task has no limit (RUN-19).
  deadline: Option<Instant>,
  /// To whom tools are offered; known once it is read what the job is for.
  audience: OnceLock<Audience>,
  /// Contained calls that have begun here and are not reported.
  contained: Mutex<Vec<CallId>>,
}

/// How a turn's work ends by itself.
#[derive(Debug)]
enum End {
  /// The reply stands.
  Finished,
  /// The log refused something because the execution is over.
  Over,
  /// An external call's outcome is unknown: the job waits (RUN-18).
  Waits,
  /// The model repeats itself (RUN-24).
  Looped(String),
  Failed(Failure),
}

/// What cuts a turn off.
#[derive(Clone, Copy, Debug)]
enum Cut {
  Over,
  LeaseLost,
  TimeLimit,
  Stopping,
}

/// Asks for an execution and carries it out.
pub(super) async fn run(worker: Arc<Worker>, ask: Prepared, registered: Registered) {
  let job = registered.signals.job;
  if let Some(turn) = Box::pin(begin(&worker, ask, &registered)).await {
    Box::pin(turn.carry_out()).await;
  }
  drop(registered);
  worker.leases.released(job);
}

async fn begin(worker: &Arc<Worker>, ask: Prepared, registered: &Registered) -> Option<Turn> {
  let signals = &registered.signals;
  let (agent, job) = (signals.agent, signals.job);
  // The log's limit counts from the decision, so ours, from the ask, is over first.
  let deadline = match worker.queue.kind() {
    JobKind::Reply => Some(Instant::now() + Duration::from_millis(REPLY_ATTEMPT_MILLIS.unsigned_abs())),
    JobKind::Task => None,
  };
  let decided = async {
    let sent = worker.asks.send(vec![ask]).await?.into_iter().next();
    Ok::<_, appender::Error>(match sent {
      Some(sent) => sent.decided().await,
      None => None,
    })
  };
  let granted = tokio::select! {
    biased;
    decided = decided => decided,
    () = sleep(GRANT_MAX) => Ok(None),
    () = async { worker.stop.cancelled().await; sleep(GRANT_AT_STOP).await } => Ok(None),
  };
  let granted = match granted {
    Ok(Some(granted)) => granted,
    Ok(None) => return None,
    Err(error) => {
      tracing::warn!(agent.id = %agent, job.id = %job, error = &error as &dyn std::error::Error, "a job can't be asked for");
      return None;
    }
  };
  let Some((started, chain)) = grant(&granted, job) else {
    tracing::debug!(agent.id = %agent, job.id = %job, reason = refusal(&granted).unwrap_or_default(), "an execution was refused");
    return None;
  };
  pa_store::fail_point!("agent.after_grant");
  signals.start(started.execution, granted.last_ordinal());
  worker.leases.started(job, started.execution);
  let is = Execution { agent, job, execution: started.execution, conversation: started.conversation, reply: started.reply, chain };
  Some(Turn { worker: Arc::clone(worker), signals: Arc::clone(signals), is, granted, deadline, audience: OnceLock::new(), contained: Mutex::default() })
}

/// The start of the job's execution in a decision, and the chain that follows from it.
fn grant(decision: &Decision, job: JobId) -> Option<(ExecutionStarted, Chain)> {
  decision.events.iter().find_map(|recorded| match &recorded.event {
    Event::Execution(execution::Event::ExecutionStarted(started)) if started.job == job => {
      let core = recorded.core();
      Some((started.clone(), Chain { cause: Some(core.id), correlation: Some(core.correlation) }))
    }
    Event::Execution(_)
    | Event::Account(_)
    | Event::Agent(_)
    | Event::Call(_)
    | Event::Conversation(_)
    | Event::Log(_)
    | Event::Settings(_)
    | Event::Task(_)
    | Event::Timer(_) => None,
  })
}

impl Turn {
  /// What the job is.
  fn kind(&self) -> JobKind {
    self.worker.queue.kind()
  }

  /// To whom tools are offered. Before it is known, to those who get the least.
  fn audience(&self) -> Audience {
    self.audience.get().copied().unwrap_or(Audience::Result)
  }

  async fn work(&self) -> End {
    let end = match self.kind() {
      JobKind::Reply => work::attempt(self).await,
      JobKind::Task => task::attempt(self).await,
    };
    end.unwrap_or_else(End::Failed)
  }

  async fn carry_out(&self) {
    let begun = Instant::now();
    let end = tokio::select! {
      biased;
      cut = self.cut() => Err(cut),
      end = self.work() => Ok(end),
    };
    self.worker.pieces.step(self.is.agent, self.is.conversation, None);
    tracing::debug!(agent.id = %self.is.agent, job.id = %self.is.job, execution = self.is.execution, end = ?end, "a turn is over");
    metrics::histogram!("pa_turn_seconds").record(begun.elapsed().as_secs_f64());
    if timeout(REPORTS_MAX, self.report(end)).await.is_err() {
      tracing::warn!(job.id = %self.is.job, "the end of a turn could not be reported in time; others will see its lease run out");
    }
  }

  async fn cut(&self) -> Cut {
    tokio::select! {
      biased;
      () = self.signals.ended(self.is.execution) => Cut::Over,
      () = self.signals.lease_lost.cancelled() => Cut::LeaseLost,
      () = self.worker.stop.cancelled() => Cut::Stopping,
      () = async { match self.deadline { Some(deadline) => sleep_until(deadline).await, None => std::future::pending().await } } => Cut::TimeLimit,
    }
  }

  /// Says how it ended, as far as the log does not know. What a dropped contained call did is not known, and said first.
  async fn report(&self, end: Result<End, Cut>) {
    let Execution { job, execution, .. } = self.is;
    let contained = std::mem::take(&mut *self.contained.lock());
    for call in contained {
      self.tell(CallOutcomeReported { job, execution, call, outcome: Outcome::Unknown, code: String::new(), parts: Vec::new() }).await;
    }
    match end {
      Ok(End::Finished | End::Over) | Err(Cut::Over | Cut::LeaseLost) => {}
      Ok(End::Waits) => self.tell(ExecutionYieldReported { job, execution }).await,
      Err(Cut::Stopping) => self.give_back().await,
      Err(Cut::TimeLimit) => self.tell(ExecutionLossReported { job, execution, reason: LossReason::TimeLimit }).await,
      Ok(End::Looped(detail)) => {
        let detail = detail.chars().take(DETAIL_CHARS_MAX).collect();
        self.tell(OutputLoopReported { task: job.into(), execution, detail }).await;
      }
      Ok(End::Failed(failure)) => {
        tracing::warn!(agent.id = %self.is.agent, job.id = %job, code = failure.code, detail = failure.detail, "a job failed");
        self.tell(ExecutionFailureReported { job, execution, code: failure.code.to_owned(), detail: failure.detail }).await;
      }
    }
  }

  /// Yields at a stop, and waits for the decision: this process's own decider ends right after its workers.
  async fn give_back(&self) {
    let Execution { job, execution, .. } = self.is;
    let given = self.worker.asks.ask(self.is.agent, self.is.chain, ExecutionYieldReported { job, execution }).await;
    self.appended(given.map(|_| ()));
  }

  async fn tell(&self, input: impl Into<Input>) {
    self.appended(self.worker.asks.tell(self.is.agent, self.is.chain, input).await);
  }

  fn appended(&self, told: Result<(), appender::Error>) {
    if let Err(error) = told {
      tracing::warn!(job.id = %self.is.job, error = &error as &dyn std::error::Error, "a turn's report can't be appended");
    }
  }
}
