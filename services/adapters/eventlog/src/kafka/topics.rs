//! The topics of a log: made once with settings that forget nothing, and looked at before anything is read or written.
//!
//! Invariants
//! - All topics of a log carry one tag, a random number in a setting that means nothing for topics that are not compacted (`delete.retention.ms`). Cluster id, prefix and tag
//!   are the log's identity: a topic that was made anew behind our back lacks the tag. (Kafka's own topic ids can't be asked for through the safe interface of rdkafka.)
//! - Nothing is mended silently: a setting that would forget, a wrong number of partitions, a smaller message limit stop the start; what only makes a loss likelier is a
//!   warning that says what it means.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::Client;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::{Metadata, MetadataTopic};
use uuid::Uuid;

use super::config::{Config, MESSAGE_BYTES_MAX};
use super::context::Quiet;
use super::follow::ANSWER_MAX;
use crate::port::LogError;
use crate::record::{Partition, Position, Stream};

/// The streams, in the order in which their topics are looked at.
pub(super) const STREAMS: [Stream; 3] = [Stream::Events, Stream::Inputs, Stream::Pieces];
/// Pieces of replies are worth nothing later.
const PIECES_KEPT: Duration = Duration::from_secs(15 * 60);
/// Copies of each record on a cluster that has so many brokers.
const COPIES: usize = 3;
/// The setting that carries the tag, and the range of tags: within what hosted clusters allow, and never its default of a day.
const TAG: &str = "delete.retention.ms";
const TAGS: std::ops::Range<i64> = 1_000_000_000..60_000_000_000;
/// How long new topics may take until every partition has a leader.
const MADE_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks at what takes a moment.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Every log's identity is made in this namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x7f1c_5d0a_93b2_4e0f_8a41_6b1d_2f6e_90c7);

/// What the topics say.
#[derive(Debug)]
pub(super) struct Found {
  pub(super) id: Uuid,
  pub(super) partitions: Partition,
  pub(super) warnings: Vec<String>,
}

/// Asks a cluster about our topics. Every call blocks for its answers.
pub(super) struct Topics {
  pub(super) admin: AdminClient<Quiet>,
  prefix: String,
  inputs_kept: Duration,
}

/// A topic as the cluster has it.
struct Topic {
  stream: Stream,
  name: String,
  partitions: usize,
  copies: usize,
  settings: HashMap<String, String>,
}

fn away(error: KafkaError) -> LogError {
  LogError::Away(Box::new(error))
}

fn unusable(why: impl Into<String>) -> LogError {
  LogError::Unusable(why.into())
}

impl Topics {
  pub(super) fn new(config: &Config, admin: AdminClient<Quiet>) -> Self {
    Self { admin, prefix: config.prefix.clone(), inputs_kept: config.inputs_kept }
  }

  pub(super) fn name(&self, stream: Stream) -> String {
    format!("{}{}", self.prefix, stream.name())
  }

  /// Looks at the topics. `None`: there are none.
  pub(super) fn look(&self) -> Result<Option<Found>, LogError> {
    let topics = self.topics()?;
    if topics.is_empty() {
      return Ok(None);
    }
    let missing: Vec<String> = STREAMS.iter().filter(|stream| !topics.iter().any(|topic| topic.stream == **stream)).map(|stream| self.name(*stream)).collect();
    if !missing.is_empty() {
      return Err(unusable(format!("the topic {} is missing beside the others of this log; was it deleted?", missing.join(" and "))));
    }
    let tags: BTreeMap<&str, Option<i64>> = topics.iter().map(|topic| (topic.name.as_str(), topic.tag())).collect();
    let tag = topics[0].tag();
    if let Some((name, _)) = tags.iter().find(|(_, found)| found.is_none()) {
      return Err(unusable(format!("the topic {name} was not made by this product: was it made anew behind its back? `pa` makes its topics itself")));
    }
    if let Some((name, _)) = tags.iter().find(|(_, found)| **found != tag) {
      return Err(unusable(format!("the topic {name} belongs to another log than {}: was one of them made anew?", topics[0].name)));
    }
    let partitions = topics[0].partitions;
    if let Some(other) = topics.iter().find(|topic| topic.partitions != partitions) {
      let first = &topics[0].name;
      return Err(unusable(format!("the topic {} has {} partitions and {first} has {partitions}; all have as many", other.name, other.partitions)));
    }
    let mut warnings = Vec::new();
    for topic in &topics {
      topic.check(self.inputs_kept, &mut warnings)?;
    }
    let partitions = Partition::try_from(partitions).map_err(|_| unusable("the topics have too many partitions"))?;
    Ok(Some(Found { id: self.identity(tag.unwrap_or_default())?, partitions, warnings }))
  }

