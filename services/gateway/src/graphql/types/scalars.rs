//! Scalars of the schema: a position, an instant, any JSON.

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use chrono::{DateTime as Instant, SecondsFormat, Utc};
use pa_domain::Timestamp;

/// A position in the agent's log; opaque to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
  pub ordinal: i64,
  /// The read schema that it was read from; a position of a decision names none.
  pub schema: Option<String>,
}

impl Position {
  /// The position of a decision.
  pub(crate) fn of(ordinal: i64) -> Self {
    Self { ordinal, schema: None }
  }

  fn parse(text: &str) -> Option<Self> {
    let (ordinal, schema) = match text.split_once('@') {
      Some((ordinal, schema)) => (ordinal, Some(schema)),
      None => (text, None),
    };
    let named = schema.is_none_or(|schema| !schema.is_empty() && schema.len() <= 64 && schema.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    let ordinal = ordinal.parse().ok().filter(|ordinal: &i64| *ordinal >= 0)?;
    named.then(|| Self { ordinal, schema: schema.map(str::to_owned) })
  }
}

#[Scalar]
impl ScalarType for Position {
  fn parse(value: Value) -> InputValueResult<Self> {
    match &value {
      Value::String(text) => Self::parse(text).ok_or_else(|| InputValueError::custom("not a position")),
      _ => Err(InputValueError::expected_type(value)),
    }
  }

  fn to_value(&self) -> Value {
    Value::String(match &self.schema {
      Some(schema) => format!("{}@{schema}", self.ordinal),
      None => self.ordinal.to_string(),
    })
  }
}

/// A date and time in RFC 3339 format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DateTime(pub Timestamp);

#[Scalar(specified_by_url = "https://tools.ietf.org/html/rfc3339")]
impl ScalarType for DateTime {
  fn parse(value: Value) -> InputValueResult<Self> {
    match &value {
      Value::String(text) => {
        let instant = Instant::parse_from_rfc3339(text).map_err(|_| InputValueError::custom("not a date and time such as 2026-01-31T09:00:00Z"))?;
        Ok(Self(Timestamp(instant.timestamp_millis())))
      }
      _ => Err(InputValueError::expected_type(value)),
    }
  }

  fn to_value(&self) -> Value {
    // An instant outside of what the calendar knows can't have been stored by a clock; the nearest one that it knows stands for it.
    let instant = Instant::<Utc>::from_timestamp_millis(self.0.0).unwrap_or_default();
    Value::String(instant.to_rfc3339_opts(SecondsFormat::Millis, true))
  }
}

/// Any JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Json(pub serde_json::Value);

#[Scalar(name = "JSON")]
impl ScalarType for Json {
  fn parse(value: Value) -> InputValueResult<Self> {
    Ok(Self(value.into_json()?))
  }

  fn to_value(&self) -> Value {
    // Everything that JSON can say, a GraphQL value can say.
    Value::from_json(self.0.clone()).unwrap_or_default()
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn a_position_comes_back_as_it_was_given() {
    for text in ["0", "42", "42@a1b2c3", "42@read_a1b2c3"] {
      assert_eq!(Position::parse(text).unwrap().to_value(), Value::String(text.to_owned()));
    }
    for wrong in ["", "-1", "x", "1@", "1@a b", "1@@", "99999999999999999999"] {
      assert_eq!(Position::parse(wrong), None, "{wrong:?}");
    }
  }

  #[test]
  fn an_instant_is_written_with_milliseconds_in_utc() {
    assert_eq!(DateTime(Timestamp(1_700_000_000_123)).to_value(), Value::from("2023-11-14T22:13:20.123Z"));
    let parsed = <DateTime as ScalarType>::parse(Value::from("2023-11-14T23:13:20.123+01:00")).unwrap();
    assert_eq!(parsed.0, Timestamp(1_700_000_000_123));
  }
}
