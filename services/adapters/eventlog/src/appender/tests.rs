//! What an appended input holds, and what is refused.

use pa_domain::Timestamp;
use pa_domain::conversation::{Input as ConversationInput, MessageGiven};
use pa_store::keys::KeyRing;

use super::*;
use crate::opener::{Opened, Opener};
use crate::port::INPUT_BYTES_MAX;
use crate::sim::{Fault, Plan, SimLog};
use crate::testing::Script;

struct FixedClock;

impl Clock for FixedClock {
  fn now(&self) -> Timestamp {
    Timestamp(1_767_225_600_000)
  }
}

/// Ids that count up.
#[derive(Default)]
struct CountingIds(std::sync::atomic::AtomicU64);

impl Ids for CountingIds {
  fn new_id(&self) -> Uuid {
    Uuid::from_u128(0x0192_0000 + u128::from(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)))
  }
}

async fn appender(log: &SimLog, keys: &KeyRing) -> Appender {
  Appender::connect(Arc::new(log.clone()), Arc::new(keys.clone()), Arc::new(FixedClock), Arc::new(CountingIds::default()), "pa/gateway").await.unwrap()
}

fn said(text: &str) -> Submission<'static> {
  let given = MessageGiven { conversation: None, text: text.to_owned(), attachments: Vec::new() };
  Submission {
    agent: Script::agent(1),
    input: Input::Conversation(ConversationInput::MessageGiven(given)),
    producer: "account",
    key: Some("k-1"),
    content: None,
    actor: "owner",
    origin: Origin::Owner,
    cause: None,
    correlation: None,
    traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
  }
}

#[tokio::test]
async fn an_input_stands_in_its_agents_partition_sealed_and_with_a_hashed_key() {
  let (log, keys) = (SimLog::new(8, true, Plan::none()), KeyRing::fixed());
  let submitted = appender(&log, &keys).await.submit(said("hello 世界")).await.unwrap();
  assert_eq!(submitted.partition, partition_of(Script::agent(1), 8));
  let stored = &log.records(Stream::Inputs, submitted.partition)[0];
  assert_eq!((stored.position, stored.record.id, &*stored.record.type_name), (submitted.position, submitted.id, "pa.conversation.MessageGiven.v1"));
  assert_eq!(&*stored.record.source, "pa/gateway");
  let Opened::Input(opened) = Opener::new(Arc::new(keys.clone()), true).input(stored).await.unwrap() else { panic!() };
  let core = opened.core();
  assert_eq!((core.kind, core.ordinal, core.correlation, core.cause), (Kind::Input, 0, submitted.id, Uuid::nil()));
  assert_eq!((core.actor.as_str(), core.producer.as_str(), core.at), ("owner", "account", Timestamp(1_767_225_600_000)));
  let expected = keys.get_or_create(Script::agent(1)).await.unwrap().hash_key(b"k-1");
  assert_eq!(core.key, expected);
  assert_eq!(opened.input, said("hello 世界").input);
  let bytes = [&stored.record.meta[..], &stored.record.value[..]].concat();
  assert!(!bytes.windows(3).any(|window| window == b"k-1" || window == b"hel"), "neither key nor content is to be seen");
}

#[tokio::test]
async fn a_clients_key_carries_a_hash_of_the_business_fields_as_well() {
  let (log, keys) = (SimLog::new(1, true, Plan::none()), KeyRing::fixed());
  let appender = appender(&log, &keys).await;
  for content in [b"a".as_slice(), b"a", b"b"] {
    appender.submit(Submission { content: Some(content), ..said("a") }).await.unwrap();
  }
  let hashes: Vec<Vec<u8>> = log.records(Stream::Inputs, 0).iter().map(|stored| stored.meta().unwrap().core.key.clone()).collect();
  assert_eq!(hashes[0], hashes[1]);
  assert_eq!(hashes[0][..32], hashes[2][..32], "the same key");
  assert_ne!(hashes[0][32..], hashes[2][32..], "other fields");
  assert_eq!(hashes[0].len(), 64);
}

#[tokio::test]
async fn an_input_without_a_key_names_no_producer() {
  let (log, keys) = (SimLog::new(1, true, Plan::none()), KeyRing::fixed());
  appender(&log, &keys).await.submit(Submission { key: None, ..said("a") }).await.unwrap();
  let stored = &log.records(Stream::Inputs, 0)[0];
  let core = &stored.meta().unwrap().core;
  assert_eq!((core.producer.as_str(), core.key.len()), ("", 0));
}

#[tokio::test]
async fn several_inputs_of_one_agent_go_out_together() {
  let (log, keys) = (SimLog::new(1, true, Plan::none()), KeyRing::fixed());
  let appender = appender(&log, &keys).await;
  log.inject(Stream::Inputs, Fault::Lost);
  let error = appender.submit_many(vec![said("a"), said("b")]).await.unwrap_err();
  assert_eq!(error.disposition(), pa_store::Disposition::Unknown);
  assert!(log.records(Stream::Inputs, 0).is_empty(), "one fate for both");
  let submitted = appender.submit_many(vec![said("a"), said("b"), said("c")]).await.unwrap();
  assert_eq!(submitted.iter().map(|input| input.position).collect::<Vec<_>>(), [0, 1, 2]);
  let other = Submission { agent: Script::agent(2), ..said("d") };
  assert!(matches!(appender.submit_many(vec![said("e"), other]).await, Err(Error::SeveralAgents)));
  assert!(appender.submit_many(Vec::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_prepared_input_is_appended_again_with_the_same_bytes() {
  let (log, keys) = (SimLog::new(1, true, Plan::none()), KeyRing::fixed());
  let appender = appender(&log, &keys).await;
  let prepared = appender.prepare(said("once")).await.unwrap();
  log.inject(Stream::Inputs, Fault::LostAck);
  let unknown = appender.append(std::slice::from_ref(&prepared)).await.unwrap_err();
  assert_eq!(unknown.disposition(), pa_store::Disposition::Unknown);
  let submitted = appender.append(std::slice::from_ref(&prepared)).await.unwrap();
  assert_eq!(submitted[0].id, prepared.id);
  let records = log.records(Stream::Inputs, 0);
  assert_eq!(records.len(), 2);
  assert_eq!(records[0].record, records[1].record, "a repeat is the same record");
}

#[tokio::test]
async fn an_input_that_is_too_large_is_refused_before_the_log() {
  let (log, keys) = (SimLog::new(1, true, Plan::none()), KeyRing::fixed());
  let appender = appender(&log, &keys).await;
  let error = appender.submit(said(&"x".repeat(INPUT_BYTES_MAX))).await.unwrap_err();
  assert!(matches!(&error, Error::Record(compose::Error::TooLarge { bytes_max: INPUT_BYTES_MAX, .. })), "{error}");
  assert_eq!(error.disposition(), pa_store::Disposition::Fail);
  assert!(log.records(Stream::Inputs, 0).is_empty());
}

#[tokio::test]
async fn an_erased_agent_takes_no_input() {
  let (log, keys) = (SimLog::new(1, true, Plan::none()), KeyRing::fixed());
  keys.erase(Script::agent(1)).await.unwrap();
  let error = appender(&log, &keys).await.submit(said("too late")).await.unwrap_err();
  assert!(matches!(error, Error::Erased { agent } if agent == Script::agent(1)));
}
