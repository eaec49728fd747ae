//! One statement for a whole batch, made of one part for each table and kind of change that the batch has.
//!
//! Every part reads `committed`, which has one row where the partition's position is the expected one and was moved, and none otherwise: then no part writes
//! anything. Batches of several partitions may share a statement: the same part of each is then one part with the rows of all, and all positions move or none. One
//! statement is one round trip and one transaction, and a batch without changes of a table pays nothing for that table. Texts repeat from batch to batch (few
//! combinations occur), so the server prepares each once.

use std::borrow::Cow;
use std::fmt::Write as _;

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, PgConnection, Postgres};
use uuid::Uuid;

/// A parameter: a column of a part, or one value.
#[derive(Clone, Debug)]
pub enum Argument<'a> {
  Uuid(Uuid),
  Long(i64),
  Short(i16),
  Bytes(Vec<u8>),
  Text(&'static str),
  Uuids(Vec<Uuid>),
  OptionalUuids(Vec<Option<Uuid>>),
  Longs(Vec<i64>),
  OptionalLongs(Vec<Option<i64>>),
  Ints(Vec<i32>),
  OptionalInts(Vec<Option<i32>>),
  Shorts(Vec<i16>),
  Booleans(Vec<bool>),
  OptionalBooleans(Vec<Option<bool>>),
  Texts(Vec<Cow<'a, str>>),
  OptionalTexts(Vec<Option<Cow<'a, str>>>),
  ByteStrings(Vec<Vec<u8>>),
}

impl<'a> Argument<'a> {
  /// A column of texts.
  pub fn texts(values: impl Iterator<Item = &'a str>) -> Self {
    Self::Texts(values.map(storable).collect())
  }

  /// A column of texts that may be absent.
  pub fn optional_texts(values: impl Iterator<Item = Option<&'a str>>) -> Self {
    Self::OptionalTexts(values.map(|value| value.map(storable)).collect())
  }

  /// Adds the rows of the same column of another batch.
  fn append(&mut self, more: Self) {
    match (self, more) {
      (Self::Uuids(rows), Self::Uuids(more)) => rows.extend(more),
      (Self::OptionalUuids(rows), Self::OptionalUuids(more)) => rows.extend(more),
      (Self::Longs(rows), Self::Longs(more)) => rows.extend(more),
      (Self::OptionalLongs(rows), Self::OptionalLongs(more)) => rows.extend(more),
      (Self::Ints(rows), Self::Ints(more)) => rows.extend(more),
      (Self::OptionalInts(rows), Self::OptionalInts(more)) => rows.extend(more),
      (Self::Shorts(rows), Self::Shorts(more)) => rows.extend(more),
      (Self::Booleans(rows), Self::Booleans(more)) => rows.extend(more),
      (Self::OptionalBooleans(rows), Self::OptionalBooleans(more)) => rows.extend(more),
      (Self::Texts(rows), Self::Texts(more)) => rows.extend(more),
      (Self::OptionalTexts(rows), Self::OptionalTexts(more)) => rows.extend(more),
      (Self::ByteStrings(rows), Self::ByteStrings(more)) => rows.extend(more),
      (rows, more) => unreachable!("a part has the same columns in every batch, each of them an array: {rows:?} {more:?}"),
    }
  }

  fn into_owned(self) -> Argument<'static> {
    match self {
      Self::Uuid(value) => Argument::Uuid(value),
      Self::Long(value) => Argument::Long(value),
      Self::Short(value) => Argument::Short(value),
      Self::Bytes(value) => Argument::Bytes(value),
      Self::Text(value) => Argument::Text(value),
      Self::Uuids(rows) => Argument::Uuids(rows),
      Self::OptionalUuids(rows) => Argument::OptionalUuids(rows),
      Self::Longs(rows) => Argument::Longs(rows),
      Self::OptionalLongs(rows) => Argument::OptionalLongs(rows),
      Self::Ints(rows) => Argument::Ints(rows),
      Self::OptionalInts(rows) => Argument::OptionalInts(rows),
      Self::Shorts(rows) => Argument::Shorts(rows),
      Self::Booleans(rows) => Argument::Booleans(rows),
      Self::OptionalBooleans(rows) => Argument::OptionalBooleans(rows),
      Self::Texts(rows) => Argument::Texts(rows.into_iter().map(|text| Cow::Owned(text.into_owned())).collect()),
      Self::OptionalTexts(rows) => Argument::OptionalTexts(rows.into_iter().map(|text| text.map(|text| Cow::Owned(text.into_owned()))).collect()),
      Self::ByteStrings(rows) => Argument::ByteStrings(rows),
    }
  }
}

/// A text in which each `?` stands for the next of its arguments.
#[derive(Clone, Debug, Default)]
struct Piece<'a> {
  text: &'static str,
  arguments: Vec<Argument<'a>>,
}

impl<'a> Piece<'a> {
  fn new(text: &'static str, arguments: impl IntoIterator<Item = Argument<'a>>) -> Self {
    let piece = Self { text, arguments: arguments.into_iter().collect() };
    debug_assert_eq!(text.matches('?').count(), piece.arguments.len(), "every ? has its argument: {text}");
    piece
  }
}

