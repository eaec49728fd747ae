//! The metadata header and every hash: permanent choices, pinned by vectors.

use apache_avro::rabin::Rabin;
use hex::encode as hex;
use pa_domain::ids::{NAMESPACE, derived};
use pa_domain::{AgentId, Origin, Timestamp};
use uuid::Uuid;

use super::*;
use crate::record::Record;

fn sample() -> PaMeta {
  let id = |n: u128| Uuid::from_u128(0x0192_f0c1_7b2e_7c3a_9d4e_0000_0000_0000 + n);
  let core = Meta {
    id: id(1),
    kind: Kind::Event,
    agent: AgentId(id(2)),
    ordinal: 42,
    at: Timestamp(1_767_225_600_123),
    cause: id(3),
    correlation: id(4),
    actor: "person:lark:王小明".to_owned(),
    origin: Origin::ThirdParty,
    producer: "lark".to_owned(),
    key: vec![7; 32],
    input: 0,
    held: false,
    part: 0,
  };
  PaMeta::new(core, [9; 32], Place { input: 4711, held: true, part: 2, parts: 3, epoch: 7, seq: 1302, keyid: 1 })
}

/// Permanent: the single-object header of the `pa-meta` header.
#[test]
fn the_metadata_header_is_that_of_its_schema() {
  let file = pa_schemas::FILES.iter().find(|file| file.type_name == pa_schemas::META).unwrap();
  let schema = apache_avro::Schema::parse_str(file.text).unwrap();
  assert_eq!(FINGERPRINT[..2], [0xc3, 0x01]);
  assert_eq!(hex(&FINGERPRINT[2..]), hex(&schema.fingerprint::<Rabin>().bytes));
  assert_eq!(hex(FINGERPRINT), "c301c2ef12521612211d");
}

#[test]
fn metadata_survives_its_bytes() {
  let meta = sample();
  let bytes = encode(&meta).unwrap();
  assert_eq!(decode(meta.core.id, &bytes).unwrap(), meta);
  assert_eq!((meta.core.input, meta.core.held, meta.core.part), (4711, true, 2));
}

#[test]
fn only_events_show_their_place_to_the_rules() {
  let mut core = sample().core;
  core.kind = Kind::Input;
  let meta = PaMeta::new(core, NO_HASH, Place::of_input(1));
  assert_eq!((meta.core.input, meta.core.held, meta.core.part), (0, false, 0));
  assert_eq!(decode(meta.core.id, &encode(&meta).unwrap()).unwrap(), meta);
}

#[test]
fn bytes_that_no_binary_writes_are_malformed_at_every_cut() {
  let meta = sample();
  let bytes = encode(&meta).unwrap();
  for end in 0..bytes.len() {
    assert!(matches!(decode(meta.core.id, &bytes[..end]), Err(Error::Malformed { .. })), "cut at {end}");
  }
  let longer = [&bytes[..], &[0]].concat();
  assert!(matches!(decode(meta.core.id, &longer), Err(Error::Malformed { .. })));
  let mut newer = bytes.to_vec();
  newer[4] ^= 1;
  assert!(matches!(decode(meta.core.id, &newer), Err(Error::UnknownFingerprint { .. })));
}

#[test]
fn a_name_that_is_content_is_refused() {
  let mut meta = sample();
  meta.core.actor = "x".repeat(NAME_BYTES_MAX + 1);
  assert!(matches!(encode(&meta), Err(Error::NameTooLong { what: "actor", bytes: 257 })));
}

/// Permanent: the layout that is hashed for the core.
#[test]
fn the_hash_of_the_core_stays() {
  let meta = sample();
  assert_eq!(hex(core_hash(&meta.core)), "6c9e5409c1657c966babc1486d4268e4b30ae0a4b74bfc2e1fa9434699914b7c");
  let mut elsewhere = meta.clone();
  elsewhere.place.epoch += 1;
  elsewhere.prevhash = [0; 32];
  let elsewhere = PaMeta::new(elsewhere.core, elsewhere.prevhash, elsewhere.place);
  assert_eq!(core_hash(&elsewhere.core), core_hash(&meta.core), "place and prevhash are no part of it");
}

