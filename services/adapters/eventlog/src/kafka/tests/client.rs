//! What the client makes of a broker's faults: on the library's own mock cluster where a fault can't be had from a real broker, on a real one elsewhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pa_store::testing::TestDb;
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

use super::Place;
use crate::conformance::record;
use crate::kafka::config::{Purpose, Security};
use crate::kafka::history::History;
use crate::kafka::produce::Producer;
use crate::kafka::ring::Part;
use crate::kafka::{Config, KafkaLog, testing};
use crate::port::{AppendError, EventLog, LogError};
use crate::record::{Position, Stream};

const BROKER: i32 = 1;
const TOPIC: &str = "pa.events";

/// A mock cluster with one topic, and our producer on it.
struct Mock {
  cluster: MockCluster<'static, DefaultProducerContext>,
  config: Config,
  part: Arc<Part>,
}

impl Mock {
  fn new() -> Self {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(TOPIC, 1, 1).unwrap();
    let config = Config { brokers: cluster.bootstrap_servers(), prefix: "pa.".to_owned(), inputs_kept: Duration::from_secs(1), security: Security::default() };
    Self { cluster, config, part: Arc::new(Part::new(Stream::Events, 0, TOPIC.into())) }
  }

  fn settings(&self) -> ClientConfig {
    let mut settings = self.config.client(Purpose::Append);
    // So that the tests need not wait for half a minute.
    settings.set("message.timeout.ms", "1500").set("request.timeout.ms", "1000").set("socket.timeout.ms", "1000");
    settings
  }

  fn producer(&self) -> Producer {
    Producer::start(self.settings()).unwrap()
  }

  /// The ids of all records that the cluster holds.
  async fn ids(&self, at_least: Position) -> Vec<u128> {
    let history = Arc::new(History::new(self.config.client(Purpose::History)));
    let mut ids = Vec::new();
    while ids.len() < usize::try_from(at_least).unwrap() {
      let from = Position::try_from(ids.len()).unwrap();
      let read = history.read(&self.part, from, Position::MAX, 100).await.unwrap();
      assert!(!read.is_empty(), "the log ends after {ids:?}");
      ids.extend(read.iter().map(|stored| stored.record.id.as_u128()));
    }
    ids
  }
}

#[tokio::test]
async fn a_request_that_is_not_answered_in_time_has_an_unknown_fate() {
  let mock = Mock::new();
  let producer = mock.producer();
  producer.append(&mock.part, vec![record(1, 10)]).await.unwrap();
  mock.cluster.broker_round_trip_time(BROKER, Duration::from_secs(4)).unwrap();
  let began = Instant::now();
  let late = producer.append(&mock.part, vec![record(2, 10)]).await;
  assert!(matches!(late, Err(AppendError::Unknown { .. })), "{late:?}");
  assert!(began.elapsed() < Duration::from_secs(4), "it does not wait for the answer");
  // It was never called refused, and indeed it is there.
  mock.cluster.broker_round_trip_time(BROKER, Duration::ZERO).unwrap();
  assert_eq!(mock.ids(2).await, [1, 2]);
}

#[tokio::test]
async fn a_broker_that_is_down_leaves_the_fate_unknown_and_the_next_append_works_when_it_is_up() {
  let mock = Mock::new();
  let producer = mock.producer();
  producer.append(&mock.part, vec![record(1, 10)]).await.unwrap();
  mock.cluster.broker_down(BROKER).unwrap();
  let lost = producer.append(&mock.part, vec![record(2, 10)]).await;
  assert!(matches!(lost, Err(AppendError::Unknown { .. })), "{lost:?}");
  mock.cluster.broker_up(BROKER).unwrap();
  let deadline = Instant::now() + Duration::from_secs(20);
  while let Err(error) = producer.append(&mock.part, vec![record(3, 10)]).await {
    assert!(Instant::now() < deadline, "{error}");
  }
}

#[tokio::test]
async fn a_record_that_the_broker_finds_too_large_is_refused() {
  let mock = Mock::new();
  let producer = mock.producer();
  producer.append(&mock.part, vec![record(1, 10)]).await.unwrap();
  mock.cluster.request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE]);
  let refused = producer.append(&mock.part, vec![record(2, 10)]).await;
  assert!(matches!(refused, Err(AppendError::Refused { .. })), "{refused:?}");
  producer.append(&mock.part, vec![record(3, 10)]).await.unwrap();
  assert_eq!(mock.ids(2).await, [1, 3]);
}

/// The library itself refuses the second record: the first is on its way, so the append as a whole is neither in the log nor not.
#[tokio::test]
async fn an_append_of_which_a_part_was_handed_over_is_unknown() {
  let mock = Mock::new();
  let producer = mock.producer();
  let torn = producer.append(&mock.part, vec![record(1, 10), record(2, 1_100_000)]).await;
  assert!(matches!(torn, Err(AppendError::Unknown { .. })), "{torn:?}");
  assert_eq!(mock.ids(1).await, [1]);
  let refused = producer.append(&mock.part, vec![record(3, 1_100_000), record(4, 10)]).await;
  assert!(matches!(refused, Err(AppendError::Refused { .. })), "nothing was handed over: {refused:?}");
}

