//! A cheap, careful guess of how many tokens a text takes, for keeping a prompt inside a model's window.
//!
//! No tokenizer is loaded: each model has another one, and the guess has to cost nothing beside the call. The weights are set on the
//! high side of what the publishers of the common byte-pair vocabularies say: about four characters of English a token, a CJK character
//! about one token (newer vocabularies take fewer), other scripts between, emoji two or more; digits and punctuation pair up badly.

/// What a picture is counted as: common vision models take 85 to about 1,500 tokens for one at their usual scale.
pub const PICTURE_TOKENS: usize = 1_500;

/// Weights are in quarters of a token.
const QUARTERS: usize = 4;

/// Guesses how many tokens the text takes; rather too many than too few.
pub fn estimate_tokens(text: &str) -> usize {
  let quarters: usize = text.chars().map(weight).sum();
  quarters.div_ceil(QUARTERS)
}

fn weight(character: char) -> usize {
  match character {
    'a'..='z' | 'A'..='Z' | ' ' => 1,
    '\0'..='\u{7ff}' => 2,
    '\u{800}'..='\u{ffff}' => 4,
    '\u{10000}'..='\u{10ffff}' => 8,
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn the_guess_follows_the_script() {
    assert_eq!(estimate_tokens(""), 0);
    assert_eq!(estimate_tokens("four letters"), 3);
    assert_eq!(estimate_tokens("你好世界"), 4);
    assert_eq!(estimate_tokens("😀"), 2);
    assert_eq!(estimate_tokens("1234"), 2);
  }

  #[test]
  fn the_guess_never_shrinks_when_text_grows() {
    let text = "Hi, 你好 😀 — наконец 42!";
    let mut before = 0;
    for (end, _) in text.char_indices() {
      let now = estimate_tokens(&text[..end]);
      assert!(now >= before);
      before = now;
    }
  }
}