#[test]
fn the_hash_of_the_core_covers_each_of_its_fields() {
  let meta = sample();
  let changes: [fn(&mut Meta); 10] = [
    |core| core.kind = Kind::Input,
    |core| core.agent = AgentId(Uuid::nil()),
    |core| core.ordinal += 1,
    |core| core.at = core.at.plus_millis(1),
    |core| core.cause = Uuid::nil(),
    |core| core.correlation = Uuid::nil(),
    |core| core.actor.push('x'),
    |core| core.origin = Origin::Owner,
    |core| core.producer.push('x'),
    |core| core.key.clear(),
  ];
  for (at, change) in changes.iter().enumerate() {
    let mut core = meta.core.clone();
    change(&mut core);
    assert_ne!(core_hash(&core), core_hash(&meta.core), "change {at}");
  }
}

/// Permanent: the layout of an agent's chain.
#[test]
fn the_hash_of_the_chain_stays() {
  assert_eq!(hex(chain(&sample(), "pa.task.TaskStarted.v1", &[0xc3, 0x01, 1, 2, 3])), "d6deba621971ce2feef59034dc8a0ecd5407868f7c6777a992bf9f6952df1519");
}

/// Permanent: the layout of a whole record's hash, the fence's `last`.
#[test]
fn the_hash_of_a_whole_record_stays() {
  let meta = sample();
  let record = Record {
    id: meta.core.id,
    type_name: "pa.task.TaskStarted.v1".into(),
    source: "pa/decider".into(),
    traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
    meta: encode(&meta).unwrap(),
    value: vec![0xc3, 0x01, 1, 2, 3].into(),
  };
  assert_eq!(hex(digest(&record)), "d5894593a7b82238ee7e780319f051b9b37977c0ebc914188c14fbc599309200");
  let without = Record { traceparent: None, ..record.clone() };
  assert_eq!(hex(digest(&without)), "12fe085d22b00360eea13ad66e72792020a8b0fcfebf9b49ee78a298bd2ac6d6");
  let moved = PaMeta::new(meta.core.clone(), meta.prevhash, Place { epoch: 8, ..meta.place });
  let moved = Record { meta: encode(&moved).unwrap(), ..record.clone() };
  assert_ne!(digest(&moved), digest(&record), "the place is part of the whole record");
}

/// Permanent: where an agent's records are.
#[test]
fn an_agent_stays_in_its_partition() {
  let partitions: Vec<u16> = (0_u128..8).map(|n| partition_of(AgentId(Uuid::from_u128(n)), 8)).collect();
  assert_eq!(partitions, [5, 3, 0, 6, 0, 2, 4, 2]);
  assert_eq!(partition_of(pa_domain::ids::INSTALLATION, 8), 0);
  assert!((0_u128..100).all(|n| partition_of(AgentId(Uuid::from_u128(n)), 1) == 0));
}

/// Permanent: the namespace of derived ids, and how they are derived.
#[test]
fn derived_ids_stay() {
  assert_eq!(NAMESPACE.to_string(), "6f0e6a52-2f5b-4a53-9d0e-7c1f51a6b2d4");
  let input = Uuid::from_u128(0x0192_f0c1_7b2e_7c3a_9d4e_0000_0000_0001);
  let ids = [derived(input, 0).to_string(), derived(input, 1).to_string(), derived(input, 256).to_string()];
  assert_eq!(ids, ["c7ac7e2a-e686-5732-99e6-733a14863dd2", "ef3ab2f6-5ded-5902-a087-e3e174c8fae3", "7e6a6df5-3c84-5167-bb8b-99149a0be160"]);
}
