//! A worker by the rules of work: claims, asks, works only on what its own ask was granted, asks for each call, and reports.
//!
//! The model and the tools are scripted by the job's id, so that a run depends on its seed alone.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::call::{CallAsked, CallOutcomeReported, CallStatus, Class, Event as CallEvent, Outcome};
use pa_domain::conversation::Reply;
use pa_domain::execution::{
  Event as ExecutionEvent, ExecutionAsked, ExecutionYieldReported, FinishAsked, JobKind, StepReported, ToolCall, Work,
};
use pa_domain::limits::PERMIT_MILLIS;
use pa_domain::testing::inputs::model_call;
use pa_domain::{AgentId, CallId, Event, Input, JobId, Origin, ids};
use pa_eventlog::Partition;
use pa_eventlog::appender::{self, Appender, Submission};
use pa_eventlog::guards::{self, Guard};
use pa_eventlog::meta::partition_of;
use pa_eventlog::reader::Decision;
use pa_eventlog::tail::Tail;
use pa_projections::queue::JobRow;
use pa_store::clock::Ids;
use pa_store::lease::{LEASE, RENEW_EVERY};
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::model::ReadModel;
use super::store::SimStore;
use super::tools::{Act, LIMIT_MILLIS, Tools, class_of};
use super::view::View;
use super::world::PARTITIONS;

const LOOK_EVERY: Duration = Duration::from_millis(500);
const DECIDED_WITHIN: Duration = Duration::from_secs(5);
const AGAIN_AFTER: Duration = Duration::from_millis(400);

/// What a process's workers work with.
#[derive(Clone)]
pub(super) struct Worker {
  pub(super) store: SimStore,
  pub(super) appender: Appender,
  pub(super) tail: Arc<Tail>,
  pub(super) view: Arc<View>,
  pub(super) model: ReadModel,
  pub(super) tools: Tools,
  pub(super) ids: Arc<dyn Ids>,
  pub(super) random: Arc<Mutex<StdRng>>,
  pub(super) stop: CancellationToken,
}

/// An ask that was decided.
struct Asked {
  id: Uuid,
  sent: Instant,
  decision: Arc<Decision>,
}

/// A running execution of the worker's own.
struct Granted {
  agent: AgentId,
  partition: Partition,
  job: JobId,
  execution: i32,
}

/// The tools that the scripted model asks for in a step of a job; none: it answers.
fn script(job: JobId, step: i32) -> &'static [&'static str] {
  let turn = usize::from(job.0.as_bytes()[usize::try_from(step).unwrap_or(0) % 16]) % 16;
  match turn {
    _ if step > 2 => &[],
    0 | 1 => &["email_send"],
    2 => &["read", "read"],
    3 => &["read", "email_send"],
    4 => &["shell"],
    _ => &[],
  }
}

impl Worker {
  /// Looks for work until the process stops, `width` jobs at a time.
  #[expect(clippy::disallowed_methods, reason = "a simulated process's tasks end with its runtime")]
  pub(super) async fn run(self, width: usize) {
    let room = Arc::new(tokio::sync::Semaphore::new(width));
    while !self.stop.is_cancelled() {
      sleep(self.some_time(LOOK_EVERY)).await;
      let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
      let candidates: Vec<(AgentId, JobRow)> = self.model.store().candidates();
      if candidates.is_empty() {
        continue;
      }
      let candidates = candidates.into_iter().map(|(agent, row)| (agent, row.id)).collect();
      if let Ok(Some((agent, job))) = self.store.claim(candidates).await {
        let worker = self.clone();
        tokio::spawn(async move {
          worker.carry_out(agent, job).await;
          drop(permit);
        });
      }
    }
  }

  fn some_time(&self, most: Duration) -> Duration {
    let most = u64::try_from(most.as_millis()).unwrap_or(1).max(1);
    Duration::from_millis(self.random.lock().random_range(1..=most))
  }

  async fn carry_out(&self, agent: AgentId, job: JobId) {
    let work = async {
      let asked = self.ask(agent, ExecutionAsked { job, kind: JobKind::Reply }.into(), Some(job)).await?;
      let execution = asked.decision.events.iter().find_map(|recorded| match &recorded.event {
        Event::Execution(ExecutionEvent::ExecutionStarted(started)) => Some(started.execution),
        _ => None,
      })?;
      let granted = Granted { agent, partition: partition_of(agent, PARTITIONS), job, execution };
      let work = self.work(&granted, &asked.decision);
      tokio::select! {
        biased;
        () = self.stop.cancelled() => {
          self.ask(agent, ExecutionYieldReported { job, execution }.into(), None).await;
        }
        _ = work => {}
      }
      Some(())
    };
    tokio::select! {
      biased;
      () = self.keep_lease(job) => return,
      _ = work => {}
    }
    drop(self.store.release(job).await);
  }

  /// Returns when the lease is lost.
  async fn keep_lease(&self, job: JobId) {
    let mut kept = Instant::now();
    loop {
      sleep(RENEW_EVERY).await;
      match self.store.keep(job, None).await {
        Ok(true) => kept = Instant::now(),
        Ok(false) => return,
        Err(_) if kept.elapsed() >= LEASE => return,
        Err(_) => {}
      }
    }
  }

