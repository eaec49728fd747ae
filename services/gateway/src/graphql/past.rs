//! A conversation as of a position or an instant: which event that is, and the events before it, read from the log.
//!
//! Invariants
//! - Nothing is written, and nothing of another agent is opened: the places of events come from the agent's own lines of the audit, and each record must say that it is that
//!   agent's event with that ordinal.
//! - What can't be told is an error with a code, never a shorter page: `AHEAD_OF_HISTORY`, `HISTORY_TOO_LONG`, `HISTORY_UNREADABLE`.

use std::sync::Arc;

use async_graphql::{Error as Refusal, OneofObject, Result};
use async_trait::async_trait;
use pa_domain::{AgentId, ConversationId};
use pa_eventlog::opener::{self, Opened};
use pa_eventlog::{LogError, Position as LogPosition, Stored, Stream};
use pa_projections::audit::{self, Place};
use pa_projections::conversation::past::{self, EVENTS_MAX, Each, Events, Past, Wanted};
use pa_projections::conversation::{Conversation, Page};
use tokio::time::Instant;

use super::env::{Env, Failure, refused, unavailable};
use super::types::scalars::{DateTime, Position};
use crate::edge::Edge;
use crate::limits::{DECISION_WITHIN, PAST_READ_GAP, PAST_READ_RECORDS};

/// When something is shown as it was: at a position of the agent's log, or at an instant.
#[derive(Clone, Debug, OneofObject)]
pub(crate) enum AsOf {
  Position(Position),
  Time(DateTime),
}

/// The event up to which a conversation is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upto(i64);

