//! Opens stored records: metadata, key, body. Each record is opened once a process; what it gave is kept beside it and shared by all readers.
//!
//! What stops a reader is an error: an unknown type or schema, a key that is missing without an erasure. What concerns one agent is an answer: it is erased, or this
//! record of it can't be read.

use std::borrow::Cow;
use std::sync::Arc;

use pa_domain::agent::Event as AgentEvent;
use pa_domain::log::{EpochAnnounced, Event as LogEvent, HeldInput};
use pa_domain::{AgentId, Event, Input, Meta};
use pa_store::keys::AgentKeys;
use uuid::Uuid;

use crate::codec::{self, Codec, Content, HEADER_BYTES, Header};
use crate::meta::{self, PaMeta};
use crate::record::{Position, Record, Stored};
use crate::seal::{self, KeyState, Keys, KeysError, UNSEALED};

/// An event with its metadata, at its position.
#[derive(Debug)]
pub struct Recorded {
  pub position: Position,
  pub meta: Arc<PaMeta>,
  pub event: Event,
}

impl Recorded {
  /// The metadata that rules and folds read.
  pub fn core(&self) -> &Meta {
    &self.meta.core
  }
}

/// An input with its metadata, at its position.
#[derive(Debug)]
pub struct RecordedInput {
  pub position: Position,
  pub meta: Arc<PaMeta>,
  pub input: Input,
}

impl RecordedInput {
  /// The metadata that rules read.
  pub fn core(&self) -> &Meta {
    &self.meta.core
  }
}

/// What a record turned out to hold; cheap to clone.
#[derive(Clone, Debug)]
pub enum Opened {
  Event(Arc<Recorded>),
  Input(Arc<RecordedInput>),
  /// The agent is erased: skip the record.
  Erased,
  /// A record of a known type that can't be opened or decoded although the key is there.
  Unreadable(Arc<str>),
}

