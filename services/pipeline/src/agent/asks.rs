//! Appending a worker's asks and reports, and reading back what was decided on them.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::log::{self, Settlement};
use pa_domain::{AgentId, Event, Input, NodeId, Origin};
use pa_eventlog::appender::{self, Appender, Prepared, Submission};
use pa_eventlog::reader::Decision;
use pa_eventlog::tail::{Expected, Tail};
use pa_store::Disposition;
use pa_store::clock::Ids;
use pa_store::lease::Holder;
use tokio::time::sleep;
use uuid::Uuid;

/// The first pause between two tries of an append; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Who acts in an ask of the agent's own work.
const AGENT: &str = "agent";

/// The chain of causes that an input belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
  pub(super) cause: Option<Uuid>,
  pub(super) correlation: Option<Uuid>,
}

/// Appends a process's asks and reports.
pub(super) struct Asks {
  appender: Appender,
  tail: Arc<Tail>,
  ids: Arc<dyn Ids>,
  /// Who makes the keys.
  producer: String,
  /// Who acts in what an observer reports.
  node: NodeId,
}

/// An ask that is in the log or on its way, and will be decided.
pub(super) struct Sent(Expected);

impl Asks {
  pub(super) fn new(appender: Appender, tail: Arc<Tail>, ids: Arc<dyn Ids>, holder: Holder) -> Self {
    Self { appender, tail, ids, producer: format!("worker:{}", holder.process), node: holder.node }
  }

  /// Ids for asks that are named before they are made.
  pub(super) fn new_ids(&self, count: usize) -> Vec<Uuid> {
    (0..count).map(|_| self.ids.new_id()).collect()
  }

  /// Makes an ask with a fresh key, which its retries keep.
  pub(super) async fn prepare(&self, agent: AgentId, chain: Chain, input: Input) -> Result<Prepared, appender::Error> {
    self.prepare_as(self.ids.new_id(), agent, chain, input).await
  }

  /// The same, under an id that was made before.
  pub(super) async fn prepare_as(&self, id: Uuid, agent: AgentId, chain: Chain, input: Input) -> Result<Prepared, appender::Error> {
    let key = self.ids.new_id().to_string();
    let submission = Submission {
      agent,
      input,
      producer: &self.producer,
      key: Some(&key),
      content: None,
      actor: AGENT,
      origin: Origin::Agent,
      cause: chain.cause,
      correlation: chain.correlation,
      traceparent: None,
    };
    self.appender.prepare_as(id, submission).await
  }

  /// Appends what was prepared, all of one agent, and goes on until it certainly stands; the decisions are expected from before the append on. The same records
  /// again are repeats, so an unknown fate is no reason to stop.
  pub(super) async fn send(&self, prepared: Vec<Prepared>) -> Result<Vec<Sent>, appender::Error> {
    let sent = prepared.iter().map(|ask| Sent(self.tail.expect(ask.agent, ask.id))).collect();
    self.append(&prepared).await?;
    Ok(sent)
  }

  /// Prepares, appends and waits for the decision; `None` when it can't be read.
  pub(super) async fn ask(&self, agent: AgentId, chain: Chain, input: impl Into<Input>) -> Result<Option<Arc<Decision>>, appender::Error> {
    let prepared = self.prepare(agent, chain, input.into()).await?;
    let sent = self.send(vec![prepared]).await?;
    Ok(match sent.into_iter().next() {
      Some(sent) => sent.decided().await,
      None => None,
    })
  }

  /// Prepares and appends, without waiting for the decision.
  pub(super) async fn tell(&self, agent: AgentId, chain: Chain, input: impl Into<Input>) -> Result<(), appender::Error> {
    let prepared = self.prepare(agent, chain, input.into()).await?;
    self.append(&[prepared]).await
  }

  /// Appends what an observer saw, under a key that names it, so that seeing it again reports nothing again.
  pub(super) async fn report(&self, agent: AgentId, key: &str, input: impl Into<Input>) -> Result<(), appender::Error> {
    let actor = format!("node:{}", self.node);
    let prepared = self
      .appender
      .prepare(Submission {
        agent,
        input: input.into(),
        producer: &self.producer,
        key: Some(key),
        content: None,
        actor: &actor,
        origin: Origin::Platform,
        cause: None,
        correlation: None,
        traceparent: None,
      })
      .await?;
    self.append(&[prepared]).await
  }

  async fn append(&self, prepared: &[Prepared]) -> Result<(), appender::Error> {
    let mut pause = PAUSE;
    loop {
      match self.appender.append(prepared).await {
        Ok(_) => return Ok(()),
        Err(error) if error.disposition() == Disposition::Fail => return Err(error),
        Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "an ask is appended again"),
      }
      sleep(pause).await;
      pause = (pause * 2).min(PAUSE_MAX);
    }
  }
}

impl Sent {
  /// Waits for the decision; `None` when it can't be read.
  pub(super) async fn decided(mut self) -> Option<Arc<Decision>> {
    self.0.decided().await
  }
}

/// The reason of a decision that led to nothing; empty when it led to something. A held ask counts as refused: this process won't wait for the release.
pub(super) fn refusal(decision: &Decision) -> Option<String> {
  decision.events.iter().find_map(|recorded| match &recorded.event {
    Event::Log(log::Event::InputSettled(settled)) => Some(match settled.outcome {
      Settlement::Refused | Settlement::NoChange => settled.reason.clone(),
      Settlement::Repeated => "REPEATED".to_owned(),
    }),
    Event::Log(log::Event::InputHeld(_) | log::Event::InputQuarantined(_)) => Some("HELD".to_owned()),
    Event::Log(_)
    | Event::Account(_)
    | Event::Agent(_)
    | Event::Call(_)
    | Event::Conversation(_)
    | Event::Execution(_)
    | Event::Settings(_)
    | Event::Task(_)
    | Event::Timer(_) => None,
  })
}
