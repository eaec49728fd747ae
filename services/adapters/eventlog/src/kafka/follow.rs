//! Following the tail: one consumer for every partition that somebody reads, on a thread of its own, and the watchdog beside it.
//!
//! Invariants
//! - Partitions are assigned with explicit offsets; nothing is subscribed, committed or sought.
//! - The watchdog compares what the broker says with what was read: a consumer that stands still while the log grows is replaced, and a log that ends before what
//!   was read of it, or has another record there after the connection was lost, is told to every reader.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::context::Quiet;
use super::message::{self, Names};
use super::ring::Part;
use super::topics::ends;
use crate::port::LogError;
use crate::record::{Position, Stored, Stream};

/// How long the thread waits for a record before it looks whether it is to end.
const POLL: Duration = Duration::from_millis(100);
/// Records that are taken in before those who wait are woken.
const BATCH_MAX: usize = 256;
/// A start reads so many records back from the end, because those who start read about from there: checkpoints are at most a thousand records old.
const READ_BACK: Position = 1_024;
/// Between two looks of the watchdog; a consumer that stood still at two of them is replaced.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Between two looks while the broker is away.
const LOOK_AWAY_EVERY: Duration = Duration::from_millis(500);
/// A broker that does not answer within this is away.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(5);

type Tail = BaseConsumer<Quiet>;
/// Asks the broker whether the topics are still those that were opened. Called at every look of the watchdog.
pub(super) type StillOurs = Box<dyn Fn() -> Result<(), LogError> + Send + Sync>;

pub(super) struct Follower {
  settings: ClientConfig,
  parts: Vec<Arc<Part>>,
  consumer: RwLock<Arc<Tail>>,
  /// Held while partitions are assigned.
  assigning: Mutex<()>,
  reachable: AtomicBool,
  /// Connections were lost: what was read is compared with the log.
  disturbed: AtomicBool,
  closing: AtomicBool,
  still_ours: StillOurs,
  /// Why nothing may go on: the topics are others.
  replaced: OnceLock<String>,
}

impl Follower {
  pub(super) fn start(settings: ClientConfig, parts: Vec<Arc<Part>>, still_ours: StillOurs) -> Result<Arc<Self>, KafkaError> {
    let consumer = RwLock::new(Arc::new(settings.create_with_context(Quiet)?));
    let follower = Arc::new(Self {
      settings,
      parts,
      consumer,
      assigning: Mutex::new(()),
      reachable: AtomicBool::new(true),
      disturbed: AtomicBool::new(false),
      closing: AtomicBool::new(false),
      still_ours,
      replaced: OnceLock::new(),
    });
    let spawn = |name: &str, work: fn(&Self)| {
      let follower = Arc::clone(&follower);
      thread::Builder::new().name(name.to_owned()).spawn(move || work(&follower)).map_err(|error| KafkaError::ClientCreation(error.to_string()))
    };
    spawn("pa-kafka-tail", Self::read)?;
    spawn("pa-kafka-watch", Self::watch)?;
    Ok(follower)
  }

  /// Ends the threads.
  pub(super) fn close(&self) {
    self.closing.store(true, Ordering::Release);
  }

  /// Whether the broker answered when it was asked last.
  pub(super) fn is_reachable(&self) -> bool {
    self.reachable.load(Ordering::Acquire)
  }

  /// Why nothing may go on, once the topics were found to be others.
  pub(super) fn replaced(&self) -> Option<&str> {
    self.replaced.get().map(String::as_str)
  }

  /// A consumer that reads nothing takes the place of the one that does.
  #[cfg(test)]
  pub(super) fn stand_still(&self) {
    *self.consumer.write() = Arc::new(self.settings.create_with_context(Quiet).expect("a consumer"));
  }

  /// Begins to follow the partitions of a stream. Blocks; does nothing for those that are followed.
  pub(super) fn follow(&self, stream: Stream) -> Result<(), KafkaError> {
    let _one = self.assigning.lock();
    let consumer = Arc::clone(&self.consumer.read());
    let new: Vec<&Arc<Part>> = self.parts.iter().filter(|part| part.stream == stream && !part.ring.lock().followed).collect();
    let mut begin = TopicPartitionList::new();
    let mut places = Vec::with_capacity(new.len());
    for part in &new {
      let (low, high) = ends(consumer.client(), &part.topic, part.partition)?;
      let from = (high - READ_BACK).max(low);
      begin.add_partition_offset(&part.topic, i32::from(part.partition), Offset::Offset(from))?;
      places.push((from, high));
    }
    if new.is_empty() {
      return Ok(());
    }
    // Before the first record can come.
    for (part, (from, high)) in new.iter().zip(places) {
      part.follow_from(from);
      part.reaches(high);
    }
    let assigned = consumer.incremental_assign(&begin);
    if assigned.is_err() {
      for part in &new {
        part.ring.lock().followed = false;
      }
    }
    assigned
  }

  // --- The reading thread ---

