//! One statement for a whole batch, made of one part for each table and kind of change that the batch has.
//!
//! Every part reads `committed`, the update of the partition's position: where the position is another one than expected, `committed` is empty and no part writes
//! anything. One statement is one round trip and one transaction, and a batch without changes of a table pays nothing for that table. Texts repeat from batch to
//! batch (few combinations occur), so the server prepares each once.

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
  Bytes(&'a [u8]),
  Text(&'a str),
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
}

/// The statement under construction.
#[derive(Clone, Debug, Default)]
pub struct Statement<'a> {
  text: String,
  parts: usize,
  arguments: Vec<Argument<'a>>,
}

impl<'a> Statement<'a> {
  /// Begins with the part that every other part reads, as `WITH committed AS (…)`; each `?` of a part stands for its next argument.
  pub fn beginning(committed: &'static str, arguments: impl IntoIterator<Item = Argument<'a>>) -> Self {
    let mut statement = Self { text: String::with_capacity(4_096), parts: 0, arguments: Vec::with_capacity(96) };
    statement.text.push_str("WITH committed AS (");
    statement.push(committed, arguments);
    statement.text.push(')');
    statement
  }

  /// Adds a part.
  pub fn part(&mut self, text: &'static str, arguments: impl IntoIterator<Item = Argument<'a>>) {
    self.parts += 1;
    write!(self.text, ", part{} AS (", self.parts).expect("a string takes every text");
    self.push(text, arguments);
    self.text.push(')');
  }

  /// Ends the statement with the query whose answer is read.
  pub fn end(&mut self, text: &'static str, arguments: impl IntoIterator<Item = Argument<'a>>) {
    self.text.push(' ');
    self.push(text, arguments);
  }

  /// The whole text.
  pub fn text(&self) -> &str {
    &self.text
  }

  /// Sends the statement, which ends with a query for one number.
  pub async fn fetch(&self, connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    // Safe: the text consists of static parts and numbers.
    let mut query = sqlx::query(AssertSqlSafe(self.text.clone()));
    for argument in &self.arguments {
      query = bind(query, argument);
    }
    sqlx::Row::try_get(&query.fetch_one(connection).await?, 0)
  }

  fn push(&mut self, text: &'static str, arguments: impl IntoIterator<Item = Argument<'a>>) {
    let mut pieces = text.split('?');
    self.text.push_str(pieces.next().expect("a split has a first piece"));
    let before = self.arguments.len();
    self.arguments.extend(arguments);
    let mut number = before;
    for piece in pieces {
      number += 1;
      write!(self.text, "${number}").expect("a string takes every text");
      self.text.push_str(piece);
    }
    debug_assert_eq!(number, self.arguments.len(), "every ? has its argument: {text}");
  }
}

fn bind<'q>(query: Query<'q, Postgres, PgArguments>, argument: &'q Argument<'_>) -> Query<'q, Postgres, PgArguments> {
  match argument {
    Argument::Uuid(value) => query.bind(*value),
    Argument::Long(value) => query.bind(*value),
    Argument::Short(value) => query.bind(*value),
    Argument::Bytes(value) => query.bind(*value),
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
  }
}

/// Postgres takes no NUL in a text. Records hold none (they are replaced where text comes in), but one that does must not stop the read model (D28).
fn storable(text: &str) -> Cow<'_, str> {
  if text.as_bytes().contains(&0) { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// A partition's number as a column holds it.
pub(crate) fn short(partition: u16) -> i16 {
  i16::try_from(partition).expect("a log has at most 32,767 partitions")
}
