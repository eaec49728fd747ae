//! A GraphQL document within limits, or why not, before anything of it runs.
//!
//! The library limits depth, complexity and directives of what it validates; this module limits what it would have to parse and walk first: size, nesting,
//! aliases, and what nested fragments multiply to.

use std::collections::HashMap;

use async_graphql::Name;
use async_graphql::parser::types::{DocumentOperations, ExecutableDocument, FragmentDefinition, OperationType, Selection, SelectionSet};
use async_graphql::{Positioned, parser};

use crate::limits::{ALIASES_MAX, DOCUMENT_BYTES_MAX, NESTING_MAX, SELECTIONS_MAX};

/// Why a document is not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
  #[error("the document is longer than {DOCUMENT_BYTES_MAX} bytes")]
  TooLong,
  #[error("the document is nested deeper than {NESTING_MAX} levels")]
  TooDeep,
  #[error("the document has more than {ALIASES_MAX} aliases")]
  TooManyAliases,
  #[error("the document selects more than {SELECTIONS_MAX} fields")]
  TooManySelections,
  #[error("{0}")]
  Syntax(#[from] parser::Error),
}

/// A document that may run.
#[derive(Debug)]
pub(crate) struct Checked {
  pub document: ExecutableDocument,
  /// It reads how far the read model has come, so that must be read before anything else.
  pub wants_position: bool,
}

/// Parses a document within limits.
pub(crate) fn checked(text: &str) -> Result<Checked, Error> {
  if text.len() > DOCUMENT_BYTES_MAX {
    return Err(Error::TooLong);
  }
  if nesting(text) > NESTING_MAX {
    return Err(Error::TooDeep);
  }
  let document = parser::parse_query(text)?;
  let mut walk = Walk { fragments: &document.fragments, known: HashMap::new(), aliases: 0, wants_position: false };
  let selections = walk.document(&document.operations);
  let (aliases, wants_position) = (walk.aliases, walk.wants_position);
  if aliases > ALIASES_MAX {
    return Err(Error::TooManyAliases);
  }
  if selections > SELECTIONS_MAX {
    return Err(Error::TooManySelections);
  }
  Ok(Checked { document, wants_position })
}

struct Walk<'a> {
  fragments: &'a HashMap<Name, Positioned<FragmentDefinition>>,
  /// What a fragment comes to; one that is being walked counts as nothing, because validation refuses cycles anyway.
  known: HashMap<&'a str, usize>,
  aliases: usize,
  wants_position: bool,
}

impl<'a> Walk<'a> {
  fn document(&mut self, operations: &'a DocumentOperations) -> usize {
    let (mut selections, mut queries): (usize, bool) = (0, false);
    for (_, operation) in operations.iter() {
      selections = selections.saturating_add(self.set(&operation.node.selection_set.node));
      queries |= operation.node.ty == OperationType::Query;
    }
    self.wants_position &= queries;
    selections
  }

  fn set(&mut self, set: &'a SelectionSet) -> usize {
    set.items.iter().fold(0, |sum: usize, item| sum.saturating_add(self.selection(&item.node)))
  }

  fn selection(&mut self, selection: &'a Selection) -> usize {
    match selection {
      Selection::Field(field) => {
        self.aliases += usize::from(field.node.alias.is_some());
        self.wants_position |= field.node.name.node == "position";
        self.set(&field.node.selection_set.node).saturating_add(1)
      }
      Selection::InlineFragment(inline) => self.set(&inline.node.selection_set.node).saturating_add(1),
      Selection::FragmentSpread(spread) => self.fragment(&spread.node.fragment_name.node).saturating_add(1),
    }
  }

  fn fragment(&mut self, name: &str) -> usize {
    if let Some(known) = self.known.get(name) {
      return *known;
    }
    let Some((name, fragment)) = self.fragments.get_key_value(name) else { return 0 };
    self.known.insert(name.as_str(), 0);
    let selections = self.set(&fragment.node.selection_set.node);
    self.known.insert(name.as_str(), selections);
    selections
  }
}

/// The deepest nesting of brackets outside of strings and comments.
fn nesting(text: &str) -> usize {
  let (mut depth, mut deepest) = (0_usize, 0);
  let mut rest = text.as_bytes();
  while let [first, tail @ ..] = rest {
    rest = match first {
      b'"' => after_string(rest),
      b'#' => tail.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map_or(&[], |end| &tail[end..]),
      b'{' | b'[' | b'(' => {
        depth += 1;
        deepest = deepest.max(depth);
        tail
      }
      b'}' | b']' | b')' => {
        depth = depth.saturating_sub(1);
        tail
      }
      _ => tail,
    };
  }
  deepest
}

/// What follows the string at the beginning; nothing if it does not end.
fn after_string(text: &[u8]) -> &[u8] {
  let quotes: &[u8] = if text.starts_with(b"\"\"\"") { b"\"\"\"" } else { b"\"" };
  let mut rest = &text[quotes.len()..];
  loop {
    match rest {
      [] => return rest,
      [b'\\', _, tail @ ..] if quotes.len() == 1 => rest = tail,
      [b'\\', b'"', b'"', b'"', tail @ ..] => rest = tail,
      _ if rest.starts_with(quotes) => return &rest[quotes.len()..],
      [_, tail @ ..] => rest = tail,
    }
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn an_ordinary_document_passes() {
    let checked = checked("query Boot { viewer { account } agent { position } }").unwrap();
    assert!(checked.wants_position);
    assert!(!super::checked("mutation { sendMessage(input: {requestKey: \"1\", text: \"{{{[[\"}) { position } }").unwrap().wants_position);
  }

  #[test]
  fn nesting_is_counted_outside_of_strings_and_comments() {
    assert_eq!(nesting("{ a(b: [1]) { c } }"), 3);
    assert_eq!(nesting("{ a(b: \"{{{{\\\"{{\") } # {{{{\n"), 2);
    assert_eq!(nesting("{ a(b: \"\"\"{{ \\\"\"\" {{ \"\" \"\"\") { c } }"), 2);
    assert_eq!(nesting("\"unfinished {{{"), 0);
    let deep = format!("{}{}", "{a".repeat(20_000), "}".repeat(20_000));
    assert!(matches!(checked(&deep), Err(Error::TooDeep)));
  }

  #[test]
  fn aliases_are_limited() {
    let with = |count: usize| format!("{{ {} }}", (0..count).map(|n| format!("a{n}: viewer {{ account }}")).collect::<Vec<_>>().join(" "));
    assert!(checked(&with(ALIASES_MAX)).is_ok());
    assert!(matches!(checked(&with(ALIASES_MAX + 1)), Err(Error::TooManyAliases)));
  }

  #[test]
  fn fragments_that_multiply_are_refused() {
    let nested = (0..40).map(|n| format!("fragment f{n} on Query {{ ...f{m} ...f{m} }}", m = n + 1)).collect::<Vec<_>>().join(" ");
    let bomb = format!("{{ ...f0 }} {nested} fragment f40 on Query {{ viewer {{ account }} }}");
    assert!(matches!(checked(&bomb), Err(Error::TooManySelections)));
    // A cycle is left to validation.
    assert!(checked("{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }").is_ok());
  }

  #[test]
  fn what_is_no_document_says_so() {
    assert!(matches!(checked("{ viewer "), Err(Error::Syntax(_))));
    assert!(matches!(checked(&" ".repeat(DOCUMENT_BYTES_MAX + 1)), Err(Error::TooLong)));
  }
}
