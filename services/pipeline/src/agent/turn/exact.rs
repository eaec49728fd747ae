//! Whether a result was told with every link and number in it (REP-25). Pure.

use std::collections::HashSet;

/// Signs around a word that don't belong to it.
const AROUND: &[char] = &['.', ',', ';', ':', '!', '?', '[', ']', '{', '}', '<', '>', '"', '\'', '`', '*', '_'];

/// Whether every link and every number of the result stands in what was told, as it is.
pub(super) fn keeps_links_and_numbers(result: &str, told: &str) -> bool {
  let told: HashSet<&str> = words(told).collect();
  words(result).filter(|word| counts(word)).all(|word| told.contains(word))
}

/// Whole words: a figure that is only a part of another one is another figure.
fn words(text: &str) -> impl Iterator<Item = &str> {
  let ends_word = |character: char| !character.is_ascii() || character.is_whitespace() || "()|".contains(character);
  text.split(ends_word).map(|word| word.trim_matches(AROUND))
}

/// A link, or something with a digit in it.
fn counts(word: &str) -> bool {
  word.contains("://") || word.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
  use super::keeps_links_and_numbers as keeps;

  #[test]
  fn a_link_or_number_that_is_missing_or_changed_is_noticed() {
    let result = "The total is **1,204,883.07** (see https://example.org/a?b=1), due 2026-03-01.";
    assert!(keeps(result, "It comes to 1,204,883.07. Source: https://example.org/a?b=1. It is due on 2026-03-01!"));
    assert!(!keeps(result, "It comes to 1.2 million. Source: https://example.org/a?b=1, due 2026-03-01"));
    assert!(!keeps(result, "It comes to 1,204,883.07, due 2026-03-01"));
    assert!(!keeps(result, "1,204,883.07, https://example.org/a, 2026-03-01"));
    assert!(!keeps("It is 5.", "It is 15."));
    assert!(!keeps("See https://example.org/a", "See https://example.org/abc"));
    assert!(keeps("No numbers here.", "Anything."));
    assert!(keeps("总计（1,204,883.07），见 https://example.org/x。", "总计是 1,204,883.07：https://example.org/x"));
  }
}
