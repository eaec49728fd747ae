//! Writing.

use serde::{Serialize, Serializer, ser};

use super::Error;

pub(super) struct Writer<'b> {
  pub(super) bytes: &'b mut Vec<u8>,
}

impl Writer<'_> {
  /// Zigzag, then seven bits a byte, lowest first.
  fn long(&mut self, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
      self.bytes.push(u8::try_from(rest & 0x7f).unwrap_or_default() | 0x80);
      rest >>= 7;
    }
    self.bytes.push(u8::try_from(rest).unwrap_or_default());
  }

  fn length(&mut self, length: usize) -> Result<(), Error> {
    self.long(i64::try_from(length).map_err(|_| Error::Length(i64::MAX))?);
    Ok(())
  }
}

impl<'w, 'b> Serializer for &'w mut Writer<'b> {
  type Ok = ();
  type Error = Error;
  type SerializeSeq = Items<'w, 'b>;
  type SerializeStruct = Self;
  type SerializeTuple = ser::Impossible<(), Error>;
  type SerializeTupleStruct = ser::Impossible<(), Error>;
  type SerializeTupleVariant = ser::Impossible<(), Error>;
  type SerializeMap = ser::Impossible<(), Error>;
  type SerializeStructVariant = ser::Impossible<(), Error>;

  fn is_human_readable(&self) -> bool {
    false
  }

  fn serialize_bool(self, value: bool) -> Result<(), Error> {
    self.bytes.push(u8::from(value));
    Ok(())
  }

  fn serialize_i8(self, value: i8) -> Result<(), Error> {
    self.serialize_i64(value.into())
  }

  fn serialize_i16(self, value: i16) -> Result<(), Error> {
    self.serialize_i64(value.into())
  }

  fn serialize_i32(self, value: i32) -> Result<(), Error> {
    self.serialize_i64(value.into())
  }

  fn serialize_i64(self, value: i64) -> Result<(), Error> {
    self.long(value);
    Ok(())
  }

  fn serialize_u8(self, value: u8) -> Result<(), Error> {
    self.serialize_i64(value.into())
  }

  fn serialize_u16(self, value: u16) -> Result<(), Error> {
    self.serialize_i64(value.into())
  }

  fn serialize_u32(self, value: u32) -> Result<(), Error> {
    self.serialize_i64(value.into())
  }

  fn serialize_u64(self, _value: u64) -> Result<(), Error> {
    Err(Error::Shape("an unsigned 64-bit number"))
  }

  fn serialize_f32(self, _value: f32) -> Result<(), Error> {
    Err(Error::Shape("a floating-point number"))
  }

  fn serialize_f64(self, _value: f64) -> Result<(), Error> {
    Err(Error::Shape("a floating-point number"))
  }

  fn serialize_char(self, value: char) -> Result<(), Error> {
    self.serialize_str(value.encode_utf8(&mut [0; 4]))
  }

  fn serialize_str(self, value: &str) -> Result<(), Error> {
    self.serialize_bytes(value.as_bytes())
  }

  fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
    self.length(value.len())?;
    self.bytes.extend_from_slice(value);
    Ok(())
  }

  fn serialize_none(self) -> Result<(), Error> {
    self.serialize_i64(0)
  }

  fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
    self.long(1);
    value.serialize(self)
  }

  fn serialize_unit(self) -> Result<(), Error> {
    Err(Error::Shape("a unit"))
  }

  fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
    Err(Error::Shape("a unit struct"))
  }

  fn serialize_unit_variant(self, _name: &'static str, index: u32, _variant: &'static str) -> Result<(), Error> {
    self.serialize_i64(index.into())
  }

  fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<(), Error> {
    value.serialize(self)
  }

  fn serialize_newtype_variant<T: Serialize + ?Sized>(self, _: &'static str, _: u32, _: &'static str, _: &T) -> Result<(), Error> {
    Err(Error::Shape("an enum with data"))
  }

  fn serialize_seq(self, length: Option<usize>) -> Result<Items<'w, 'b>, Error> {
    let length = length.ok_or(Error::Shape("a sequence of unknown length"))?;
    if length > 0 {
      self.length(length)?;
    }
    Ok(Items { writer: self, left: length })
  }

  fn serialize_tuple(self, _length: usize) -> Result<Self::SerializeTuple, Error> {
    Err(Error::Shape("a tuple"))
  }

  fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Self::SerializeTupleStruct, Error> {
    Err(Error::Shape("a tuple struct"))
  }

  fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self::SerializeTupleVariant, Error> {
    Err(Error::Shape("an enum with data"))
  }

  fn serialize_map(self, _length: Option<usize>) -> Result<Self::SerializeMap, Error> {
    Err(Error::Shape("a map"))
  }

  fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Self, Error> {
    Ok(self)
  }

  fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self::SerializeStructVariant, Error> {
    Err(Error::Shape("an enum with data"))
  }
}

/// An array as one block: its count, its items, and a count of 0 that ends it.
pub(super) struct Items<'w, 'b> {
  writer: &'w mut Writer<'b>,
  left: usize,
}

impl ser::SerializeSeq for Items<'_, '_> {
  type Ok = ();
  type Error = Error;

  fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
    self.left = self.left.checked_sub(1).ok_or(Error::Shape("a sequence longer than it said"))?;
    value.serialize(&mut *self.writer)
  }

  fn end(self) -> Result<(), Error> {
    if self.left > 0 {
      return Err(Error::Shape("a sequence shorter than it said"));
    }
    self.writer.long(0);
    Ok(())
  }
}

impl ser::SerializeStruct for &mut Writer<'_> {
  type Ok = ();
  type Error = Error;

  fn serialize_field<T: Serialize + ?Sized>(&mut self, _name: &'static str, value: &T) -> Result<(), Error> {
    value.serialize(&mut **self)
  }

  fn skip_field(&mut self, _name: &'static str) -> Result<(), Error> {
    Err(Error::Shape("a field that is left out"))
  }

  fn end(self) -> Result<(), Error> {
    Ok(())
  }
}
