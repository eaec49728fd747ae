//! Pieces between processes: what is new here goes out as sealed records of `pa.stream`, what others append is taken in.
//!
//! Works only while others are registered. Text is collected for [`COLLECT`] before it goes out, and the whole text again every [`WHOLE_EVERY`], so that a process
//! that joins in the middle, or misses a record, catches up. Best effort: a record that can't be appended or opened is left out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pa_domain::meta::Kind;
use pa_domain::{AgentId, ConversationId, MessageId, Meta, Origin};
use pa_store::clock::{Clock, Ids};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use super::kept::{Cursors, Source};
use super::{NamedStep, Piece, Pieces};
use crate::codec::{Encoded, HEADER_BYTES};
use crate::meta::{self, NO_HASH, PaMeta, Place, partition_of};
use crate::port::{EventLog, Identity, LogError};
use crate::record::{Partition, Position, Record, Stored, Stream};
use crate::seal::{self, KeyState, Keys, NONCE_BYTES, UNSEALED};

/// The type of these records. They are no facts and have no schema: only processes of the same installation read them, for seconds.
const TYPE: &str = "pa.stream.Piece.v1";
/// What stands where a fact has its schema's fingerprint.
const HEADER: &[u8; HEADER_BYTES] = b"pa-piece/1";
/// How long text is collected: twenty records a second for each reply are plenty to read along.
const COLLECT: Duration = Duration::from_millis(50);
/// How often the whole text goes out again.
const WHOLE_EVERY: Duration = Duration::from_secs(2);
/// How often texts without an end are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Records of one read.
const READ_MAX: usize = 256;
/// Pause after a failed read.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What pieces need to reach other processes.
pub struct Link {
  pub log: Arc<dyn EventLog>,
  pub identity: Identity,
  pub keys: Arc<dyn Keys>,
  pub clock: Arc<dyn Clock>,
  pub ids: Arc<dyn Ids>,
  /// This process.
  pub process: Uuid,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
  Piece { message: MessageId, attempt: i32, offset: i64, text: Arc<str> },
  Step { conversation: ConversationId, step: Option<Arc<str>> },
}

/// What others have been told of one agent.
#[derive(Default)]
struct Outward {
  cursors: Cursors,
  whole: HashMap<MessageId, Instant>,
}

impl Link {
  pub(super) async fn run(&self, pieces: &Pieces) {
    let mut others = pieces.others.subscribe();
    let mut sweep = interval(SWEEP_EVERY);
    loop {
      let wanted = *others.borrow_and_update();
      let exchange = async {
        if wanted {
          tokio::join!(self.outward(pieces), self.inward(pieces));
        } else {
          std::future::pending::<()>().await;
        }
      };
      tokio::select! {
        biased;
        changed = others.changed() => if changed.is_err() { return },
        _ = sweep.tick() => pieces.sweep(Instant::now()),
        () = exchange => {}
      }
    }
  }

