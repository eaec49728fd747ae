//! Keeps reasoning out of a text that arrives in pieces: `<think>`, `<thinking>` and `<reasoning>` blocks.
//!
//! Invariants
//! - However the text is split into pieces, the visible text is the same.
//! - A block that is never closed is reasoning to the end.
//! - A closing tag without an opening one means that the model began inside a block (its prompt template opened it): all text before
//!   it was reasoning too.

const OPENING: [&str; 3] = ["<think>", "<thinking>", "<reasoning>"];
const CLOSING: [&str; 3] = ["</think>", "</thinking>", "</reasoning>"];

/// The filter's state between two pieces.
#[derive(Debug, Default)]
pub(crate) struct Thinking {
  /// The beginning of what may become a tag.
  held: String,
  /// Which kind of block is open.
  inside: Option<usize>,
  reasoned: bool,
  spoken: bool,
}

/// What a piece makes visible.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Visible {
  /// Everything shown before was reasoning.
  pub(crate) restarted: bool,
  pub(crate) text: String,
}

enum Tag {
  Open(usize),
  Close(usize),
  Unfinished,
  None,
}

impl Thinking {
  /// Says whether any block was seen.
  pub(crate) fn reasoned(&self) -> bool {
    self.reasoned
  }

  pub(crate) fn push(&mut self, piece: String) -> Visible {
    let plain = self.held.is_empty() && self.inside.is_none() && (self.spoken || !self.reasoned);
    if plain && !piece.contains('<') {
      self.spoken |= !piece.trim().is_empty();
      return Visible { restarted: false, text: piece };
    }
    let mut input = std::mem::take(&mut self.held);
    input.push_str(&piece);
    let mut visible = Visible::default();
    let mut rest = input.as_str();
    while let Some(at) = rest.find('<') {
      self.show(&rest[..at], &mut visible);
      rest = &rest[at..];
      match tag(rest) {
        Tag::Open(kind) => {
          self.open(kind);
          rest = &rest[OPENING[kind].len()..];
        }
        Tag::Close(kind) => {
          self.close(kind, &mut visible);
          rest = &rest[CLOSING[kind].len()..];
        }
        Tag::Unfinished => {
          rest.clone_into(&mut self.held);
          return visible;
        }
        Tag::None => {
          self.show("<", &mut visible);
          rest = &rest[1..];
        }
      }
    }
    self.show(rest, &mut visible);
    visible
  }

  /// Gives out what was held back as a possible tag and turned out to be none.
  pub(crate) fn finish(&mut self) -> String {
    let mut visible = Visible::default();
    let held = std::mem::take(&mut self.held);
    self.show(&held, &mut visible);
    visible.text
  }

  fn open(&mut self, kind: usize) {
    self.reasoned = true;
    self.inside.get_or_insert(kind);
  }

  fn close(&mut self, kind: usize, visible: &mut Visible) {
    match self.inside {
      Some(open) if open == kind => self.inside = None,
      Some(_) => {}
      None => {
        self.reasoned = true;
        self.spoken = false;
        visible.restarted = true;
        visible.text.clear();
      }
    }
  }

  fn show(&mut self, text: &str, visible: &mut Visible) {
    if self.inside.is_some() {
      return;
    }
    // The blank lines that models put after a block belong to the block.
    let text = if self.reasoned && !self.spoken { text.trim_start() } else { text };
    self.spoken |= !text.trim().is_empty();
    visible.text.push_str(text);
  }
}

/// Reads the tag at the start of `rest`, which begins with `<`.
fn tag(rest: &str) -> Tag {
  let mut unfinished = false;
  for (kind, (opening, closing)) in OPENING.iter().zip(CLOSING).enumerate() {
    if starts(rest, opening) {
      return Tag::Open(kind);
    }
    if starts(rest, closing) {
      return Tag::Close(kind);
    }
    unfinished |= starts(opening, rest) || starts(closing, rest);
  }
  if unfinished { Tag::Unfinished } else { Tag::None }
}

fn starts(text: &str, prefix: &str) -> bool {
  text.as_bytes().get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
  use super::*;
  use proptest::prelude::*;

  fn visible(pieces: &[&str]) -> String {
    let mut filter = Thinking::default();
    let mut text = String::new();
    for piece in pieces {
      let shown = filter.push((*piece).to_owned());
      if shown.restarted {
        text.clear();
      }
      text.push_str(&shown.text);
    }
    text.push_str(&filter.finish());
    text
  }

  /// Proves D29.
  #[test]
  fn blocks_are_reasoning_wherever_they_are_split() {
    let cases = [
      (&["<think>hm</think>\n\nHello"][..], "Hello"),
      (&["<thi", "nk>hm</th", "ink>Hello"], "Hello"),
      (&["Hello <THINKING>hm</Thinking>there"], "Hello there"),
      (&["<reasoning>never clo", "sed"], ""),
      (&["Hello <thin", "k>never closed </thinking> other tag"], "Hello "),
      (&["secret plan</thi", "nk>Hello"], "Hello"),
      (&["<think>a<think>b</think>c</think>d"], "d"),
      (&["1 <", " 2 and <thin", "g>"], "1 < 2 and <thing>"),
      (&["ends with <thi"], "ends with <thi"),
      (&["<", "<think>x</think>y"], "<y"),
    ];
    for (pieces, expected) in cases {
      assert_eq!(visible(pieces), expected, "{pieces:?}");
    }
  }

  #[test]
  fn plain_text_is_shown_at_once() {
    let mut filter = Thinking::default();
    assert_eq!(filter.push("a piece".to_owned()).text, "a piece");
    assert!(!filter.reasoned());
  }

  fn fragments() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(
      prop::sample::select(vec![
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        "<reasoning>",
        "</reasoning>",
        "<",
        "</",
        ">",
        "think",
        "ing>",
        "a",
        " ",
        "\n",
        "你好",
        "</Thi",
        "NK>",
        "é",
      ]),
      0..16,
    )
  }

  proptest! {
      #[test]
      fn any_split_gives_the_same_text(fragments in fragments(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
          let whole = fragments.concat();
          let characters: Vec<usize> = whole.char_indices().map(|(at, _)| at).chain([whole.len()]).collect();
          let mut cuts: Vec<usize> = cuts.iter().map(|cut| characters[cut.index(characters.len())]).chain([0, whole.len()]).collect();
          cuts.sort_unstable();
          let pieces: Vec<&str> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
          prop_assert_eq!(visible(&pieces), visible(&[&whole]));
      }

      #[test]
      fn what_stands_in_an_open_block_is_never_shown(before in "[a-z ]{0,8}", hidden in "[A-Z<> ]{0,12}", cut in any::<prop::sample::Index>()) {
          let whole = format!("{before}<think>{hidden}");
          let cut = cut.index(whole.len() + 1);
          prop_assert_eq!(visible(&[&whole[..cut], &whole[cut..]]), before);
      }
  }
}
