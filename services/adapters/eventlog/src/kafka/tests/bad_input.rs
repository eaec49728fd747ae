//! Topics that are not as they must be: each is refused in words that say what is wrong and what to do, or warned of.

use rdkafka::admin::AdminClient;
use tokio::time::{Duration, Instant};

use super::Place;
use crate::conformance::record;
use crate::kafka::config::Purpose;
use crate::kafka::context::Quiet;
use crate::kafka::testing::Administrator;
use crate::port::{AppendError, EventLog, LogError};
use crate::record::Stream;

impl Place {
  fn admin(&self) -> AdminClient<Quiet> {
    self.config.client(Purpose::Control).create_with_context(Quiet).unwrap()
  }

  fn topic(&self, name: &str) -> String {
    format!("{}{name}", self.config.prefix)
  }

  fn set(&self, name: &str, settings: &[(&str, &str)]) {
    Administrator::of(&self.config).set(name, settings);
  }

  fn delete(&self, name: &str) {
    Administrator::of(&self.config).delete(name);
  }

  async fn make(&self, name: &str, partitions: i32) {
    Administrator::of(&self.config).make(name, partitions).await;
  }
}

#[tokio::test]
async fn another_partition_count_stops_the_start() {
  let place = Place::new().await;
  place.open(4).await;
  let why = place.refused(8).await;
  assert!(why.contains('4') && why.contains('8') && why.contains("pa log copy"), "{why}");
}

#[tokio::test]
async fn another_way_of_sealing_stops_the_start() {
  let place = Place::new().await;
  place.open(1).await;
  let opened = crate::kafka::KafkaLog::open(&place.config, &place.db.database, 1, false).await.map(|_| ());
  assert!(matches!(opened, Err(LogError::Unusable(_))));
}

#[tokio::test]
async fn a_database_of_an_embedded_log_is_not_taken_over_and_no_topic_is_made() {
  let place = Place::new().await;
  crate::postgres::PostgresLog::open(&place.db.database, 2, true).await.unwrap();
  let why = place.refused(2).await;
  assert!(why.contains("postgres") && why.contains("pa log copy"), "{why}");
  let metadata = place.admin().inner().fetch_metadata(None, Duration::from_secs(5)).unwrap();
  assert!(!metadata.topics().iter().any(|topic| topic.name().starts_with(&place.config.prefix)));
}

#[tokio::test]
async fn a_database_of_a_log_on_kafka_is_not_taken_over_by_the_embedded_log() {
  let place = Place::new().await;
  place.open(2).await;
  let Err(LogError::Unusable(why)) = crate::postgres::PostgresLog::open(&place.db.database, 2, true).await.map(|_| ()) else { panic!("it must be refused") };
  assert!(why.contains("kafka") && why.contains("pa log copy"), "{why}");
}

#[tokio::test]
async fn a_topic_that_forgets_stops_the_start() {
  for (topic, setting, value) in [
    ("events", "retention.ms", "604800000"),
    ("events", "retention.bytes", "1000000000"),
    ("events", "cleanup.policy", "compact"),
    ("inputs", "retention.ms", "604800000"),
    ("inputs", "cleanup.policy", "compact,delete"),
  ] {
    let place = Place::new().await;
    drop(place.open(1).await);
    place.set(topic, &[(setting, value)]);
    let why = place.refused(1).await;
    assert!(why.contains(&place.topic(topic)) && why.contains(setting) && why.contains(value), "{why}");
  }
}

#[tokio::test]
async fn a_smaller_message_limit_stops_the_start() {
  let place = Place::new().await;
  drop(place.open(1).await);
  place.set("inputs", &[("max.message.bytes", "500000")]);
  let why = place.refused(1).await;
  assert!(why.contains("max.message.bytes=500000") && why.contains("1000000"), "{why}");
}

#[tokio::test]
async fn a_leader_that_lacks_records_and_a_codec_that_is_not_there_stop_the_start() {
  for (setting, value) in [("unclean.leader.election.enable", "true"), ("compression.type", "zstd")] {
    let place = Place::new().await;
    drop(place.open(1).await);
    place.set("events", &[(setting, value)]);
    let why = place.refused(1).await;
    assert!(why.contains(setting) && why.contains(value), "{why}");
  }
}