  async fn outward(&self, pieces: &Pieces) {
    let mut told: HashMap<AgentId, Outward> = HashMap::new();
    let mut tick = interval(COLLECT);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
      pieces.told.notified().await;
      tick.tick().await;
      let dirty = std::mem::take(&mut *pieces.dirty.lock());
      for agent in dirty {
        self.tell(pieces, agent, told.entry(agent).or_default()).await;
      }
      told.retain(|agent, _| pieces.shard(*agent).lock().get(agent).is_some_and(|known| !known.kept.is_empty()));
    }
  }

  async fn tell(&self, pieces: &Pieces, agent: AgentId, outward: &mut Outward) {
    let now = Instant::now();
    let stale: Vec<MessageId> = outward.whole.iter().filter(|(_, at)| now.duration_since(**at) >= WHOLE_EVERY).map(|(message, _)| *message).collect();
    for message in stale {
      outward.whole.remove(&message);
      outward.cursors.forget(message);
    }
    let Some((new, steps)) = pieces.shard(agent).lock().get(&agent).map(|known| known.kept.unheard(&mut outward.cursors, Some(Source::Here))) else { return };
    for piece in &new {
      outward.whole.entry(piece.message).or_insert(now);
    }
    let texts = new.into_iter().map(|piece| Told::Piece { message: piece.message, attempt: piece.attempt, offset: piece.offset_utf16, text: piece.text });
    let steps = steps.into_iter().map(|NamedStep { conversation, step }| Told::Step { conversation, step });
    let told: Vec<Told> = texts.chain(steps).collect();
    if told.is_empty() {
      return;
    }
    let Ok(KeyState::Ready(keys)) = self.keys.keys(agent).await else { return };
    let records = told.iter().filter_map(|told| self.record(&keys, agent, told)).collect();
    let partition = partition_of(agent, self.identity.partitions);
    if let Err(error) = self.log.append(Stream::Pieces, partition, records).await {
      tracing::debug!(agent.id = %agent, error = &error as &dyn std::error::Error, "pieces did not reach other processes");
      *outward = Outward::default();
    }
  }

  fn record(&self, keys: &pa_store::keys::AgentKeys, agent: AgentId, told: &Told) -> Option<Record> {
    let id = self.ids.new_id();
    let core = Meta {
      id,
      kind: Kind::Input,
      agent,
      ordinal: 0,
      at: self.clock.now(),
      cause: Uuid::nil(),
      correlation: id,
      actor: "agent".to_owned(),
      origin: Origin::Agent,
      producer: String::new(),
      key: Vec::new(),
      input: 0,
      held: false,
      part: 0,
    };
    let sealed = self.identity.sealed;
    let meta = PaMeta::new(core, NO_HASH, Place::of_input(if sealed { keys.id() } else { UNSEALED }));
    let body_at = HEADER_BYTES + if sealed { NONCE_BYTES } else { 0 };
    let mut bytes = HEADER.to_vec();
    bytes.resize(body_at, 0);
    serde_json::to_writer(&mut bytes, told).ok()?;
    let value = if sealed { seal::seal(keys, &meta.core, Encoded { type_name: TYPE.into(), bytes, body_at }) } else { bytes };
    Some(Record { id, type_name: TYPE.into(), source: self.source().into(), traceparent: None, meta: meta::encode(&meta).ok()?, value: value.into() })
  }

  fn source(&self) -> String {
    format!("pa/process/{}", self.process)
  }

  async fn inward(&self, pieces: &Pieces) {
    futures::future::join_all((0..self.identity.partitions).map(|partition| self.hear(pieces, partition))).await;
  }

  async fn hear(&self, pieces: &Pieces, partition: Partition) {
    let own = self.source();
    let mut next: Option<Position> = None;
    loop {
      match self.read(partition, &mut next).await {
        Ok(batch) => {
          for stored in batch.iter().filter(|stored| *stored.record.source != *own) {
            if let Some((agent, told)) = self.open(stored).await {
              take(pieces, agent, told);
            }
          }
        }
        Err(error) => {
          tracing::debug!(log.partition = partition, error = &error as &dyn std::error::Error, "the pieces of other processes can't be read now");
          // The stream may begin anew: what matters is what comes next.
          next = None;
          tokio::time::sleep(AGAIN_AFTER).await;
        }
      }
    }
  }

  async fn read(&self, partition: Partition, next: &mut Option<Position>) -> Result<Arc<[Arc<Stored>]>, LogError> {
    let from = match *next {
      Some(from) => from,
      None => self.log.end(Stream::Pieces, partition).await?,
    };
    *next = Some(from);
    let batch = self.log.read(Stream::Pieces, partition, from, READ_MAX).await?;
    match batch.last() {
      Some(last) => *next = Some(last.position + 1),
      None => self.log.wait(Stream::Pieces, partition, from).await,
    }
    Ok(batch)
  }

  async fn open(&self, stored: &Stored) -> Option<(AgentId, Told)> {
    let record = &stored.record;
    let meta = stored.meta().ok()?;
    let body = record.value.strip_prefix(HEADER.as_slice()).filter(|_| *record.type_name == *TYPE)?;
    if !self.identity.sealed {
      return Some((meta.core.agent, serde_json::from_slice(body).ok()?));
    }
    let Ok(KeyState::Ready(keys)) = self.keys.keys(meta.core.agent).await else { return None };
    let body = seal::open(&keys, &meta.core, TYPE, body)?;
    Some((meta.core.agent, serde_json::from_slice(&body).ok()?))
  }
}

fn take(pieces: &Pieces, agent: AgentId, told: Told) {
  match told {
    Told::Piece { message, attempt, offset, text } => {
      let piece = Piece { message, attempt, offset_utf16: offset, text };
      pieces.change(agent, Source::Elsewhere, |kept| kept.accept(&piece, Source::Elsewhere, Instant::now()));
    }
    Told::Step { conversation, step } => {
      pieces.change(agent, Source::Elsewhere, |kept| kept.name_step(conversation, step.as_deref(), Source::Elsewhere));
    }
  }
}