/// The rows of a batch: for each table and kind of change one part, whose arguments are columns.
#[derive(Clone, Debug, Default)]
pub struct Parts<'a>(Vec<Piece<'a>>);

impl<'a> Parts<'a> {
  /// Adds a part.
  pub fn part(&mut self, text: &'static str, arguments: impl IntoIterator<Item = Argument<'a>>) {
    self.0.push(Piece::new(text, arguments));
  }

  /// The same rows, borrowing nothing.
  pub(crate) fn into_owned(self) -> Parts<'static> {
    let owned = |piece: Piece<'a>| Piece { text: piece.text, arguments: piece.arguments.into_iter().map(Argument::into_owned).collect() };
    Parts(self.0.into_iter().map(owned).collect())
  }

  /// Adds the rows of another batch. The two have no agent in common: no row of one is the other's.
  pub(crate) fn append(&mut self, more: Self) {
    for piece in more.0 {
      match self.0.iter_mut().find(|known| known.text == piece.text) {
        Some(known) => known.arguments.iter_mut().zip(piece.arguments).for_each(|(column, rows)| column.append(rows)),
        None => self.0.push(piece),
      }
    }
  }
}

/// A whole statement.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
  beginning: Piece<'a>,
  parts: Parts<'a>,
  end: Piece<'a>,
}

impl<'a> Statement<'a> {
  /// Begins with `WITH …, committed AS (…)`, the row or none that every part reads.
  pub fn beginning(text: &'static str, arguments: impl IntoIterator<Item = Argument<'a>>) -> Self {
    Self { beginning: Piece::new(text, arguments), parts: Parts::default(), end: Piece::default() }
  }

  /// With the rows of a batch.
  #[must_use]
  pub fn with(mut self, parts: Parts<'a>) -> Self {
    self.parts.append(parts);
    self
  }

  /// Ends the statement with the query whose answer is read.
  #[must_use]
  pub fn end(mut self, text: &'static str, arguments: impl IntoIterator<Item = Argument<'a>>) -> Self {
    self.end = Piece::new(text, arguments);
    self
  }

  /// The whole text.
  pub fn text(&self) -> String {
    let (mut text, mut number) = (String::with_capacity(6_144), 0);
    push(&mut text, &mut number, self.beginning.text);
    for (part, piece) in self.parts.0.iter().enumerate() {
      write!(text, ", part{} AS (", part + 1).expect("a string takes every text");
      push(&mut text, &mut number, piece.text);
      text.push(')');
    }
    text.push(' ');
    push(&mut text, &mut number, self.end.text);
    text
  }

  /// Sends the statement, which ends with a query for one number.
  pub async fn fetch(&self, connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    // Safe: the text consists of static parts and numbers.
    let mut query = sqlx::query(AssertSqlSafe(self.text()));
    let pieces = std::iter::once(&self.beginning).chain(&self.parts.0).chain(std::iter::once(&self.end));
    for argument in pieces.flat_map(|piece| &piece.arguments) {
      query = bind(query, argument);
    }
    sqlx::Row::try_get(&query.fetch_one(connection).await?, 0)
  }
}

/// Writes a piece's text, with each `?` numbered.
fn push(text: &mut String, number: &mut usize, piece: &str) {
  let mut between = piece.split('?');
  text.push_str(between.next().expect("a split has a first piece"));
  for between in between {
    *number += 1;
    write!(text, "${number}").expect("a string takes every text");
    text.push_str(between);
  }
}

fn bind<'q>(query: Query<'q, Postgres, PgArguments>, argument: &'q Argument<'_>) -> Query<'q, Postgres, PgArguments> {
  match argument {
    Argument::Uuid(value) => query.bind(*value),
    Argument::Long(value) => query.bind(*value),
    Argument::Short(value) => query.bind(*value),
    Argument::Bytes(value) => query.bind(value),
    Argument::Text(value) => query.bind(*value),
    Argument::Uuids(values) => query.bind(values),
    Argument::OptionalUuids(values) => query.bind(values),
    Argument::Longs(values) => query.bind(values),
    Argument::OptionalLongs(values) => query.bind(values),
    Argument::Ints(values) => query.bind(values),
    Argument::OptionalInts(values) => query.bind(values),
    Argument::Shorts(values) => query.bind(values),
    Argument::Booleans(values) => query.bind(values),
    Argument::OptionalBooleans(values) => query.bind(values),
    Argument::Texts(values) => query.bind(values),
    Argument::OptionalTexts(values) => query.bind(values),
    Argument::ByteStrings(values) => query.bind(values),
  }
}

/// Postgres takes no NUL in a text. Records hold none (they are replaced where text comes in), but one that does must not stop the read model (D28).
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
  if text.as_bytes().contains(&0) { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// A partition's number as a column holds it.
pub(crate) fn short(partition: u16) -> i16 {
  i16::try_from(partition).expect("a log has at most 32,767 partitions")
}
