//! The Avro single-object form of the `pa-meta` header, written and read by hand: about 200 bytes that every reader needs of every record.
//!
//! A test proves the same bytes as apache-avro's for `schemas/log/meta.v1.avsc`.

use bytes::Bytes;
use pa_domain::meta::Kind;
use pa_domain::{AgentId, Meta, Origin, Timestamp};
use uuid::Uuid;

use super::{Error, NAME_BYTES_MAX, NO_HASH, PaMeta, Place};

/// `C3 01` and the fingerprint of `schemas/log/meta.v1.avsc`.
pub const FINGERPRINT: [u8; 10] = [0xc3, 0x01, 0xc2, 0xef, 0x12, 0x52, 0x16, 0x12, 0x21, 0x1d];

/// Encodes metadata as the `pa-meta` header's bytes.
///
/// # Errors
/// A name is too long.
pub fn encode(meta: &PaMeta) -> Result<Bytes, Error> {
  for (what, text) in [("actor", &meta.core.actor), ("producer", &meta.core.producer)] {
    if text.len() > NAME_BYTES_MAX {
      return Err(Error::NameTooLong { what, bytes: text.len() });
    }
  }
  let core = &meta.core;
  let mut out = Vec::with_capacity(224);
  out.extend_from_slice(&FINGERPRINT);
  put_long(&mut out, kind_index(core.kind).into());
  put_bytes(&mut out, core.agent.0.as_bytes());
  put_long(&mut out, core.ordinal);
  put_long(&mut out, core.at.0);
  put_bytes(&mut out, core.cause.as_bytes());
  put_bytes(&mut out, core.correlation.as_bytes());
  put_bytes(&mut out, core.actor.as_bytes());
  put_long(&mut out, origin_index(core.origin).into());
  put_bytes(&mut out, core.producer.as_bytes());
  put_bytes(&mut out, &core.key);
  match core.kind {
    Kind::Event => put_bytes(&mut out, &meta.prevhash),
    Kind::Input | Kind::Partition => put_bytes(&mut out, &[]),
  }
  let place = &meta.place;
  put_long(&mut out, place.input);
  out.push(u8::from(place.held));
  put_long(&mut out, place.part.into());
  put_long(&mut out, place.parts.into());
  put_long(&mut out, place.epoch);
  put_long(&mut out, place.seq);
  put_long(&mut out, place.keyid.into());
  Ok(Bytes::from(out))
}

/// Decodes the `pa-meta` header of record `id`.
///
/// # Errors
/// The schema is not known, or the bytes are not what any binary writes: both stop a reader.
pub fn decode(id: Uuid, bytes: &[u8]) -> Result<PaMeta, Error> {
  let malformed = |what| Error::Malformed { id, what };
  let (header, rest) = bytes.split_at_checked(FINGERPRINT.len()).ok_or(malformed("shorter than its header"))?;
  if header[..2] != FINGERPRINT[..2] {
    return Err(malformed("not an Avro single object"));
  }
  if header != FINGERPRINT {
    return Err(Error::UnknownFingerprint { id, fingerprint: hex::encode(&header[2..]) });
  }
  let mut from = rest;
  let meta = fields(id, &mut from).map_err(malformed)?;
  if from.is_empty() { Ok(meta) } else { Err(malformed("bytes after its end")) }
}