/// Opening failed in a way that stops a reader.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  /// The database can't be reached now; try again.
  #[error(transparent)]
  Keys(#[from] KeysError),
  #[error("agent {agent} has no key {keyid}, and was not erased (record {id}): restore the database's backup")]
  MissingKey { agent: AgentId, keyid: i32, id: Uuid },
  #[error("record {id} can't be read by this binary")]
  Newer {
    id: Uuid,
    #[source]
    source: codec::Error,
  },
  #[error(transparent)]
  Meta(#[from] meta::Error),
}

/// Opens records with the product's schemas and the agents' keys.
pub struct Opener {
  codec: &'static Codec,
  keys: Arc<dyn Keys>,
  sealed: bool,
}

impl Opener {
  /// An opener for a log whose values are `sealed` or not.
  pub fn new(keys: Arc<dyn Keys>, sealed: bool) -> Self {
    Self { codec: Codec::of_product(), keys, sealed }
  }

  /// Opens a record of `pa.events`.
  ///
  /// # Errors
  /// Something that must stop the reader, or keys that can't be looked up now.
  pub async fn event(&self, stored: &Stored) -> Result<Opened, Error> {
    let opened = self.open(stored, |position, meta, event| Opened::Event(Arc::new(Recorded { position, meta, event }))).await?;
    if let Opened::Event(recorded) = &opened
      && matches!(recorded.event, Event::Agent(AgentEvent::AgentErased(_)))
    {
      self.keys.forget(recorded.core().agent);
    }
    Ok(opened)
  }

  /// Opens a record of `pa.inputs`.
  ///
  /// # Errors
  /// Something that must stop the reader, or keys that can't be looked up now.
  pub async fn input(&self, stored: &Stored) -> Result<Opened, Error> {
    self.open(stored, |position, meta, input| Opened::Input(Arc::new(RecordedInput { position, meta, input }))).await
  }

  /// Opens an input that was held behind a quarantine.
  ///
  /// # Errors
  /// As [`Self::input`].
  pub async fn held(&self, held: &HeldInput) -> Result<Opened, Error> {
    self.input(&Self::stored_of(held)).await
  }

  /// A held input as it stood in the input log.
  pub fn stored_of(held: &HeldInput) -> Stored {
    let record = Record {
      id: held.id.0,
      type_name: held.type_name.as_str().into(),
      source: "".into(),
      traceparent: None,
      meta: held.meta.clone().into(),
      value: held.value.clone().into(),
    };
    Stored::new(held.position, record)
  }

  /// Opens an announcement; it is about the partition, so nothing of it is sealed.
  ///
  /// # Errors
  /// The announcement was written by a newer binary, or is damaged: both stop the reader.
  pub fn announcement(&self, stored: &Stored) -> Result<EpochAnnounced, Error> {
    let record = &stored.record;
    let newer = |source| Error::Newer { id: record.id, source };
    let (header, body) = split(record).map_err(newer)?;
    match self.codec.decode::<Event>(&record.type_name, header, body).map_err(newer)? {
      Event::Log(LogEvent::EpochAnnounced(announced)) => Ok(announced),
      other => Err(newer(codec::Error::UnknownType { type_name: other.versioned_type().to_owned() })),
    }
  }

  async fn open<C: Content>(&self, stored: &Stored, kept: impl FnOnce(Position, Arc<PaMeta>, C) -> Opened) -> Result<Opened, Error> {
    if let Some(opened) = stored.opened.get() {
      return Ok(opened.clone());
    }
    let meta = stored.meta()?;
    let record = &stored.record;
    let unsealing = self.unsealing(record, meta).await?;
    if matches!(unsealing, Unsealing::Erased) {
      return Ok(Opened::Erased);
    }
    // A type of a newer binary is told before anything is said about its seal.
    let decoded = split(record).and_then(|(header, body)| {
      let version = self.codec.writer(&record.type_name, header)?;
      match unsealing.body(record, meta, body) {
        Ok(body) => Codec::decode_as::<C>(version, &body),
        Err(why) => Err(codec::Error::Decode { type_name: record.type_name.to_string(), source: why.into() }),
      }
    });
    match decoded {
      Ok(content) => Ok(stored.opened.get_or_init(|| kept(stored.position, Arc::clone(meta), content)).clone()),
      Err(source) if source.stops_partition() => Err(Error::Newer { id: record.id, source }),
      Err(error) => Ok(Opened::Unreadable(chain(&error).into())),
    }
  }

  async fn unsealing(&self, record: &Record, meta: &PaMeta) -> Result<Unsealing, Error> {
    let keyid = meta.place.keyid;
    if meta.is_about_partition() {
      return Ok(Unsealing::Clear);
    }
    match self.keys(meta.core.agent).await? {
      KeyState::Erased => Ok(Unsealing::Erased),
      _ if keyid == UNSEALED && self.sealed => Ok(Unsealing::Suspect),
      _ if keyid == UNSEALED => Ok(Unsealing::Clear),
      KeyState::Ready(keys) if keys.id() == keyid => Ok(Unsealing::With(keys)),
      KeyState::Ready(_) | KeyState::Missing => Err(Error::MissingKey { agent: meta.core.agent, keyid, id: record.id }),
    }
  }

  async fn keys(&self, agent: AgentId) -> Result<KeyState, KeysError> {
    match self.keys.cached(agent) {
      Some(keys) => Ok(KeyState::Ready(keys)),
      None => self.keys.keys(agent).await,
    }
  }
}

/// How a record's body is got at.
enum Unsealing {
  Clear,
  With(Arc<AgentKeys>),
  /// Not sealed, in a log whose records are: whoever wrote it did not have the key.
  Suspect,
  Erased,
}

impl Unsealing {
  fn body<'r>(&self, record: &'r Record, meta: &PaMeta, behind_header: &'r [u8]) -> Result<Cow<'r, [u8]>, &'static str> {
    match self {
      Self::Clear => Ok(Cow::Borrowed(behind_header)),
      Self::With(keys) => seal::open(keys, &meta.core, &record.type_name, behind_header).map(Cow::Owned).ok_or("its seal does not fit"),
      Self::Suspect => Err("it is not sealed, in a log whose records are"),
      Self::Erased => Err("its agent was erased"),
    }
  }
}

fn split(record: &Record) -> Result<(&Header, &[u8]), codec::Error> {
  record.value.split_first_chunk::<HEADER_BYTES>().ok_or_else(|| codec::Error::NotSingleObject { type_name: record.type_name.to_string() })
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
  let mut text = error.to_string();
  let mut source = error.source();
  while let Some(cause) = source {
    text.push_str(": ");
    text.push_str(&cause.to_string());
    source = cause.source();
  }
  text
}
