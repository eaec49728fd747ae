//! Sealed values: permanent choices, pinned by vectors.

use hex::encode as hex;
use pa_domain::meta::Kind;
use pa_domain::{AgentId, Origin, Timestamp};
use uuid::Uuid;

use super::*;
use crate::codec::Encoded;

fn core() -> Meta {
  let id = |n: u128| Uuid::from_u128(0x0192_f0c1_7b2e_7c3a_9d4e_0000_0000_0000 + n);
  Meta {
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
  }
}

const TYPE: &str = "pa.task.TaskStarted.v1";
const HEADER: [u8; 10] = [0xc3, 0x01, 1, 2, 3, 4, 5, 6, 7, 8];

fn keys() -> AgentKeys {
  AgentKeys::derive(1, &[5; 32])
}

fn encoded() -> Encoded {
  Encoded { type_name: TYPE.into(), bytes: [HEADER.as_slice(), &[0; NONCE_BYTES], b"the body"].concat(), body_at: 22 }
}

/// Permanent: key derivation, additional data and layout of a sealed value. The vector comes from an independent implementation.
#[test]
fn a_value_sealed_long_ago_opens() {
  let sealed = hex::decode("000102030405060708090a0bd3a7b7167f18e107611f405b0bb1b3533d7e346bf8ec4849").unwrap();
  assert_eq!(open(&keys(), &core(), TYPE, &sealed).as_deref(), Some(b"the body".as_slice()));
}

/// Permanent: the labels that separate sealing, blob names and key hashes.
#[test]
fn the_other_keys_stay_as_well() {
  assert_eq!(hex(keys().hash_key(b"message-17")), "2a31c5473e6bca6abaac170709275086b827443c17f6677e6908a659fb511f9a");
  let blob = aws_lc_rs::hmac::sign(&keys().blob, b"content");
  assert_eq!(hex(blob.as_ref()), "c05ca67924c0e2cd7c78c8b213c68a6d7cdf72fce2f2e30d98e96e32ce2931b4");
}

/// Permanent: what a sealed body is bound to.
#[test]
fn the_additional_data_stay() {
  let expected = "70612f6161642f310192f0c17b2e7c3a9d4e0000000000010000001670612e7461736b2e5461736b537461727465642e7631\
                  6c9e5409c1657c966babc1486d4268e4b30ae0a4b74bfc2e1fa9434699914b7c";
  assert_eq!(hex(aad(core().id, TYPE, &core())), expected.replace(' ', ""));
}

#[test]
fn a_sealed_value_is_header_nonce_body_and_tag() {
  let sealed = seal(&keys(), &core(), encoded());
  assert_eq!(sealed.len(), HEADER_BYTES + NONCE_BYTES + b"the body".len() + TAG_BYTES);
  assert_eq!(sealed[..10], HEADER);
  assert_eq!(open(&keys(), &core(), TYPE, &sealed[10..]).as_deref(), Some(b"the body".as_slice()));
  assert_ne!(seal(&keys(), &core(), encoded()), sealed, "every sealing has its own nonce");
}

#[test]
fn a_value_opens_only_where_it_was_sealed() {
  let sealed = seal(&keys(), &core(), encoded()).split_off(HEADER_BYTES);
  assert!(open(&AgentKeys::derive(1, &[6; 32]), &core(), TYPE, &sealed).is_none(), "another agent's key");
  assert!(open(&keys(), &core(), "pa.task.TaskStarted.v2", &sealed).is_none(), "another type");
  let changed: [fn(&mut Meta); 4] =
    [|core| core.id = Uuid::nil(), |core| core.actor = "owner".into(), |core| core.origin = Origin::Owner, |core| core.ordinal = 43];
  for change in changed {
    let mut other = core();
    change(&mut other);
    assert!(open(&keys(), &other, TYPE, &sealed).is_none(), "who asked can't be changed");
  }
  for at in 0..sealed.len() {
    let mut flipped = sealed.clone();
    flipped[at] ^= 1;
    assert!(open(&keys(), &core(), TYPE, &flipped).is_none(), "byte {at}");
    assert!(open(&keys(), &core(), TYPE, &sealed[..at]).is_none(), "cut at {at}");
  }
}
