//! Appends inputs: the way in for everything that wants something or reports something.
//!
//! An input is prepared first, so that its id can be registered with [`crate::tail`] before it is in the log; a prepared input may be appended again after a refusal,
//! and after an unknown fate too: the same key makes it a repeat. Appends are durable when they return.

use std::sync::Arc;

use pa_domain::meta::Kind;
use pa_domain::{AgentId, Input, Meta, Origin};
use pa_store::clock::{Clock, Ids};
use pa_store::keys::AgentKeys;
use uuid::Uuid;

use crate::compose::{self, Composer};
use crate::meta::partition_of;
use crate::port::{self, EventLog, Identity, LogError};
use crate::record::{Partition, Position, Record, Stream};
use crate::seal::{KeyState, Keys, KeysError};

/// An input that is to be appended.
#[derive(Clone, Debug)]
pub struct Submission<'a> {
  pub agent: AgentId,
  pub input: Input,
  /// Who made the key: a connection, an account, a worker.
  pub producer: &'a str,
  /// The idempotency key; `None`: every append is a new input.
  pub key: Option<&'a str>,
  /// The business fields as bytes, for a client's key: the same key with other fields is a conflict. `None`: the first wins and content is not compared.
  pub content: Option<&'a [u8]>,
  /// Who acts.
  pub actor: &'a str,
  pub origin: Origin,
  /// The record that led to this input.
  pub cause: Option<Uuid>,
  /// The first input of the chain of causes; `None`: this one.
  pub correlation: Option<Uuid>,
  /// The W3C trace context of the caller.
  pub traceparent: Option<Arc<str>>,
}

/// An input that is ready to be appended.
#[derive(Clone, Debug)]
pub struct Prepared {
  pub id: Uuid,
  pub agent: AgentId,
  pub partition: Partition,
  record: Record,
}

/// Where an input stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
  pub id: Uuid,
  pub partition: Partition,
  pub position: Position,
}

