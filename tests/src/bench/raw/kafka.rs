//! The control on Kafka: librdkafka as a rival would set it who is handed finished bytes.
//!
//! *As durable as ours:* an idempotent producer, acks from all, five requests in flight, a topic with as many copies as the product's own, which never forgets. *As
//! quick:* one producer for the process, `linger.ms` 0 (every caller waits for its acknowledgement, so that a pause would only be added to each; under load the client
//! sends together what waited for its turn), Nagle off, no compression (the values are sealed), a thread of its own that hears of deliveries. *As much to carry:* the same
//! key, headers and value of each record; the headers are made once, and one answer is awaited for all records of a call, which a `FutureProducer` would not spare. *As quick to
//! read:* one assigned consumer, nothing committed, fetches of a byte, the library's own queues at their defaults, which are larger than ours, messages taken where they lie
//! in the client's memory, without a copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pa_eventlog::{Partition, Position, Record};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Header, Headers as _, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseRecord, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};
use tokio::sync::{oneshot, watch};

const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long a poll waits at the most.
const POLL: Duration = Duration::from_millis(100);
const COPIES_MAX: usize = 3;

/// A topic and its producer.
pub(in super::super) struct Log {
  brokers: String,
  topic: String,
  producer: ThreadedProducer<Deliveries>,
}

/// A record's bytes.
#[derive(Clone)]
pub(in super::super) struct Message {
  key: String,
  headers: OwnedHeaders,
  value: Arc<[u8]>,
}

impl Message {
  pub(super) fn of(record: &Record) -> Self {
    let meta = pa_eventlog::meta::decode(record.id, &record.meta).ok();
    let id = record.id.to_string();
    let texts = [
      ("ce_specversion", "1.0"),
      ("ce_id", &id),
      ("ce_source", &record.source),
      ("ce_type", &record.type_name),
      ("content-type", "application/avro"),
      ("ce_time", "2026-01-01T00:00:00.000Z"),
    ];
    let headers = texts.iter().fold(OwnedHeaders::new_with_capacity(7), |headers, (key, value)| headers.insert(Header { key, value: Some(*value) }));
    let headers = headers.insert(Header { key: "pa-meta", value: Some(&record.meta[..]) });
    Self { key: meta.map_or_else(String::new, |meta| meta.core.agent.to_string()), headers, value: Arc::from(&record.value[..]) }
  }
}

/// Hears of deliveries; only the last record of an append has a caller.
struct Deliveries;

type Caller = Option<oneshot::Sender<Result<Position, KafkaError>>>;

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
  type DeliveryOpaque = Box<Caller>;

  fn delivery(&self, result: &DeliveryResult<'_>, caller: Box<Caller>) {
    let answer = match result {
      Ok(message) => Ok(message.offset()),
      Err((error, _)) => Err(error.clone()),
    };
    // The broker takes an idempotent producer's records in their order: the last one's fate is that of all.
    if let Some(caller) = *caller
      && caller.send(answer).is_err()
    {
      eprintln!("bench: the caller of a raw append went away");
    }
  }
}

fn client(brokers: &str) -> ClientConfig {
  let mut client = ClientConfig::new();
  client.set("bootstrap.servers", brokers).set("socket.nagle.disable", "true").set("allow.auto.create.topics", "false").set("enable.metrics.push", "false");
  client
}

impl Log {
  pub(super) async fn open(brokers: &str, prefix: &str, partitions: Partition) -> Result<Self> {
    let topic = format!("{prefix}raw");
    let admin: AdminClient<DefaultClientContext> = client(brokers).create().context("a client of Kafka")?;
    let nodes = admin.inner().fetch_metadata(None, ANSWER_MAX).context("ask for the brokers")?.brokers().len();
    let copies = i32::try_from(nodes.clamp(1, COPIES_MAX)).context("few copies")?;
    let in_sync = if copies == 3 { "2" } else { "1" };
    let wanted = NewTopic::new(&topic, i32::from(partitions), TopicReplication::Fixed(copies)).set("retention.ms", "-1").set("min.insync.replicas", in_sync);
    for made in admin.create_topics([&wanted], &AdminOptions::new().operation_timeout(Some(ANSWER_MAX))).await.context("make the raw topic")? {
      if let Err((name, code)) = made {
        bail!("the topic {name} was not made: {code}");
      }
    }
    let mut settings = client(brokers);
    settings.set("enable.idempotence", "true").set("acks", "all").set("max.in.flight.requests.per.connection", "5");
    settings.set("linger.ms", "0").set("compression.codec", "none").set("message.timeout.ms", "30000");
    let producer = settings.create_with_context(Deliveries).context("a producer")?;
    let log = Self { brokers: brokers.to_owned(), topic, producer };
    Ok(log)
  }