  fn identity(&self, tag: i64) -> Result<Uuid, LogError> {
    let cluster =
      self.admin.inner().fetch_cluster_id(ANSWER_MAX).ok_or_else(|| away(KafkaError::ClientCreation("the cluster does not say its id".to_owned())))?;
    Ok(Uuid::new_v5(&NAMESPACE, format!("{cluster}\n{}\n{tag}", self.prefix).as_bytes()))
  }

  /// Whether no topic holds a record.
  pub(super) fn are_empty(&self, partitions: Partition) -> Result<bool, LogError> {
    for stream in [Stream::Events, Stream::Inputs] {
      for partition in 0..partitions {
        let (_, high) = ends(self.admin.inner(), &self.name(stream), partition).map_err(away)?;
        if high > 0 {
          return Ok(false);
        }
      }
    }
    Ok(true)
  }

  fn metadata(&self) -> Result<Metadata, LogError> {
    // Of all topics: to ask for one may make it, with a broker's defaults.
    self.admin.inner().fetch_metadata(None, ANSWER_MAX).map_err(away)
  }

  fn topics(&self) -> Result<Vec<Topic>, LogError> {
    let metadata = self.metadata()?;
    let mut topics = Vec::new();
    for stream in STREAMS {
      let name = self.name(stream);
      if let Some(found) = metadata.topics().iter().find(|topic| topic.name() == name) {
        topics.push(Topic { stream, name, partitions: found.partitions().len(), copies: copies(found), settings: HashMap::new() });
      }
    }
    if topics.is_empty() {
      return Ok(topics);
    }
    let asked: Vec<ResourceSpecifier<'_>> = topics.iter().map(|topic| ResourceSpecifier::Topic(&topic.name)).collect();
    let described = futures::executor::block_on(self.admin.describe_configs(&asked, &options())).map_err(away)?;
    for (topic, described) in topics.iter_mut().zip(described) {
      let described = described.map_err(|code| away(KafkaError::AdminOp(code)))?;
      topic.settings = described.entries.into_iter().filter_map(|entry| Some((entry.name, entry.value?))).collect();
    }
    Ok(topics)
  }

  /// Makes the topics of a new log.
  pub(super) fn make(&self, partitions: Partition) -> Result<(), LogError> {
    let copies = self.metadata()?.brokers().len().min(COPIES);
    let tag = rand::random_range(TAGS).to_string();
    let (limit, in_sync) = (MESSAGE_BYTES_MAX.max(DEFAULT_LIMIT).to_string(), if copies >= COPIES { "2" } else { "1" });
    let names: Vec<String> = STREAMS.iter().map(|stream| self.name(*stream)).collect();
    let kept: Vec<String> = STREAMS.iter().map(|stream| self.kept(*stream).map_or_else(|| "-1".to_owned(), |kept| kept.as_millis().to_string())).collect();
    let topics: Vec<NewTopic<'_>> = (names.iter().zip(&kept))
      .map(|(name, kept)| {
        NewTopic::new(name, i32::from(partitions), TopicReplication::Fixed(i32::try_from(copies).unwrap_or(1)))
          .set("cleanup.policy", "delete")
          .set("retention.ms", kept)
          .set("retention.bytes", "-1")
          .set("max.message.bytes", &limit)
          .set("min.insync.replicas", in_sync)
          .set("unclean.leader.election.enable", "false")
          .set("compression.type", "producer")
          // A record's age is counted by the broker's clock: a sender's may be hours away.
          .set("message.timestamp.type", "LogAppendTime")
          .set(TAG, &tag)
      })
      .collect();
    tracing::info!(partitions, copies, prefix = self.prefix, "making the topics of a new log");
    let made = futures::executor::block_on(self.admin.create_topics(&topics, &options())).map_err(away)?;
    if made.iter().all(|made| matches!(made, Err((_, RDKafkaErrorCode::TopicAlreadyExists)))) {
      // The controller makes all topics of a request or none: another node that starts for the first time was faster.
      return Err(LogError::Away("another process makes the topics of this log".into()));
    }
    for made in made {
      made.map_err(|(name, code)| unusable(format!("the topic {name} can't be made: {code}")))?;
    }
    self.wait_for_leaders()
  }

  /// For how long a topic keeps what it holds; `None`: for ever.
  fn kept(&self, stream: Stream) -> Option<Duration> {
    match stream {
      Stream::Events => None,
      Stream::Inputs => Some(self.inputs_kept),
      Stream::Pieces => Some(PIECES_KEPT),
    }
  }