/// An input that was not appended, or whose fate is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  #[error(transparent)]
  Record(#[from] compose::Error),
  #[error(transparent)]
  Keys(#[from] KeysError),
  #[error("agent {agent} has no key: it does not exist")]
  NoKey { agent: AgentId },
  #[error("agent {agent} was erased")]
  Erased { agent: AgentId },
  #[error("inputs of several agents in one append")]
  SeveralAgents,
  #[error(transparent)]
  Append(#[from] port::AppendError),
}

impl Error {
  /// What the caller may do about it.
  pub fn disposition(&self) -> pa_store::Disposition {
    match self {
      Self::Keys(error) => error.source.disposition(),
      Self::Append(port::AppendError::Refused { .. }) => pa_store::Disposition::Retry,
      Self::Append(port::AppendError::Unknown { .. }) => pa_store::Disposition::Unknown,
      Self::Record(_) | Self::NoKey { .. } | Self::Erased { .. } | Self::SeveralAgents => pa_store::Disposition::Fail,
    }
  }
}

/// Appends inputs to one log.
#[derive(Clone)]
pub struct Appender {
  log: Arc<dyn EventLog>,
  keys: Arc<dyn Keys>,
  clock: Arc<dyn Clock>,
  ids: Arc<dyn Ids>,
  composer: Composer,
  partitions: Partition,
}

impl Appender {
  /// An appender for `log`; `source` is the `ce_source` of its records, such as `pa/gateway`.
  pub fn new(log: Arc<dyn EventLog>, identity: &Identity, keys: Arc<dyn Keys>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>, source: &str) -> Self {
    Self { log, keys, clock, ids, composer: Composer::new(identity.sealed, source), partitions: identity.partitions }
  }

  /// An appender for `log` after asking it for its identity.
  ///
  /// # Errors
  /// The log can't be reached or is not usable.
  pub async fn connect(log: Arc<dyn EventLog>, keys: Arc<dyn Keys>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>, source: &str) -> Result<Self, LogError> {
    let identity = log.identity().await?;
    Ok(Self::new(log, &identity, keys, clock, ids, source))
  }

  /// Makes an input's record; nothing is appended yet.
  ///
  /// # Errors
  /// The agent has no key or was erased, or the input is too large.
  pub async fn prepare(&self, submission: Submission<'_>) -> Result<Prepared, Error> {
    self.prepare_as(self.ids.new_id(), submission).await
  }

  /// Makes an input's record under an id that was made before: for whoever had to name the input first.
  ///
  /// # Errors
  /// As [`Self::prepare`].
  pub async fn prepare_as(&self, id: Uuid, submission: Submission<'_>) -> Result<Prepared, Error> {
    let agent = submission.agent;
    let keys = self.agent_keys(agent).await?;
    let core = Meta {
      id,
      kind: Kind::Input,
      agent,
      ordinal: 0,
      at: self.clock.now(),
      cause: submission.cause.unwrap_or_default(),
      correlation: submission.correlation.unwrap_or(id),
      actor: submission.actor.to_owned(),
      origin: submission.origin,
      producer: if submission.key.is_some() { submission.producer.to_owned() } else { String::new() },
      key: submission.key.map(|key| key_hash(&keys, key, submission.content)).unwrap_or_default(),
      input: 0,
      held: false,
      part: 0,
    };
    let record = self.composer.input(&keys, core, &submission.input, submission.traceparent)?;
    Ok(Prepared { id, agent, partition: partition_of(agent, self.partitions), record })
  }

  /// Appends prepared inputs of one agent together.
  ///
  /// # Errors
  /// The log refused them, or does not know.
  pub async fn append(&self, prepared: &[Prepared]) -> Result<Vec<Submitted>, Error> {
    let Some(first) = prepared.first() else { return Ok(Vec::new()) };
    if prepared.iter().any(|other| other.agent != first.agent) {
      return Err(Error::SeveralAgents);
    }
    let records = prepared.iter().map(|input| input.record.clone()).collect();
    let positions = self.log.append(Stream::Inputs, first.partition, records).await?;
    Ok(prepared.iter().zip(positions).map(|(input, position)| Submitted { id: input.id, partition: input.partition, position }).collect())
  }

  /// Appends one input.
  ///
  /// # Errors
  /// As [`Self::prepare`] and [`Self::append`].
  pub async fn submit(&self, submission: Submission<'_>) -> Result<Submitted, Error> {
    let prepared = self.prepare(submission).await?;
    let Prepared { id, partition, record, .. } = prepared;
    let positions = self.log.append(Stream::Inputs, partition, vec![record]).await?;
    let position = *positions.first().expect("an append returns one position a record");
    Ok(Submitted { id, partition, position })
  }

  /// Appends several inputs of one agent together.
  ///
  /// # Errors
  /// As [`Self::prepare`] and [`Self::append`].
  pub async fn submit_many(&self, submissions: Vec<Submission<'_>>) -> Result<Vec<Submitted>, Error> {
    let mut prepared = Vec::with_capacity(submissions.len());
    for submission in submissions {
      prepared.push(self.prepare(submission).await?);
    }
    self.append(&prepared).await
  }

  async fn agent_keys(&self, agent: AgentId) -> Result<Arc<AgentKeys>, Error> {
    if let Some(keys) = self.keys.cached(agent) {
      return Ok(keys);
    }
    match self.keys.keys(agent).await? {
      KeyState::Ready(keys) => Ok(keys),
      KeyState::Erased => Err(Error::Erased { agent }),
      KeyState::Missing => Err(Error::NoKey { agent }),
    }
  }
}

/// 32 bytes for the key; for a client's key 32 more for the business fields.
fn key_hash(keys: &AgentKeys, key: &str, content: Option<&[u8]>) -> Vec<u8> {
  let mut hash = keys.hash_key(key.as_bytes()).to_vec();
  if let Some(content) = content {
    hash.extend_from_slice(&keys.hash_key(&[b"content\0", content].concat()));
  }
  hash
}

#[cfg(test)]
mod tests;