  /// Appends finished messages; durable when it returns.
  pub(super) async fn append(&self, partition: Partition, messages: Vec<Message>) -> Result<Position> {
    let (sender, answer) = oneshot::channel();
    let (mut caller, count) = (Some(sender), messages.len());
    for (index, Message { key, headers, value }) in messages.into_iter().enumerate() {
      let caller = if index + 1 == count { caller.take() } else { None };
      let record = BaseRecord::<str, [u8], Box<Caller>>::with_opaque_to(&self.topic, Box::new(caller));
      let record = record.partition(i32::from(partition)).key(&key).payload(&value).headers(headers);
      self.producer.send(record).map_err(|(error, _)| error).context("hand a record to the producer")?;
    }
    answer.await.context("a delivery was not heard of")?.context("a raw append failed")
  }

  pub(super) fn follow(&self, partition: Partition) -> Result<Reader> {
    let mut reader = Reader::open(&self.brokers, &self.topic, partition)?;
    reader.listen()?;
    Ok(reader)
  }
}

/// An assigned consumer of one partition.
pub(in super::super) struct Reader {
  consumer: Arc<BaseConsumer>,
  topic: String,
  partition: i32,
  position: Position,
  /// Where the thread that listens is, once there is one.
  heard: Option<watch::Receiver<Position>>,
  closing: Arc<AtomicBool>,
}

impl Reader {
  pub(super) fn open(brokers: &str, topic: &str, partition: Partition) -> Result<Self> {
    let mut settings = client(brokers);
    settings.set("group.id", "bench").set("enable.auto.commit", "false").set("auto.offset.reset", "error").set("fetch.min.bytes", "1");
    let consumer: BaseConsumer = settings.create().context("a consumer")?;
    let reader =
      Self { consumer: Arc::new(consumer), topic: topic.to_owned(), partition: i32::from(partition), position: 0, heard: None, closing: Arc::default() };
    reader.assign()?;
    Ok(reader)
  }

  /// From the beginning.
  fn assign(&self) -> Result<()> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(&self.topic, self.partition, Offset::Beginning).context("name the partition")?;
    self.consumer.assign(&list).context("assign the partition")
  }

  /// A thread that polls, as every consumer has one.
  fn listen(&mut self) -> Result<()> {
    let (heard, listener) = watch::channel(0);
    let (consumer, closing) = (Arc::clone(&self.consumer), Arc::clone(&self.closing));
    let poll = move || {
      while !closing.load(Ordering::Relaxed) {
        match consumer.poll(POLL) {
          Some(Ok(message)) => {
            std::hint::black_box(touch(&message));
            heard.send_replace(message.offset() + 1);
          }
          Some(Err(error)) => eprintln!("bench: reading raw records: {error}"),
          None => {}
        }
      }
    };
    std::thread::Builder::new().name("bench-raw".to_owned()).spawn(poll).context("start a reader's thread")?;
    self.heard = Some(listener);
    Ok(())
  }

  pub(super) async fn follow(&mut self) -> Result<()> {
    let position = self.position;
    let heard = self.heard.as_mut().context("a reader that follows listens")?;
    self.position = *heard.wait_for(|end| *end > position).await.context("the raw reader has ended")?;
    Ok(())
  }

  pub(super) async fn drain(&mut self) -> Result<(u64, u64)> {
    self.assign()?;
    let (consumer, topic, partition) = (Arc::clone(&self.consumer), self.topic.clone(), self.partition);
    // The library blocks.
    tokio::task::spawn_blocking(move || drain(&consumer, &topic, partition)).await.context("a raw reader panicked")?
  }
}

impl Drop for Reader {
  fn drop(&mut self) {
    self.closing.store(true, Ordering::Relaxed);
  }
}

fn drain(consumer: &BaseConsumer, topic: &str, partition: i32) -> Result<(u64, u64)> {
  let (_, end) = consumer.fetch_watermarks(topic, partition, ANSWER_MAX).context("ask for the end")?;
  let (mut records, mut sum) = (0, 0_u64);
  loop {
    let message = consumer.poll(ANSWER_MAX).context("no record came")?.context("read raw records")?;
    records += 1;
    sum = sum.wrapping_add(touch(&message));
    if message.offset() + 1 >= end {
      ensure!(records > 0, "an empty topic was read");
      return Ok((records, sum));
    }
  }
}

/// Adds up a message's bytes.
fn touch(message: &rdkafka::message::BorrowedMessage<'_>) -> u64 {
  let bytes = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
  let headers = message.headers().map_or(0, |headers| headers.iter().filter_map(|header| header.value).map(bytes).sum());
  headers + message.payload().map_or(0, bytes)
}
