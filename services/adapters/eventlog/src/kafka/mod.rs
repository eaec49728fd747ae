//! The log on Apache Kafka: for more than one machine, or for who has a cluster already.
//!
//! `topics` makes and checks the topics, `produce` appends, `follow` reads the tail into a `ring` for each partition, `history` reads what lies further back,
//! `config` sets every default. No consumer groups and no transactions: partitions are assigned, positions are kept by the readers, and the fence in the log says which
//! records count. The library's own threads do the work; whatever blocks runs apart from the runtime.

mod aside;
mod config;
mod context;
mod follow;
mod history;
mod message;
mod produce;
mod ring;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod topics;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pa_store::PgPool;
use pa_store::ops::log_identity::{self, LogIdentity};
use pa_store::pool::{Database, Role};
use rdkafka::error::KafkaError;

use crate::port::{AppendError, EventLog, Identity, LogError, check_append};
use crate::record::{Partition, Position, Record, Stored, Stream};
use config::Purpose;
pub use config::{Config, Security};
use follow::Follower;
use history::History;
use produce::Producer;
use ring::{Known, Part};
use topics::{Found, STREAMS, Topics};

/// The name of this kind of log.
const KIND: &str = "kafka";
/// What `wait` waits at the most, so that an outage is seen soon.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How long another node may take from its first topic to writing down whose they are.
const STARTS_WITHIN: Duration = Duration::from_secs(5);
/// How long a record that is known to be there may take from the broker.
const COMES_WITHIN: Duration = Duration::from_secs(5);

/// The log on Kafka.
pub struct KafkaLog {
  identity: Identity,
  warnings: Vec<String>,
  topics: Arc<Topics>,
  parts: Vec<Arc<Part>>,
  producer: Producer,
  follower: Arc<Follower>,
  history: Arc<History>,
}

fn no_database(error: pa_store::Error) -> LogError {
  LogError::Away(Box::new(error))
}

fn away(error: KafkaError) -> LogError {
  LogError::Away(Box::new(error))
}

/// Runs what waits for the library, apart from the runtime.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, LogError> + Send + 'static) -> Result<T, LogError> {
  tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(LogError::Away(Box::new(error))))
}

impl KafkaLog {
  /// Opens the log of this cluster, making its topics with `partitions` partitions if neither the cluster nor the database knows one.
  ///
  /// # Errors
  /// [`LogError::Away`] when the cluster does not answer; [`LogError::Unusable`] when the topics would forget, are others than those of this database, or are not as they must be.
  pub async fn open(config: &Config, database: &Database, partitions: Partition, sealed: bool) -> Result<Arc<Self>, LogError> {
    // First, because a new producer waits half a second for its id.
    let producer = Producer::start(config.client(Purpose::Append)).map_err(away)?;
    let admin = config.client(Purpose::Control).create_with_context(context::Quiet).map_err(away)?;
    let topics = Arc::new(Topics::new(config, admin));
    let pool = database.pool(Role::Tool);
    let (known, found) = Self::establish(&topics, &pool, partitions).await?;
    let wanted = LogIdentity { kind: KIND.into(), id: found.id, partitions: i32::from(found.partitions), sealed };
    let standing = match known {
      Some(known) => known,
      None => log_identity::create(&pool, &wanted).await.map_err(no_database)?,
    };
    compare(&standing, &wanted, partitions)?;
    for warning in &found.warnings {
      tracing::warn!("{warning}");
    }
    let identity = Identity { kind: KIND.to_owned(), id: found.id, partitions: found.partitions, sealed };
    Self::start(config, producer, topics, identity, found.warnings).map(Arc::new)
  }

  /// The log that the database knows, and the topics as they are. Where neither knows the other another node may be at the same first start: what looks wrong is looked at again.
  async fn establish(topics: &Arc<Topics>, pool: &PgPool, partitions: Partition) -> Result<(Option<LogIdentity>, Found), LogError> {
    let deadline = tokio::time::Instant::now() + STARTS_WITHIN;
    loop {
      let known = log_identity::load(pool).await.map_err(no_database)?;
      if let Some(known) = known.as_ref().filter(|known| known.kind != KIND) {
        return Err(LogError::Unusable(format!("this database belongs to a log of kind {}; `pa log copy` moves a log to another kind", known.kind)));
      }
      let found = {
        let (topics, known) = (Arc::clone(topics), known.clone());
        blocking(move || establish(&topics, known.as_ref(), partitions)).await
      };
      match found {
        Err(LogError::Unusable(_)) if known.is_none() && tokio::time::Instant::now() < deadline => tokio::time::sleep(WAIT_MAX).await,
        found => return Ok((known, found?)),
      }
    }
  }