  fn read(&self) {
    let mut names = Names::default();
    while !self.closing.load(Ordering::Acquire) {
      let consumer = Arc::clone(&self.consumer.read());
      let mut touched: Vec<Arc<Part>> = Vec::new();
      let mut wait = POLL;
      for _ in 0..BATCH_MAX {
        match consumer.poll(wait) {
          Some(Ok(message)) => self.take(&message, &mut names, &mut touched),
          Some(Err(error)) => self.heed(&error),
          None => break,
        }
        wait = Duration::ZERO;
      }
      tell(&touched);
    }
  }

  fn take(&self, message: &BorrowedMessage<'_>, names: &mut Names, touched: &mut Vec<Arc<Part>>) {
    let of_message = |part: &&Arc<Part>| i32::from(part.partition) == message.partition() && *part.topic == *message.topic();
    let Some(part) = touched.iter().find(of_message).cloned().or_else(|| self.parts.iter().find(of_message).cloned()) else { return };
    match message::record(message, names) {
      Ok(record) => part.push(Arc::new(Stored::new(message.offset(), record))),
      Err(foreign) => {
        let why = format!("position {} of {}/{} is not a record of ours: {foreign}", message.offset(), part.topic, part.partition);
        part.ring.lock().foreign.get_or_insert(why);
      }
    }
    if !touched.iter().any(|known| Arc::ptr_eq(known, &part)) {
      touched.push(part);
    }
  }

  fn heed(&self, error: &KafkaError) {
    match error.rdkafka_error_code() {
      Some(RDKafkaErrorCode::AllBrokersDown | RDKafkaErrorCode::BrokerTransportFailure) => {
        self.disturbed.store(true, Ordering::Release);
      }
      Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange | RDKafkaErrorCode::UnknownTopicOrPartition) => {
        tracing::warn!(error = error as &dyn std::error::Error, "kafka does not hold what is to be read next");
        self.disturbed.store(true, Ordering::Release);
      }
      _ => {}
    }
    tracing::debug!(error = error as &dyn std::error::Error, "following the log");
  }

  // --- The watchdog ---

  fn watch(&self) {
    let mut seen: Vec<Position> = vec![Position::MIN; self.parts.len()];
    let mut looked = Instant::now();
    while !self.closing.load(Ordering::Acquire) {
      thread::sleep(LOOK_AWAY_EVERY / 5);
      let disturbed = self.disturbed.load(Ordering::Acquire) || !self.is_reachable();
      if looked.elapsed() < if disturbed { LOOK_AWAY_EVERY } else { LOOK_EVERY } {
        continue;
      }
      looked = Instant::now();
      // Taken back first: what is lost meanwhile counts for the next look.
      let compare = self.disturbed.swap(false, Ordering::AcqRel) || !self.is_reachable();
      match self.look(&mut seen, compare) {
        Ok(()) => {
          self.reachable.store(true, Ordering::Release);
          self.look_whose();
        }
        Err(error) => {
          tracing::debug!(error = &error as &dyn std::error::Error, "kafka does not answer");
          self.disturbed.store(compare, Ordering::Release);
          self.reachable.store(false, Ordering::Release);
          tell(&self.parts);
        }
      }
    }
  }

  /// Compares the ends that the broker names with what was read. `compare`: also the last record that was read.
  fn look(&self, seen: &mut [Position], compare: bool) -> Result<(), KafkaError> {
    let consumer = Arc::clone(&self.consumer.read());
    let mut renew = compare;
    for (part, seen) in self.parts.iter().zip(seen) {
      let (followed, to) = {
        let ring = part.ring.lock();
        (ring.followed && ring.foreign.is_none(), ring.to)
      };
      if !followed {
        continue;
      }
      let (_, high) = ends(consumer.client(), &part.topic, part.partition)?;
      if high < to {
        part.cut(high);
        renew = true;
      }
      part.reaches(high);
      renew |= high > to && *seen == to;
      *seen = to;
    }
    if renew { self.renew() } else { Ok(()) }
  }

  fn look_whose(&self) {
    match (self.still_ours)() {
      Ok(()) => {}
      Err(LogError::Away(error)) => tracing::debug!(error = &*error as &dyn std::error::Error, "kafka does not say whose its topics are"),
      Err(LogError::Unusable(why)) => {
        if self.replaced.set(why.clone()).is_ok() {
          tracing::error!(why, "the log was replaced while this process used it");
        }
        tell(&self.parts);
      }
    }
  }

  /// Replaces the consumer: it begins with the last record that was read of each partition, which must be the same.
  fn renew(&self) -> Result<(), KafkaError> {
    let _one = self.assigning.lock();
    let new: Arc<Tail> = Arc::new(self.settings.create_with_context(Quiet)?);
    let mut begin = TopicPartitionList::new();
    for part in &self.parts {
      let (followed, from) = {
        let ring = part.ring.lock();
        (ring.followed, ring.again_from())
      };
      if followed {
        begin.add_partition_offset(&part.topic, i32::from(part.partition), Offset::Offset(from))?;
      }
    }
    if begin.count() == 0 {
      return Ok(());
    }
    tracing::info!(partitions = begin.count(), "following the log anew");
    new.assign(&begin)?;
    *self.consumer.write() = new;
    Ok(())
  }
}

fn tell(parts: &[Arc<Part>]) {
  for part in parts {
    part.tell();
  }
}