#[tokio::test]
async fn one_copy_is_warned_of_in_words_that_say_what_it_means() {
  let place = Place::new().await;
  let log = place.open(1).await;
  assert_eq!(log.warnings().len(), 2, "the topics of facts and of inputs: {:?}", log.warnings());
  for warning in log.warnings() {
    assert!(warning.contains("one copy") && warning.contains("disk"), "{warning}");
  }
}

/// The broker's default would have made it, or an administrator did.
#[tokio::test]
async fn a_topic_made_anew_behind_our_back_stops_the_start() {
  for name in ["events", "inputs", "stream"] {
    let place = Place::new().await;
    drop(place.open(1).await);
    place.delete(name);
    place.make(name, 1).await;
    let why = place.refused(1).await;
    assert!(why.contains(&place.topic(name)) && why.contains("made anew"), "{why}");
  }
}

#[tokio::test]
async fn topics_that_are_gone_or_of_another_log_stop_the_start() {
  let place = Place::new().await;
  drop(place.open(1).await);
  place.delete("inputs");
  let why = place.refused(1).await;
  assert!(why.contains(&place.topic("inputs")) && why.contains("missing"), "{why}");
  // All of them: the database knows a log that is not there.
  place.delete("events");
  place.delete("stream");
  let why = place.refused(1).await;
  assert!(why.contains("no topic") && why.contains(&place.topic("events")), "{why}");
}

#[tokio::test]
async fn a_log_with_records_and_an_empty_database_asks_for_the_backup() {
  let place = Place::new().await;
  place.open(1).await.append(Stream::Inputs, 0, vec![record(1, 10)]).await.unwrap();
  let empty = Place { db: pa_store::testing::TestDb::new().await, config: place.config.clone() };
  let why = empty.refused(1).await;
  assert!(why.contains("restore the backup"), "{why}");
}

/// A start that died between making the topics and writing down whose they are.
#[tokio::test]
async fn empty_topics_of_ours_are_taken_by_an_empty_database() {
  let place = Place::new().await;
  drop(place.open(2).await);
  let again = Place { db: pa_store::testing::TestDb::new().await, config: place.config.clone() };
  again.open(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_made_anew_under_a_running_process_is_noticed() {
  let place = Place::new().await;
  let log = place.open(1).await;
  log.append(Stream::Events, 0, vec![record(1, 10)]).await.unwrap();
  assert_eq!(log.read(Stream::Events, 0, 0, 10).await.unwrap().len(), 1);
  place.delete("events");
  place.make("events", 1).await;
  let Err(LogError::Unusable(why)) = log.identity().await else { panic!("it must be noticed") };
  assert!(why.contains("made anew"), "{why}");
  // And without being asked: nothing may go on.
  let deadline = Instant::now() + Duration::from_secs(30);
  while !matches!(log.read(Stream::Events, 0, 1, 10).await, Err(LogError::Unusable(_))) {
    assert!(Instant::now() < deadline, "readers are stopped");
    tokio::time::sleep(Duration::from_millis(100)).await;
  }
  assert!(matches!(log.append(Stream::Events, 0, vec![record(2, 10)]).await, Err(AppendError::Refused { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_somebody_else_stops_its_partition() {
  use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
  let place = Place::new().await;
  let log = place.open(2).await;
  log.append(Stream::Inputs, 0, vec![record(1, 10)]).await.unwrap();
  let foreign: BaseProducer = place.config.client(Purpose::Append).create().unwrap();
  foreign.send(BaseRecord::<(), str>::to(&place.topic("inputs")).partition(0).payload("hello")).unwrap();
  foreign.flush(Duration::from_secs(10)).unwrap();
  // Both ways of reading: the tail, and what lies further back.
  assert_eq!(log.read(Stream::Inputs, 0, 0, 1).await.unwrap().len(), 1);
  for fresh in [false, true] {
    let log = if fresh { place.open(2).await } else { std::sync::Arc::clone(&log) };
    let deadline = Instant::now() + Duration::from_secs(20);
    let why = loop {
      match log.read(Stream::Inputs, 0, 1, 10).await {
        Err(LogError::Unusable(why)) => break why,
        other => assert!(Instant::now() < deadline, "{other:?}"),
      }
      log.wait(Stream::Inputs, 0, 1).await;
    };
    assert!(why.contains("position 1") && why.contains("inputs"), "{why}");
  }
  assert!(log.read(Stream::Inputs, 1, 0, 1).await.unwrap().is_empty(), "the others go on");
}
