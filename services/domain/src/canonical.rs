//! The canonical form of an action (D34): JSON with sorted keys, Unicode NFC, integers only. Equal actions have equal text, so an approval can bind to it.
//!
//! A rejection is remembered by the action without what changes with every try, its text folded: other words with the same letters are still the same wish.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Number, Value};
use unicode_normalization::UnicodeNormalization as _;

/// Nesting that no tool's arguments reach; deeper input is a mistake or an attack on the stack.
const DEPTH_MAX: usize = 32;
/// Above it a float no longer stands for one integer.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// An action that has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
  #[error("{number} is not an integer")]
  NotInteger { number: String },
  #[error("the key {key} stands there twice")]
  KeyTwice { key: String },
  #[error("it is nested too deep")]
  TooDeep,
}

/// The canonical form of an action.
///
/// # Errors
/// [`NotCanonical`].
pub fn canonical(action: &Value) -> Result<String, NotCanonical> {
  let mut text = String::new();
  write(action, &mut text, 0)?;
  Ok(text)
}

/// Whether the text is an action in its canonical form.
pub fn is_canonical(action: &str) -> bool {
  parsed(action).and_then(|action| canonical(&action).ok()).is_some_and(|form| form == action)
}

/// Members that change with every try of the same action.
const VOLATILE: [&str; 3] = ["message_id", "request_key", "snapshot_id"];

/// The action without its volatile members and with its texts folded; `None` for what is no action.
pub(crate) fn without_volatile(action: &str) -> Option<String> {
  canonical(&lasting(parsed(action)?)).ok()
}

/// Text as it is compared with other text (D10): NFC, trimmed, white space folded, case folded.
pub(crate) fn folded(text: &str) -> String {
  let spaced = text.split_whitespace().collect::<Vec<_>>().join(" ");
  // Upper before lower case: so ß is ss, and every sigma the same.
  let upper = spaced.nfc().flat_map(char::to_uppercase);
  upper.flat_map(char::to_lowercase).nfc().collect()
}

fn parsed(action: &str) -> Option<Value> {
  serde_json::from_str(action).ok()
}

fn lasting(value: Value) -> Value {
  match value {
    Value::String(string) => Value::String(folded(&string)),
    Value::Array(values) => Value::Array(values.into_iter().map(lasting).collect()),
    Value::Object(members) => {
      let kept = members.into_iter().filter(|(key, _)| !VOLATILE.contains(&key.as_str()));
      Value::Object(kept.map(|(key, value)| (key, lasting(value))).collect())
    }
    other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
  }
}

fn write(value: &Value, text: &mut String, depth: usize) -> Result<(), NotCanonical> {
  if depth > DEPTH_MAX {
    return Err(NotCanonical::TooDeep);
  }
  match value {
    Value::Null => text.push_str("null"),
    Value::Bool(yes) => text.push_str(if *yes { "true" } else { "false" }),
    Value::Number(number) => write_integer(number, text)?,
    Value::String(string) => write_string(&nfc(string), text),
    Value::Array(values) => {
      text.push('[');
      for (index, value) in values.iter().enumerate() {
        if index > 0 {
          text.push(',');
        }
        write(value, text, depth + 1)?;
      }
      text.push(']');
    }
    Value::Object(members) => {
      let mut sorted = BTreeMap::new();
      for (key, value) in members {
        let key = nfc(key);
        if sorted.insert(key.clone(), value).is_some() {
          return Err(NotCanonical::KeyTwice { key });
        }
      }
      text.push('{');
      for (index, (key, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
          text.push(',');
        }
        write_string(&key, text);
        text.push(':');
        write(value, text, depth + 1)?;
      }
      text.push('}');
    }
  }
  Ok(())
}

fn write_integer(number: &Number, text: &mut String) -> Result<(), NotCanonical> {
  let whole = |number: f64| number.fract() == 0.0 && number.abs() <= EXACT_MAX;
  if number.is_i64() || number.is_u64() {
    write!(text, "{number}").expect("writing to a string does not fail");
  } else if let Some(float) = number.as_f64().filter(|float| whole(*float)) {
    // Some models write 3.0 for 3. Adding zero takes the sign off a negative one.
    write!(text, "{:.0}", float + 0.0).expect("writing to a string does not fail");
  } else {
    return Err(NotCanonical::NotInteger { number: number.to_string() });
  }
  Ok(())
}

fn write_string(string: &str, text: &mut String) {
  text.push_str(&Value::from(string).to_string());
}

fn nfc(string: &str) -> String {
  string.nfc().collect()
}

#[cfg(test)]
mod tests {
  use proptest::prelude::*;
  use serde_json::json;

  use super::*;

  fn check(action: &Value, expected: &str) {
    assert_eq!(canonical(action).as_deref(), Ok(expected));
  }