  /// Asks, and asks again under the same key, until it is decided; `None` when that can't be had.
  async fn ask(&self, agent: AgentId, input: Input, claimed: Option<JobId>) -> Option<Asked> {
    let key = self.ids.new_id().to_string();
    let producer = format!("worker:{}", self.store.holder().process);
    let submission = Submission {
      agent,
      input,
      producer: &producer,
      key: Some(&key),
      content: None,
      actor: "agent",
      origin: Origin::Agent,
      cause: None,
      correlation: None,
      traceparent: None,
    };
    let prepared = self.appender.prepare(submission).await.ok()?;
    if let Some(job) = claimed
      && !self.store.keep(job, Some(prepared.id)).await.unwrap_or(false)
    {
      return None;
    }
    let mut expected = self.tail.expect(agent, prepared.id);
    let sent = Instant::now();
    for _ in 0..20 {
      match self.appender.append(std::slice::from_ref(&prepared)).await {
        Ok(_) | Err(appender::Error::Append(pa_eventlog::AppendError::Unknown { .. })) => {}
        Err(_) => {
          sleep(AGAIN_AFTER).await;
          continue;
        }
      }
      if let Ok(decided) = timeout(DECIDED_WITHIN, expected.decided()).await {
        return decided.map(|decision| Asked { id: prepared.id, sent, decision });
      }
    }
    None
  }

  /// Carries a job on from where the record has it, to its end; `None` when the execution is over.
  async fn work(&self, granted: &Granted, started: &Decision) -> Option<()> {
    let Granted { agent, partition, job, execution } = *granted;
    let mut last = started.last;
    loop {
      self.view.reached(partition, last).await;
      let (reply, seen) = self.view.reply(agent, job)?;
      reply.work.running.as_ref().filter(|running| running.execution == execution)?;
      match next_call(&reply.work, job, execution) {
        Next::Call { step, index, tool } => {
          last = last.max(self.call(granted, seen, (step, index), &tool).await?);
          continue;
        }
        Next::Wait => {
          sleep(AGAIN_AFTER).await;
          continue;
        }
        Next::Model => {}
      }
      sleep(self.some_time(Duration::from_secs(2))).await;
      let asked = self.ask(agent, answer(&reply, job, execution, seen), None).await?;
      if asked.decision.events.iter().any(|recorded| matches!(recorded.event, Event::Execution(ExecutionEvent::ExecutionFinished(_)))) {
        return Some(());
      }
      last = last.max(asked.decision.last);
      sleep(AGAIN_AFTER).await;
    }
  }

  /// Asks for the permit of a call, has its effect within the permit, and reports the outcome. Answers how far to read.
  async fn call(&self, granted: &Granted, seen: i64, (step, index): (i32, i32), tool: &str) -> Option<i64> {
    let Granted { agent, partition, job, execution } = *granted;
    let (call, class) = (ids::call(job, step, index), class_of(tool));
    let act = |ask| Act { agent, partition, call, execution, class, ask };
    let time = self.some_time(Duration::from_secs(1));
    if !guards::on(Guard::EffectBeforePermit) {
      self.tools.act(act(Uuid::nil()), time).await;
    }
    let (tool, action) = (tool.to_owned(), "{}".to_owned());
    let input = CallAsked { job, execution, step, index, call, tool, class, action, limit_millis: LIMIT_MILLIS, seen };
    let asked = self.ask(agent, input.into(), None).await?;
    if !asked.decision.events.iter().any(|recorded| matches!(recorded.event, Event::Call(CallEvent::CallStarted(_)))) {
      sleep(AGAIN_AFTER).await;
      return Some(asked.decision.last);
    }
    let permitted = asked.sent.elapsed() < Duration::from_millis(PERMIT_MILLIS.unsigned_abs()) || !guards::on(Guard::PermitWindow);
    let outcome = if permitted {
      if guards::on(Guard::EffectBeforePermit) {
        self.tools.act(act(asked.id), time).await;
      }
      Outcome::Returned
    } else {
      Outcome::Failed
    };
    let input = CallOutcomeReported { job, execution, call, outcome, code: String::new(), parts: Vec::new() };
    let reported = self.ask(agent, input.into(), None).await?;
    Some(reported.decision.last)
  }
}

enum Next {
  Model,
  Call { step: i32, index: i32, tool: String },
  /// A call of an earlier execution is not settled yet.
  Wait,
}

fn next_call(work: &Work, job: JobId, execution: i32) -> Next {
  let step = work.last_step();
  let Some(tools) = work.steps.get(&step).map(|step| &step.tools) else { return Next::Model };
  for (index, tool) in (0..).zip(tools) {
    let ask = || Next::Call { step, index, tool: tool.clone() };
    let call: CallId = ids::call(job, step, index);
    match work.calls.get(&call) {
      None => return ask(),
      Some(call) if call.status == CallStatus::Started && call.class == Some(Class::Repeatable) && call.started_by.last() != Some(&execution) => return ask(),
      Some(call) if call.is_open() => return Next::Wait,
      Some(_) => {}
    }
  }
  Next::Model
}

/// What the scripted model answers next.
fn answer(reply: &Reply, job: JobId, execution: i32, seen: i64) -> Input {
  let step = match reply.work.steps.last_key_value() {
    // A final answer that came too early is given again.
    Some((last, step)) if step.tools.is_empty() => *last,
    last => last.map_or(1, |(last, _)| last + 1),
  };
  let tools = script(job, step);
  if tools.is_empty() {
    let text = format!("reply of {execution}");
    return FinishAsked { job, execution, step, seen, model_call: model_call(), text, incomplete: false }.into();
  }
  let call = |tool: &&str| ToolCall { provider_id: format!("call-{tool}"), tool: (*tool).to_owned(), arguments: "{}".to_owned() };
  StepReported { job, execution, step, model_call: model_call(), text: String::new(), calls: tools.iter().map(call).collect() }.into()
}