fn fields(id: Uuid, from: &mut &[u8]) -> Result<PaMeta, &'static str> {
  let kind = kind_at(take_long(from)?)?;
  let agent = AgentId(take_uuid(from)?);
  let ordinal = take_long(from)?;
  let at = Timestamp(take_long(from)?);
  let cause = take_uuid(from)?;
  let correlation = take_uuid(from)?;
  let actor = take_name(from)?;
  let origin = origin_at(take_long(from)?)?;
  let producer = take_name(from)?;
  let key = take_bytes(from)?.to_vec();
  if !matches!(key.len(), 0 | 32 | 64) {
    return Err("a key hash that is neither 32 nor 64 bytes");
  }
  let prevhash = match (kind, take_bytes(from)?) {
    (Kind::Event, hash) => hash.try_into().map_err(|_| "an event without prevhash")?,
    (Kind::Input | Kind::Partition, []) => NO_HASH,
    (Kind::Input | Kind::Partition, _) => return Err("a prevhash outside an agent's events"),
  };
  let place = Place {
    input: take_long(from)?,
    held: take_bool(from)?,
    part: take_int(from)?,
    parts: take_int(from)?,
    epoch: take_long(from)?,
    seq: take_long(from)?,
    keyid: take_int(from)?,
  };
  if place.part < 1 || place.part > place.parts {
    return Err("a part outside its decision");
  }
  let (input, held, part) = super::mirrored(kind, &place);
  let core = Meta { id, kind, agent, ordinal, at, cause, correlation, actor, origin, producer, key, input, held, part };
  Ok(PaMeta { core, prevhash, place })
}

pub(super) fn kind_index(kind: Kind) -> u8 {
  match kind {
    Kind::Input => 0,
    Kind::Event => 1,
    Kind::Partition => 2,
  }
}

fn kind_at(index: i64) -> Result<Kind, &'static str> {
  match index {
    0 => Ok(Kind::Input),
    1 => Ok(Kind::Event),
    2 => Ok(Kind::Partition),
    _ => Err("an unknown kind"),
  }
}

pub(super) fn origin_index(origin: Origin) -> u8 {
  match origin {
    Origin::Owner => 0,
    Origin::Agent => 1,
    Origin::Tool => 2,
    Origin::ThirdParty => 3,
    Origin::Platform => 4,
  }
}

fn origin_at(index: i64) -> Result<Origin, &'static str> {
  match index {
    0 => Ok(Origin::Owner),
    1 => Ok(Origin::Agent),
    2 => Ok(Origin::Tool),
    3 => Ok(Origin::ThirdParty),
    4 => Ok(Origin::Platform),
    _ => Err("an unknown origin"),
  }
}

/// Zig-zag, then seven bits a byte, lowest first.
fn put_long(out: &mut Vec<u8>, value: i64) {
  let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
  loop {
    let [low, ..] = rest.to_le_bytes();
    rest >>= 7;
    if rest == 0 {
      out.push(low & 0x7f);
      return;
    }
    out.push(low | 0x80);
  }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
  put_long(out, i64::try_from(bytes.len()).expect("lengths fit into an i64"));
  out.extend_from_slice(bytes);
}

fn take_long(from: &mut &[u8]) -> Result<i64, &'static str> {
  let mut value = 0_u64;
  for (at, byte) in from.iter().take(10).enumerate() {
    value |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(at).expect("at most 9")).ok_or("a number that is too long")?;
    if byte & 0x80 == 0 {
      *from = &from[at + 1..];
      return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
    }
  }
  Err("a number without end")
}

fn take_int(from: &mut &[u8]) -> Result<i32, &'static str> {
  i32::try_from(take_long(from)?).map_err(|_| "a number that is too large")
}

fn take_bool(from: &mut &[u8]) -> Result<bool, &'static str> {
  let (first, rest) = from.split_first().ok_or("cut short")?;
  *from = rest;
  match first {
    0 => Ok(false),
    1 => Ok(true),
    _ => Err("neither true nor false"),
  }
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
  let length = usize::try_from(take_long(from)?).map_err(|_| "a negative length")?;
  let (bytes, rest) = from.split_at_checked(length).ok_or("cut short")?;
  *from = rest;
  Ok(bytes)
}

fn take_uuid(from: &mut &[u8]) -> Result<Uuid, &'static str> {
  Uuid::from_slice(take_bytes(from)?).map_err(|_| "an id that is not 16 bytes")
}

fn take_name(from: &mut &[u8]) -> Result<String, &'static str> {
  let bytes = take_bytes(from)?;
  if bytes.len() > NAME_BYTES_MAX {
    return Err("a name that is too long");
  }
  std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| "a name that is not UTF-8")
}