  #[test]
  fn keys_are_sorted_and_nothing_else_moves() {
    check(&json!({"b": [3, 1, 2], "a": {"z": null, "y": true}}), r#"{"a":{"y":true,"z":null},"b":[3,1,2]}"#);
  }

  #[test]
  fn composed_and_decomposed_letters_are_the_same() {
    check(&json!({"name": "Zoe\u{308}"}), "{\"name\":\"Zo\u{eb}\"}");
    assert_eq!(canonical(&json!("e\u{301}")), canonical(&json!("\u{e9}")));
  }

  #[test]
  fn whole_floats_are_integers_and_others_are_refused() {
    check(&json!([3.0, -0.0, 1e3, 9_007_199_254_740_993_i64]), "[3,0,1000,9007199254740993]");
    for number in [0.5, 1e300, f64::from(f32::MAX)] {
      assert!(matches!(canonical(&json!(number)), Err(NotCanonical::NotInteger { .. })), "{number}");
    }
  }

  #[test]
  fn a_key_that_is_there_twice_is_refused() {
    assert_eq!(canonical(&json!({"\u{e9}": 1, "e\u{301}": 2})), Err(NotCanonical::KeyTwice { key: "\u{e9}".into() }));
  }

  #[test]
  fn nesting_has_an_end() {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(canonical(&deep), Err(NotCanonical::TooDeep));
  }

  /// Vectors computed elsewhere: each action, its canonical form, and what a rejection of it is remembered by. Proves D34 for both forms.
  #[test]
  fn forms_agree_with_those_computed_elsewhere() {
    let vectors = [
      (
        "{\"to\": [\"Ada <ada@example.org>\"], \"subject\": \"Re\\u0301sume\\u0301  \\u2014 Q3\", \"body\": \"Hello,\\n\\tthe total is \\u00a51,204,883.07.\", \"message_id\": \"<c4@pa>\"}",
        "{\"body\":\"Hello,\\n\\tthe total is ¥1,204,883.07.\",\"message_id\":\"<c4@pa>\",\"subject\":\"Résumé  — Q3\",\"to\":[\"Ada <ada@example.org>\"]}",
        "{\"body\":\"hello, the total is ¥1,204,883.07.\",\"subject\":\"résumé — q3\",\"to\":[\"ada <ada@example.org>\"]}",
      ),
      (
        "{\"snapshot_id\": \"s-1\", \"steps\": [{\"type\": \"click\", \"x\": 10, \"y\": -20, \"element\": 7}, {\"type\": \"text\", \"text\": \"STRASSE Stra\\u00dfe \\u039f\\u0394\\u039f\\u03a3\"}, {\"keys\": [\"cmd\", \"s\"], \"type\": \"key\"}], \"window\": {\"title\": \"\\u4f1a\\u8bae \\u2014 Notes\", \"width\": 1280, \"height\": 800}}",
        "{\"snapshot_id\":\"s-1\",\"steps\":[{\"element\":7,\"type\":\"click\",\"x\":10,\"y\":-20},{\"text\":\"STRASSE Straße ΟΔΟΣ\",\"type\":\"text\"},{\"keys\":[\"cmd\",\"s\"],\"type\":\"key\"}],\"window\":{\"height\":800,\"title\":\"会议 — Notes\",\"width\":1280}}",
        "{\"steps\":[{\"element\":7,\"type\":\"click\",\"x\":10,\"y\":-20},{\"text\":\"strasse strasse οδοσ\",\"type\":\"text\"},{\"keys\":[\"cmd\",\"s\"],\"type\":\"key\"}],\"window\":{\"height\":800,\"title\":\"会议 — notes\",\"width\":1280}}",
      ),
      (
        "{\"z\": null, \"a\": true, \"\\u00e9\": 1, \"e\": [], \"Z\": {}, \"nested\": {\"request_key\": \"x\", \"b\": 9007199254740993, \"a\": \"\\\\\\\"\\u0001\\u007f\"}}",
        "{\"Z\":{},\"a\":true,\"e\":[],\"nested\":{\"a\":\"\\\\\\\"\\u0001\u{7f}\",\"b\":9007199254740993,\"request_key\":\"x\"},\"z\":null,\"é\":1}",
        "{\"Z\":{},\"a\":true,\"e\":[],\"nested\":{\"a\":\"\\\\\\\"\\u0001\u{7f}\",\"b\":9007199254740993},\"z\":null,\"é\":1}",
      ),
    ];
    for (action, form, remembered) in vectors {
      let parsed: Value = serde_json::from_str(action).unwrap();
      assert_eq!(canonical(&parsed).as_deref(), Ok(form));
      assert!(is_canonical(form) && (action == form || !is_canonical(action)));
      assert_eq!(without_volatile(action).as_deref(), Some(remembered));
    }
  }

  #[test]
  fn folded_text_agrees_with_that_computed_elsewhere() {
    for (text, expected) in
      [("  Quarterly　REPORT \n", "quarterly report"), ("Straße", "strasse"), ("ΟΔΟΣ ς", "οδοσ σ"), ("Cafe\u{301}", "café"), ("İstanbul", "i\u{307}stanbul")]
    {
      assert_eq!(folded(text), expected);
    }
  }

  proptest! {
    #[test]
    fn the_canonical_form_is_its_own(keys in proptest::collection::vec(".{0,8}", 0..6), text in ".{0,40}", number in any::<i64>()) {
      let action = Value::Object(keys.into_iter().map(|key| (key, json!([text, number]))).collect());
      if let Ok(once) = canonical(&action) {
        let again: Value = serde_json::from_str(&once).unwrap();
        prop_assert_eq!(canonical(&again), Ok(once));
      }
    }
  }
}