/// An event that can't be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
  #[error(transparent)]
  Model(#[from] pa_projections::Error),
  #[error(transparent)]
  Log(#[from] LogError),
  #[error(transparent)]
  Open(#[from] opener::Error),
  #[error("event {ordinal} is not where the read model says")]
  Missing { ordinal: i64 },
  #[error("event {ordinal} can't be read")]
  Unreadable { ordinal: i64 },
}

impl Failure for Error {
  fn passes(&self) -> bool {
    match self {
      Self::Model(error) => error.passes(),
      Self::Log(error) => error.passes(),
      Self::Open(error) => matches!(error, opener::Error::Keys(_)),
      Self::Missing { .. } | Self::Unreadable { .. } => false,
    }
  }

  fn lacks_key(&self) -> bool {
    matches!(self, Self::Open(opener::Error::MissingKey { .. }))
  }
}

/// The event that is meant. A decision counts whole, as it does for every reader.
pub(crate) async fn upto(env: &Env, as_of: &AsOf) -> Result<Upto> {
  let (edge, agent) = (&env.edge, env.viewer.account);
  let ordinal = match as_of {
    AsOf::Position(position) if position.ordinal == 0 => 0,
    AsOf::Position(position) => {
      let within = Instant::now() + DECISION_WITHIN;
      let reached = edge.live.wait_for(&edge.reads, agent, position.ordinal, within - Instant::now()).await.map_err(|error| env.failed(error))?;
      let whole = audit::whole_decision(&edge.reads, agent, position.ordinal).await.map_err(|error| env.failed(error))?;
      whole
        .filter(|_| reached)
        .ok_or_else(|| refused("AHEAD_OF_HISTORY", format!("the history of this agent does not reach position {} yet", position.ordinal)))?
    }
    AsOf::Time(DateTime(at)) => {
      if *at > edge.clock.now() {
        return Err(refused("AHEAD_OF_HISTORY", "that instant lies in the future".to_owned()));
      }
      audit::last_until(&edge.reads, agent, *at).await.map_err(|error| env.failed(error))?
    }
  };
  Ok(Upto(ordinal))
}

/// One conversation as it was; without an id the main one.
pub(crate) async fn conversation(env: &Env, id: Option<ConversationId>, upto: Upto) -> Result<Option<Conversation>> {
  let _place = env.edge.past_reads.acquire().await.map_err(|_| unavailable("the process is stopping"))?;
  let agent = env.viewer.account;
  past::one(&env.edge.reads, &OfAgent { edge: &env.edge, agent }, agent, id, upto.0).await.map_err(|error| told(env, error))
}

/// A page of a conversation as it was.
pub(crate) async fn page(env: &Env, conversation: ConversationId, upto: Upto, last: u32, before: Option<i64>) -> Result<Page> {
  let _place = env.edge.past_reads.acquire().await.map_err(|_| unavailable("the process is stopping"))?;
  let (agent, wanted) = (env.viewer.account, Wanted { conversation, upto: upto.0, last, before });
  let page = past::page(&env.edge.reads, &OfAgent { edge: &env.edge, agent }, agent, wanted).await.map_err(|error| told(env, error))?;
  match page {
    Past::Page(page) => Ok(page),
    Past::TooFar => Err(refused(
      "HISTORY_TOO_LONG",
      format!("these messages lie more than {EVENTS_MAX} events before what asOf names: ask for fewer, or as of a position nearer to them"),
    )),
  }
}

fn told(env: &Env, error: Error) -> Refusal {
  if let Error::Unreadable { ordinal } = error {
    return refused("HISTORY_UNREADABLE", format!("event {ordinal} of this agent can't be read, so that what follows it can't be shown as it was"));
  }
  env.failed(error)
}

/// One agent's events in the log.
struct OfAgent<'a> {
  edge: &'a Edge,
  agent: AgentId,
}

#[async_trait]
impl Events for OfAgent<'_> {
  type Error = Error;

  async fn read(&self, places: &[Place], each: &mut Each<'_>) -> Result<(), Error> {
    let mut batch: Arc<[Arc<Stored>]> = Arc::new([]);
    for (number, place) in places.iter().enumerate() {
      let found = |batch: &[Arc<Stored>]| batch.binary_search_by_key(&place.position, |stored| stored.position).ok().map(|at| Arc::clone(&batch[at]));
      let stored = if let Some(stored) = found(&batch) {
        stored
      } else {
        batch = self.edge.log.read(Stream::Events, place.partition, place.position, run(&places[number..])).await?;
        found(&batch).ok_or(Error::Missing { ordinal: place.ordinal })?
      };
      match self.edge.opener.event(&stored).await? {
        Opened::Event(recorded) if recorded.core().agent == self.agent && recorded.core().ordinal == place.ordinal => each(recorded.core(), &recorded.event),
        Opened::Event(_) | Opened::Input(_) => return Err(Error::Missing { ordinal: place.ordinal }),
        Opened::Erased | Opened::Unreadable(_) => return Err(Error::Unreadable { ordinal: place.ordinal }),
      }
    }
    Ok(())
  }
}

/// How many records are read at once from the first of these places on: as long as the next one stands near, what lies between is read along.
fn run(places: &[Place]) -> usize {
  let Some(first) = places.first() else { return 0 };
  let mut end: LogPosition = first.position;
  for place in &places[1..] {
    let near = place.partition == first.partition && (end..=end + PAST_READ_GAP).contains(&place.position);
    if !near || place.position - first.position >= PAST_READ_RECORDS {
      break;
    }
    end = place.position;
  }
  usize::try_from(end - first.position + 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
  use super::*;

  fn places(positions: &[i64]) -> Vec<Place> {
    (1..).zip(positions).map(|(ordinal, position)| Place { ordinal, partition: 3, position: *position }).collect()
  }

  #[test]
  fn events_that_stand_near_each_other_are_read_at_once() {
    assert_eq!(run(&places(&[5])), 1);
    assert_eq!(run(&places(&[5, 6, 9])), 5);
    assert_eq!(run(&places(&[5, 6, 200])), 2);
    assert_eq!(run(&places(&(0..1_000).collect::<Vec<_>>())), 256);
    let mut elsewhere = places(&[5, 6]);
    elsewhere[1].partition = 4;
    assert_eq!(run(&elsewhere), 1);
  }
}