  fn wait_for_leaders(&self) -> Result<(), LogError> {
    let deadline = Instant::now() + MADE_WITHIN;
    loop {
      let metadata = self.metadata()?;
      let led = |name: String| metadata.topics().iter().any(|topic| topic.name() == name && topic.partitions().iter().all(|part| part.leader() >= 0));
      if STREAMS.iter().all(|stream| led(self.name(*stream))) {
        return Ok(());
      }
      if Instant::now() >= deadline {
        return Err(LogError::Away(format!("the new topics have no leaders after {MADE_WITHIN:?}").into()));
      }
      std::thread::sleep(LOOK_EVERY);
    }
  }
}

/// Where a partition begins and ends. Blocks. While a partition changes its leader, as right after it was made, this waits for the new one.
pub(super) fn ends<C: ClientContext>(client: &Client<C>, topic: &str, partition: Partition) -> Result<(Position, Position), KafkaError> {
  let deadline = Instant::now() + ANSWER_MAX;
  loop {
    let passing = match client.fetch_watermarks(topic, i32::from(partition), ANSWER_MAX) {
      Err(error) if Instant::now() < deadline && is_moving(&error) => error,
      answer => return answer,
    };
    tracing::debug!(topic, log.partition = partition, error = &passing as &dyn std::error::Error, "the partition has no leader yet");
    std::thread::sleep(LOOK_EVERY);
  }
}

fn is_moving(error: &KafkaError) -> bool {
  use RDKafkaErrorCode::{LeaderNotAvailable, NotLeaderForPartition, OffsetNotAvailable, UnknownTopicOrPartition};
  matches!(error.rdkafka_error_code(), Some(LeaderNotAvailable | NotLeaderForPartition | OffsetNotAvailable | UnknownTopicOrPartition))
}

/// What Kafka takes by default; a topic of ours takes no less.
const DEFAULT_LIMIT: usize = 1_048_588;

fn options() -> AdminOptions {
  AdminOptions::new().request_timeout(Some(ANSWER_MAX)).operation_timeout(Some(ANSWER_MAX))
}

fn copies(topic: &MetadataTopic) -> usize {
  topic.partitions().iter().map(|part| part.replicas().len()).min().unwrap_or_default()
}

impl Topic {
  fn setting(&self, name: &str) -> &str {
    self.settings.get(name).map_or("", String::as_str)
  }

  fn number(&self, name: &str) -> i64 {
    self.setting(name).parse().unwrap_or_default()
  }

  fn tag(&self) -> Option<i64> {
    Some(self.number(TAG)).filter(|tag| TAGS.contains(tag))
  }

  fn check(&self, inputs_kept: Duration, warnings: &mut Vec<String>) -> Result<(), LogError> {
    let name = &self.name;
    let refuse = |setting: &str, why: String| Err(unusable(format!("the topic {name} has {setting}={}: {why}", self.setting(setting))));
    let (kept, kept_bytes) = (self.number("retention.ms"), self.number("retention.bytes"));
    if self.setting("cleanup.policy") != "delete" {
      return refuse("cleanup.policy", "it must be delete; a compacted log loses facts".to_owned());
    }
    match self.stream {
      Stream::Events if kept != -1 => return refuse("retention.ms", "facts are kept for ever; set it to -1".to_owned()),
      Stream::Inputs if kept != -1 && i128::from(kept) < i128::try_from(inputs_kept.as_millis()).unwrap_or(i128::MAX) => {
        return refuse("retention.ms", format!("inputs are kept for {} ms at least", inputs_kept.as_millis()));
      }
      Stream::Events | Stream::Inputs if kept_bytes != -1 => return refuse("retention.bytes", "it would forget what has no room; set it to -1".to_owned()),
      Stream::Events | Stream::Inputs | Stream::Pieces => {}
    }
    if self.number("max.message.bytes") < i64::try_from(MESSAGE_BYTES_MAX).unwrap_or(i64::MAX) {
      return refuse("max.message.bytes", format!("records need {MESSAGE_BYTES_MAX} at least"));
    }
    if self.setting("unclean.leader.election.enable") == "true" {
      return refuse("unclean.leader.election.enable", "a broker that lacks acknowledged records could become their leader; set it to false".to_owned());
    }
    if ["gzip", "zstd"].contains(&self.setting("compression.type")) {
      return refuse("compression.type", "values are sealed and can't be compressed; set it to producer".to_owned());
    }
    self.warn(warnings);
    Ok(())
  }

  fn warn(&self, warnings: &mut Vec<String>) {
    let (name, copies) = (&self.name, self.copies);
    if self.stream == Stream::Pieces {
      return;
    }
    if copies < 2 {
      warnings.push(format!("the topic {name} has one copy: if the disk of its broker is lost, so is the log"));
    } else if self.number("min.insync.replicas") < 2 {
      warnings.push(format!(
        "the topic {name} has {copies} copies but min.insync.replicas=1: a record counts as kept when one broker has it, and is lost with that broker; set it to 2"
      ));
    }
  }
}