  fn start(config: &Config, producer: Producer, topics: Arc<Topics>, identity: Identity, warnings: Vec<String>) -> Result<Self, LogError> {
    let mut parts = Vec::new();
    for stream in STREAMS {
      let topic: Arc<str> = topics.name(stream).into();
      parts.extend((0..identity.partitions).map(|partition| Arc::new(Part::new(stream, partition, Arc::clone(&topic)))));
    }
    let history = Arc::new(History::new(config.client(Purpose::History)));
    let look = {
      let (topics, id, history) = (Arc::clone(&topics), identity.id, Arc::clone(&history));
      Box::new(move || {
        history.sweep();
        still_ours(&topics, id)
      })
    };
    Ok(Self {
      producer,
      follower: Follower::start(config.client(Purpose::Follow), parts.clone(), look).map_err(away)?,
      history,
      identity,
      warnings,
      topics,
      parts,
    })
  }

  /// What makes a loss likelier on this cluster, each in a sentence.
  pub fn warnings(&self) -> &[String] {
    &self.warnings
  }

  fn part(&self, stream: Stream, partition: Partition) -> Option<&Arc<Part>> {
    self.parts.iter().find(|part| part.stream == stream && part.partition == partition)
  }

  fn readable(&self, stream: Stream, partition: Partition) -> Result<&Arc<Part>, LogError> {
    if let Some(why) = self.follower.replaced() {
      return Err(LogError::Unusable(why.to_owned()));
    }
    self.part(stream, partition).ok_or_else(|| LogError::Unusable(format!("there is no partition {partition}")))
  }

  async fn follow(&self, stream: Stream) -> Result<(), LogError> {
    let follower = Arc::clone(&self.follower);
    blocking(move || follower.follow(stream).map_err(away)).await
  }

  async fn watermarks(&self, part: &Arc<Part>) -> Result<(Position, Position), LogError> {
    let (topics, part) = (Arc::clone(&self.topics), Arc::clone(part));
    blocking(move || topics::ends(topics.admin.inner(), &part.topic, part.partition).map_err(away)).await
  }