/// What the broker asks to be repeated is repeated by the library, under the same sequence: once in the log.
#[tokio::test]
async fn what_idempotence_covers_is_repeated_and_stands_once() {
  let mock = Mock::new();
  let producer = mock.producer();
  producer.append(&mock.part, vec![record(1, 10)]).await.unwrap();
  // One record, because the mock takes a later request although an earlier one failed, which no broker does.
  let passing = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS];
  mock.cluster.request_errors(RDKafkaApiKey::Produce, &passing);
  assert_eq!(producer.append(&mock.part, vec![record(2, 10)]).await.unwrap(), [1]);
  assert_eq!(mock.ids(2).await, [1, 2]);
}

#[tokio::test]
async fn after_a_fatal_error_a_new_producer_goes_on() {
  let mock = Mock::new();
  let producer = mock.producer();
  producer.append(&mock.part, vec![record(1, 10)]).await.unwrap();
  mock.cluster.request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER; 20]);
  let lost = producer.append(&mock.part, vec![record(2, 10)]).await;
  assert!(lost.is_err(), "{lost:?}");
  mock.cluster.clear_request_errors(RDKafkaApiKey::Produce);
  let deadline = Instant::now() + Duration::from_secs(20);
  while let Err(error) = producer.append(&mock.part, vec![record(3, 10)]).await {
    assert!(Instant::now() < deadline, "{error}");
  }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_whose_consumer_stands_still_gets_a_new_one() {
  let place = Place::new().await;
  let log = place.open(1).await;
  log.append(Stream::Events, 0, vec![record(1, 10)]).await.unwrap();
  assert_eq!(log.read(Stream::Events, 0, 0, 10).await.unwrap().len(), 1);
  log.follower.stand_still();
  let position = log.append(Stream::Events, 0, vec![record(2, 10)]).await.unwrap()[0];
  let deadline = Instant::now() + Duration::from_secs(40);
  loop {
    match log.read(Stream::Events, 0, position, 10).await {
      Ok(read) if !read.is_empty() => break,
      other => assert!(Instant::now() < deadline, "{other:?}"),
    }
  }
}

#[tokio::test]
async fn a_cluster_that_is_not_there_is_away_and_not_unusable() {
  let db = TestDb::new().await;
  let config = testing::config_on("127.0.0.1:1");
  assert!(matches!(KafkaLog::open(&config, &db.database, 1, true).await.map(|_| ()), Err(LogError::Away(_))));
}

/// The one node dies as in a power cut: what it acknowledged is there when it is back, and the same log goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_records_survive_the_death_of_the_broker() {
  let folder = tempfile::tempdir().unwrap();
  let (start, stop) = (folder.path().to_owned(), std::sync::mpsc::channel::<()>());
  // A node dies with its thread: both lives belong to this one.
  let (nodes, started) = std::sync::mpsc::channel();
  let (again, stopped) = stop;
  let keeper = std::thread::spawn(move || {
    let node = testing::Node::start_in(&start);
    nodes.send(node.brokers.clone()).unwrap();
    stopped.recv().unwrap();
    node.kill9();
    nodes.send(String::new()).unwrap();
    stopped.recv().unwrap();
    let node = testing::Node::start_in(&start);
    nodes.send(node.brokers.clone()).unwrap();
    stopped.recv().unwrap();
    node.kill9();
  });
  let started = Arc::new(parking_lot::Mutex::new(started));
  let next = async || {
    let started = Arc::clone(&started);
    tokio::task::spawn_blocking(move || started.lock().recv().unwrap()).await.unwrap()
  };
  let place = Place { db: TestDb::new().await, config: testing::config_on(&next().await) };
  let log = place.open(1).await;
  log.append(Stream::Events, 0, (1..=50).map(|n| record(n, 500)).collect()).await.unwrap();
  assert_eq!(log.read(Stream::Events, 0, 0, 100).await.unwrap().len(), 50);
  again.send(()).unwrap();
  next().await;
  // Readers at the end hear of it.
  let deadline = Instant::now() + Duration::from_secs(20);
  while !matches!(log.read(Stream::Events, 0, 50, 10).await, Err(LogError::Away(_))) {
    assert!(Instant::now() < deadline, "an outage is said");
    tokio::time::sleep(Duration::from_millis(50)).await;
  }
  let waiting = log.append(Stream::Events, 0, vec![record(51, 10)]);
  again.send(()).unwrap();
  let (appended, _) = tokio::join!(waiting, next());
  // It waited for the broker; the library repeated what was not answered, under its sequence.
  assert_eq!(appended.unwrap(), [50]);
  let deadline = Instant::now() + Duration::from_secs(30);
  let read = loop {
    match log.read(Stream::Events, 0, 50, 10).await {
      Ok(read) if !read.is_empty() => break read,
      other => assert!(Instant::now() < deadline, "{other:?}"),
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
  };
  assert_eq!(read[0].record, record(51, 10));
  let fresh = place.open(1).await;
  let all = fresh.read(Stream::Events, 0, 0, 100).await.unwrap();
  assert_eq!(all.iter().map(|stored| stored.record.id.as_u128()).collect::<Vec<_>>(), (1..=51).collect::<Vec<_>>());
  again.send(()).unwrap();
  keeper.join().unwrap();
}
