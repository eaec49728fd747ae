//! Reading.

use serde::Deserializer;
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

use super::Error;

/// A 64-bit number has at most ten groups of seven bits.
const NUMBER_BYTES_MAX: u32 = 10;

pub(super) struct Reader<'d> {
  pub(super) bytes: &'d [u8],
}

impl<'d> Reader<'d> {
  fn byte(&mut self) -> Result<u8, Error> {
    let (first, rest) = self.bytes.split_first().ok_or(Error::End)?;
    self.bytes = rest;
    Ok(*first)
  }

  fn long(&mut self) -> Result<i64, Error> {
    let mut value = 0_u64;
    for group in 0..NUMBER_BYTES_MAX {
      let byte = self.byte()?;
      if group == NUMBER_BYTES_MAX - 1 && byte > 1 {
        break;
      }
      value |= u64::from(byte & 0x7f) << (7 * group);
      if byte & 0x80 == 0 {
        return Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()));
      }
    }
    Err(Error::Number)
  }

  fn slice(&mut self) -> Result<&'d [u8], Error> {
    let length = self.long()?;
    let length = usize::try_from(length).map_err(|_| Error::Length(length))?;
    let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Error::End)?;
    self.bytes = rest;
    Ok(taken)
  }

  fn text(&mut self) -> Result<&'d str, Error> {
    std::str::from_utf8(self.slice()?).map_err(|_| Error::Text)
  }
}

macro_rules! numbers {
  ($($method:ident)+) => { $(
    fn $method<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Error> {
      visitor.visit_i64(self.long()?)
    }
  )+ };
}

macro_rules! no_place {
  ($($method:ident: $what:literal),+ $(,)?) => { $(
    fn $method<V: Visitor<'d>>(self, _visitor: V) -> Result<V::Value, Error> {
      Err(Error::Shape($what))
    }
  )+ };
}

impl<'d> Deserializer<'d> for &mut Reader<'d> {
  type Error = Error;

  numbers! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 }
  no_place! {
    deserialize_any: "a value of no given type", deserialize_u64: "an unsigned 64-bit number", deserialize_f32: "a floating-point number",
    deserialize_f64: "a floating-point number", deserialize_unit: "a unit", deserialize_map: "a map", deserialize_identifier: "an identifier",
    deserialize_ignored_any: "an ignored value",
  }

  fn is_human_readable(&self) -> bool {
    false
  }

  fn deserialize_bool<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Error> {
    match self.byte()? {
      0 => visitor.visit_bool(false),
      1 => visitor.visit_bool(true),
      other => Err(Error::Index(other.into())),
    }
  }

  fn deserialize_char<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Error> {
    self.deserialize_str(visitor)
  }

  fn deserialize_str<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Error> {
    visitor.visit_borrowed_str(self.text()?)
  }

  fn deserialize_string<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Error> {
    self.deserialize_str(visitor)
  }

  fn deserialize_bytes<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Error> {
    visitor.visit_borrowed_bytes(self.slice()?)
  }

  fn deserialize_byte_buf<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Error> {
    self.deserialize_bytes(visitor)
  }

  fn deserialize_option<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Error> {
    match self.long()? {
      0 => visitor.visit_none(),
      1 => visitor.visit_some(self),
      other => Err(Error::Index(other)),
    }
  }

  fn deserialize_unit_struct<V: Visitor<'d>>(self, _name: &'static str, _visitor: V) -> Result<V::Value, Error> {
    Err(Error::Shape("a unit struct"))
  }

  fn deserialize_newtype_struct<V: Visitor<'d>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
    visitor.visit_newtype_struct(self)
  }

  fn deserialize_seq<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, Error> {
    visitor.visit_seq(Items { reader: self, in_block: 0, ended: false })
  }

  fn deserialize_tuple<V: Visitor<'d>>(self, _length: usize, _visitor: V) -> Result<V::Value, Error> {
    Err(Error::Shape("a tuple"))
  }

  fn deserialize_tuple_struct<V: Visitor<'d>>(self, _name: &'static str, _length: usize, _visitor: V) -> Result<V::Value, Error> {
    Err(Error::Shape("a tuple struct"))
  }

  fn deserialize_struct<V: Visitor<'d>>(self, _name: &'static str, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
    visitor.visit_seq(Fields { reader: self, left: fields.len() })
  }

  fn deserialize_enum<V: Visitor<'d>>(self, _name: &'static str, variants: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
    let index = self.long()?;
    let symbol = usize::try_from(index).ok().and_then(|index| variants.get(index)).ok_or(Error::Index(index))?;
    let symbol: StrDeserializer<'_, Error> = symbol.into_deserializer();
    visitor.visit_enum(symbol)
  }
}

/// The blocks of an array.
struct Items<'r, 'd> {
  reader: &'r mut Reader<'d>,
  in_block: u64,
  ended: bool,
}

impl<'d> de::SeqAccess<'d> for Items<'_, 'd> {
  type Error = Error;

  fn next_element_seed<T: DeserializeSeed<'d>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
    if self.ended {
      return Ok(None);
    }
    if self.in_block == 0 {
      let count = self.reader.long()?;
      if count < 0 {
        // A block that says its size in bytes, for readers that skip it.
        self.reader.long()?;
      }
      self.in_block = count.unsigned_abs();
      if self.in_block == 0 {
        self.ended = true;
        return Ok(None);
      }
    }
    self.in_block -= 1;
    seed.deserialize(&mut *self.reader).map(Some)
  }
}

/// The fields of a record, in order.
struct Fields<'r, 'd> {
  reader: &'r mut Reader<'d>,
  left: usize,
}

impl<'d> de::SeqAccess<'d> for Fields<'_, 'd> {
  type Error = Error;

  fn next_element_seed<T: DeserializeSeed<'d>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
    let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
    self.left = left;
    seed.deserialize(&mut *self.reader).map(Some)
  }

  fn size_hint(&self) -> Option<usize> {
    Some(self.left)
  }
}