  async fn read_back(&self, part: &Arc<Part>, from: Position, until: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError> {
    match self.history.read(part, from, until, max).await {
      Ok(records) => Ok(records),
      Err(history::Error::NotHeld) => {
        let (low, high) = self.watermarks(part).await?;
        if from < low && part.stream == Stream::Events {
          return Err(LogError::Unusable(format!("the topic {} has forgotten the facts before position {low}", part.topic)));
        }
        if from >= high {
          part.cut(high);
          return Err(LogError::Away("the log ends before what was known of it".into()));
        }
        self.history.read(part, low.max(from), until, max).await.map_err(history::Error::into_log_error)
      }
      Err(error) => Err(error.into_log_error()),
    }
  }
}

/// The topics of the log, made if nobody knows any.
fn establish(topics: &Topics, known: Option<&LogIdentity>, partitions: Partition) -> Result<Found, LogError> {
  let found = match (topics.look()?, known) {
    (Some(found), _) => found,
    (None, Some(_)) => {
      let name = topics.name(Stream::Events);
      return Err(LogError::Unusable(format!("this database knows a log on kafka, but there is no topic {name}: is it the right cluster and prefix?")));
    }
    (None, None) => {
      topics.make(partitions)?;
      topics.look()?.ok_or_else(|| LogError::Away("the new topics can't be seen yet".into()))?
    }
  };
  if known.is_none() && !topics.are_empty(found.partitions)? {
    return Err(LogError::Unusable(format!(
      "the topic {} holds a log that this database does not know, so its keys are not here: restore the backup of Postgres",
      topics.name(Stream::Events)
    )));
  }
  Ok(found)
}

fn compare(standing: &LogIdentity, wanted: &LogIdentity, partitions: Partition) -> Result<(), LogError> {
  if standing.kind != wanted.kind {
    return Err(LogError::Unusable(format!("this database belongs to a log of kind {}; `pa log copy` moves a log to another kind", standing.kind)));
  }
  if standing.id != wanted.id {
    return Err(LogError::Unusable("the topics are not those of this database: another cluster or prefix, or they were made anew behind its back".into()));
  }
  if wanted.partitions != i32::from(partitions) || standing.partitions != wanted.partitions {
    return Err(LogError::Unusable(format!(
      "the log was created with {} partitions, its topics have {}, and {partitions} are configured; the number is fixed for a log's life, `pa log copy` may change it",
      standing.partitions, wanted.partitions
    )));
  }
  if standing.sealed != wanted.sealed {
    return Err(LogError::Unusable(
      "sealing was chosen otherwise when this log was created, and stays for its life: set PA__LOG__SEALED as it was then".into(),
    ));
  }
  Ok(())
}

fn still_ours(topics: &Topics, id: uuid::Uuid) -> Result<(), LogError> {
  match topics.look()? {
    Some(found) if found.id == id => Ok(()),
    Some(_) => Err(LogError::Unusable("the topics were made anew while this process used them".into())),
    None => Err(LogError::Unusable(format!("the topic {} and the others of this log are gone", topics.name(Stream::Events)))),
  }
}

#[async_trait]
impl EventLog for KafkaLog {
  async fn append(&self, stream: Stream, partition: Partition, records: Vec<Record>) -> Result<Vec<Position>, AppendError> {
    check_append(stream, partition, &records)?;
    let refused = |reason: &str| AppendError::Refused { stream: stream.name(), partition, reason: reason.to_owned() };
    if let Some(why) = self.follower.replaced() {
      return Err(refused(why));
    }
    let part = self.part(stream, partition).ok_or_else(|| refused("the log has no such partition"))?;
    self.producer.append(part, records).await
  }

  async fn read(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError> {
    let part = self.readable(stream, partition)?;
    let deadline = tokio::time::Instant::now() + COMES_WITHIN;
    loop {
      match part.know(from, max) {
        Known::Records(records) => return Ok(records),
        Known::Nothing if !self.follower.is_reachable() => return Err(LogError::Away("kafka does not answer".into())),
        Known::Nothing => return Ok(Arc::from([])),
        Known::NotFollowed => self.follow(stream).await?,
        Known::Before(tail) => return self.read_back(part, from, tail, max).await,
        Known::Cut => return Err(LogError::Away("the log was cut".into())),
        Known::Foreign(why) => return Err(LogError::Unusable(why)),
        Known::Coming => {
          let mut end = part.end.subscribe();
          let came = tokio::time::timeout_at(deadline, end.wait_for(|end| *end > from)).await;
          if came.is_err() {
            return Err(LogError::Away(format!("a record at {from} did not come within {COMES_WITHIN:?}").into()));
          }
        }
      }
    }
  }

  async fn wait(&self, stream: Stream, partition: Partition, from: Position) {
    let Some(part) = self.part(stream, partition) else { return };
    let mut end = part.end.subscribe();
    let heard = async { end.wait_for(|end| *end > from).await.is_ok() };
    tokio::select! {
      _ = heard => {}
      () = tokio::time::sleep(WAIT_MAX) => {}
    }
  }

  async fn end(&self, stream: Stream, partition: Partition) -> Result<Position, LogError> {
    let part = self.readable(stream, partition)?;
    let read_before = part.ring.lock().to;
    let (_, high) = self.watermarks(part).await?;
    if high < read_before {
      part.cut(high);
    }
    part.reaches(high);
    Ok(high)
  }

  async fn identity(&self) -> Result<Identity, LogError> {
    // Asked anew: topics that were replaced behind this process must be noticed.
    let (topics, id) = (Arc::clone(&self.topics), self.identity.id);
    blocking(move || still_ours(&topics, id)).await?;
    Ok(self.identity.clone())
  }
}

impl Drop for KafkaLog {
  fn drop(&mut self) {
    self.follower.close();
  }
}
