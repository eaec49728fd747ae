//! Makes the records of the log: inputs, decisions, announcements.
//!
//! A decision's records are chained: each event's `prevhash` is the chain's hash after the event before it. Whoever composes a decision hands in the agent's last
//! ordinal and hash, and gets the next ones back.

use std::sync::Arc;

use pa_domain::ids::derived;
use pa_domain::log::{EpochAnnounced, Event as LogEvent};
use pa_domain::meta::Kind;
use pa_domain::{AgentId, Event, Input, Meta, Origin, Timestamp};
use pa_store::keys::AgentKeys;
use uuid::Uuid;

use crate::codec::{self, Codec, Content};
use crate::meta::{self, NO_HASH, PaMeta, Place, chain};
use crate::port::{INPUT_BYTES_MAX, RECORD_BYTES_MAX};
use crate::record::{Position, Record};
use crate::seal::{self, NONCE_BYTES, UNSEALED};

/// A record that can't be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  #[error(transparent)]
  Body(#[from] codec::Error),
  #[error(transparent)]
  Meta(#[from] meta::Error),
  #[error("a {type_name} of {bytes} bytes is larger than {bytes_max}")]
  TooLarge { type_name: String, bytes: usize, bytes_max: usize },
}

/// A decision that is to be written.
pub struct Draft<'a> {
  /// The input's metadata: who asked, under which key.
  pub input: &'a Meta,
  /// The input's position.
  pub position: Position,
  pub held: bool,
  pub at: Timestamp,
  pub epoch: i64,
  /// The seq of the first record.
  pub seq: i64,
  /// The agent's last ordinal before.
  pub ordinal: i64,
  /// The chain's hash after the agent's last event; [`NO_HASH`] before its first.
  pub chain: [u8; 32],
  /// The index of the first event's id among the ids derived from the input: 0, unless an earlier decision on the same input (that held it) used some.
  pub first_index: u32,
  pub events: &'a [Event],
}

/// A decision's records.
#[derive(Debug)]
pub struct Composed {
  pub records: Vec<Record>,
  /// The metadata of each record.
  pub metas: Vec<Arc<PaMeta>>,
  /// The chain's hash after the last event.
  pub chain: [u8; 32],
}

/// Makes records for one log.
#[derive(Clone)]
pub struct Composer {
  codec: &'static Codec,
  sealed: bool,
  source: Arc<str>,
}

impl Composer {
  /// A composer for a log whose values are `sealed` or not; `source` is the `ce_source` of its records, such as `pa/gateway`.
  pub fn new(sealed: bool, source: &str) -> Self {
    Self { codec: Codec::of_product(), sealed, source: source.into() }
  }

  /// Makes an input's record from its metadata.
  ///
  /// # Errors
  /// The input does not fit its schema, a name is too long, or the record is larger than [`INPUT_BYTES_MAX`].
  pub fn input(&self, keys: &AgentKeys, core: Meta, input: &Input, traceparent: Option<Arc<str>>) -> Result<Record, Error> {
    let meta = PaMeta::new(core, NO_HASH, Place::of_input(self.keyid(keys)));
    self.record(Some(keys), &meta, input, traceparent, INPUT_BYTES_MAX)
  }

  /// Makes a decision's records. Without `keys` the agent was erased: what is decided about it has no content, is not sealed, and readers skip it.
  ///
  /// # Errors
  /// An event does not fit its schema, or a record is larger than [`RECORD_BYTES_MAX`].
  pub fn decision(&self, keys: Option<&AgentKeys>, draft: &Draft<'_>, traceparent: Option<&Arc<str>>) -> Result<Composed, Error> {
    let mut composed = Composed { records: Vec::with_capacity(draft.events.len()), metas: Vec::with_capacity(draft.events.len()), chain: draft.chain };
    let parts = i32::try_from(draft.events.len()).expect("a decision has at most 64 events");
    for (index, event) in (0_i32..).zip(draft.events) {
      let place = Place {
        input: draft.position,
        held: draft.held,
        part: index + 1,
        parts,
        epoch: draft.epoch,
        seq: draft.seq + i64::from(index),
        keyid: keys.map_or(UNSEALED, |keys| self.keyid(keys)),
      };
      let meta = PaMeta::new(event_core(draft, index, event), composed.chain, place);
      let record = self.record(keys, &meta, event, traceparent.cloned(), RECORD_BYTES_MAX)?;
      composed.chain = chain(&meta, &record.type_name, &record.value);
      composed.records.push(record);
      composed.metas.push(Arc::new(meta));
    }
    Ok(composed)
  }

  /// Makes an announcement's record with its fresh random `id`.
  ///
  /// # Errors
  /// The announcement does not fit its schema.
  pub fn announcement(&self, id: Uuid, epoch: i64, at: Timestamp, announced: EpochAnnounced) -> Result<Record, Error> {
    let core = Meta {
      id,
      kind: Kind::Partition,
      agent: AgentId(Uuid::nil()),
      ordinal: 0,
      at,
      cause: Uuid::nil(),
      correlation: id,
      actor: "platform".to_owned(),
      origin: Origin::Platform,
      producer: String::new(),
      key: Vec::new(),
      input: 0,
      held: false,
      part: 0,
    };
    let meta = PaMeta::new(core, NO_HASH, Place::of_announcement(epoch));
    self.record(None, &meta, &Event::Log(LogEvent::EpochAnnounced(announced)), None, RECORD_BYTES_MAX)
  }

  fn keyid(&self, keys: &AgentKeys) -> i32 {
    if self.sealed { keys.id() } else { UNSEALED }
  }

  fn record<C: Content>(&self, keys: Option<&AgentKeys>, meta: &PaMeta, content: &C, traceparent: Option<Arc<str>>, bytes_max: usize) -> Result<Record, Error> {
    let keys = keys.filter(|_| self.sealed);
    let encoded = self.codec.encode(content, if keys.is_some() { NONCE_BYTES } else { 0 })?;
    let type_name = Arc::clone(&encoded.type_name);
    let value = match keys {
      Some(keys) => seal::seal(keys, &meta.core, encoded),
      None => encoded.bytes,
    };
    let record = Record { id: meta.core.id, type_name, source: Arc::clone(&self.source), traceparent, meta: meta::encode(meta)?, value: value.into() };
    let bytes = record.size_bytes();
    if bytes > bytes_max {
      return Err(Error::TooLarge { type_name: record.type_name.to_string(), bytes, bytes_max });
    }
    Ok(record)
  }
}

fn event_core(draft: &Draft<'_>, index: i32, event: &Event) -> Meta {
  let input = draft.input;
  Meta {
    id: derived(input.id, draft.first_index + index.unsigned_abs()),
    kind: Kind::Event,
    agent: input.agent,
    ordinal: draft.ordinal + 1 + i64::from(index),
    at: draft.at,
    cause: input.id,
    correlation: input.correlation,
    actor: input.actor.clone(),
    origin: pa_domain::origin_of(input, event),
    producer: input.producer.clone(),
    key: input.key.clone(),
    input: draft.position,
    held: draft.held,
    part: index + 1,
  }
}
