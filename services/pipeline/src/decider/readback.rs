//! What follows once a decision was read back: inputs elsewhere, erased keys.

use std::sync::Arc;

use pa_domain::meta::Origin;
use pa_domain::{AgentId, Event, agent, log, route};
use pa_eventlog::appender::Submission;
use pa_eventlog::reader::Decision;
use pa_eventlog::seal::KeyState;

use super::End;
use super::term::{Term, part};

/// The producer of routed inputs.
const PRODUCER: &str = "decider";

impl Term {
  /// Notes what a decision leads to elsewhere; [`Self::carry_on`] does it.
  pub(super) fn read_back(&mut self, decision: &Arc<Decision>) {
    let mut leads_on = false;
    for recorded in decision.events.iter() {
      match &recorded.event {
        Event::Log(log::Event::InputHeld(_) | log::Event::InputQuarantined(_)) => {
          self.agents.held_at(decision.agent, recorded.core().ordinal, recorded.position);
        }
        Event::Agent(agent::Event::AgentErased(_)) => leads_on = true,
        event => leads_on |= route(recorded.core(), event).is_some(),
      }
    }
    if leads_on {
      self.to_route.push(Arc::clone(decision));
    }
  }

  /// Appends what `route` names, and erases. After a crash all of it since the checkpoint is done again: the inputs are repeats then, and an erasure changes nothing.
  pub(super) async fn carry_on(&mut self) -> Result<(), End> {
    while let Some(decision) = self.to_route.first().cloned() {
      for recorded in decision.events.iter() {
        let meta = recorded.core();
        if let Event::Agent(agent::Event::AgentErased(_)) = recorded.event {
          self.erase(meta.agent).await?;
        }
        let Some(routed) = route(meta, &recorded.event) else { continue };
        // It was routed before its agent was erased: when the state is built anew there is nothing left to ask for.
        if matches!(self.parts.keys.keys(routed.agent).await.map_err(|error| End::Away(error.into()))?, KeyState::Erased) {
          continue;
        }
        self.parts.key_maker.make(routed.agent).await.map_err(End::Away)?;
        let key = meta.id.to_string();
        let submission = Submission {
          agent: routed.agent,
          input: routed.input,
          producer: PRODUCER,
          key: Some(&key),
          content: None,
          actor: "platform",
          origin: Origin::Platform,
          cause: Some(meta.id),
          correlation: Some(meta.correlation),
          traceparent: None,
        };
        self.parts.appender.submit(submission).await.map_err(|error| End::Away(error.into()))?;
      }
      self.to_route.remove(0);
    }
    Ok(())
  }

  async fn erase(&mut self, agent: AgentId) -> Result<(), End> {
    self.parts.store.forget_agent(part(self.partition), agent).await?;
    self.parts.eraser.erase(agent).await.map_err(End::Away)?;
    tracing::info!(agent.id = %agent, "an agent was erased");
    Ok(())
  }
}
