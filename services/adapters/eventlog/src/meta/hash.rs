//! The byte layouts that are hashed. Permanent: every one is pinned by a test vector.
//!
//! All start with a label, numbers are big-endian, and everything of variable length follows its length as 4 bytes:
//!
//! | Hash | Label | Then |
//! |---|---|---|
//! | core | `pa/core/1` | kind (1 byte: input 0, event 1, partition 2) · agent (16) · ordinal (8) · `at` in ms (8) · cause (16) · correlation (16) · len, actor · origin (1 byte: owner 0, agent 1, tool 2, third party 3, platform 4) · len, producer · len, key |
//! | chain | `pa/chain/1` | the event's `prevhash` (32) · id (16) · len, type · core hash (32) · len, stored value |
//! | record | `pa/record/1` | id (16) · len, type · len, source · 0, or 1 and len, traceparent · len, `pa-meta` bytes · len, value |
//! | sealing's AAD (not hashed) | `pa/aad/1` | id (16) · len, type · core hash (32) |

use aws_lc_rs::digest::{self, Context, SHA256};
use pa_domain::{AgentId, Meta};
use uuid::Uuid;

use super::PaMeta;
use super::avro::{kind_index, origin_index};
use crate::record::{Partition, Record};

/// The hash that binds a record's metadata to its body; `place` and `prevhash` are no part of it.
pub fn core_hash(core: &Meta) -> [u8; 32] {
  let mut bytes = Vec::with_capacity(192);
  bytes.extend_from_slice(b"pa/core/1");
  bytes.push(kind_index(core.kind));
  bytes.extend_from_slice(core.agent.0.as_bytes());
  bytes.extend_from_slice(&core.ordinal.to_be_bytes());
  bytes.extend_from_slice(&core.at.0.to_be_bytes());
  bytes.extend_from_slice(core.cause.as_bytes());
  bytes.extend_from_slice(core.correlation.as_bytes());
  put(&mut bytes, core.actor.as_bytes());
  bytes.push(origin_index(core.origin));
  put(&mut bytes, core.producer.as_bytes());
  put(&mut bytes, &core.key);
  sha256(&bytes)
}

/// The chain's hash after an event: the `prevhash` of the agent's next event.
pub fn chain(meta: &PaMeta, type_name: &str, value: &[u8]) -> [u8; 32] {
  let mut context = Context::new(&SHA256);
  context.update(b"pa/chain/1");
  context.update(&meta.prevhash);
  context.update(meta.core.id.as_bytes());
  feed(&mut context, type_name.as_bytes());
  context.update(&core_hash(&meta.core));
  feed(&mut context, value);
  finish(context)
}

/// The hash of a whole record: the fence's `last`, by which a reader notices a log with another history.
pub fn digest(record: &Record) -> [u8; 32] {
  let mut context = Context::new(&SHA256);
  context.update(b"pa/record/1");
  context.update(record.id.as_bytes());
  feed(&mut context, record.type_name.as_bytes());
  feed(&mut context, record.source.as_bytes());
  match &record.traceparent {
    None => context.update(&[0]),
    Some(trace) => {
      context.update(&[1]);
      feed(&mut context, trace.as_bytes());
    }
  }
  feed(&mut context, &record.meta);
  feed(&mut context, &record.value);
  finish(context)
}

/// What the sealed body is bound to.
pub(crate) fn aad(id: Uuid, type_name: &str, core: &Meta) -> Vec<u8> {
  let mut bytes = Vec::with_capacity(128);
  bytes.extend_from_slice(b"pa/aad/1");
  bytes.extend_from_slice(id.as_bytes());
  put(&mut bytes, type_name.as_bytes());
  bytes.extend_from_slice(&core_hash(core));
  bytes
}

/// An agent's partition in a log of `partitions`: the first 8 bytes, big-endian, of SHA-256(agent id), modulo the count.
pub fn partition_of(agent: AgentId, partitions: Partition) -> Partition {
  let hash = sha256(agent.0.as_bytes());
  let first = u64::from_be_bytes(hash[..8].try_into().expect("a hash has 32 bytes"));
  Partition::try_from(first % u64::from(partitions)).expect("a remainder is below its divisor")
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
  bytes.extend_from_slice(&length(part));
  bytes.extend_from_slice(part);
}

fn feed(context: &mut Context, part: &[u8]) {
  context.update(&length(part));
  context.update(part);
}

fn length(part: &[u8]) -> [u8; 4] {
  u32::try_from(part.len()).expect("records are far below 4 GiB").to_be_bytes()
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
  digest::digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn finish(context: Context) -> [u8; 32] {
  context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}
