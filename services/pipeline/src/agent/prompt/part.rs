//! What a prompt was made of, as each model call records it.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Context, SHA256};
use pa_domain::Origin;
use pa_domain::execution::PromptPart;
use pa_model::estimate_tokens;

use super::fence::sha256;

/// The parts of a prompt. Many texts of one kind (a history of short messages) are one part for each origin, so that a record stays small.
#[derive(Clone, Default)]
pub(in crate::agent) struct Parts {
  parts: Vec<PromptPart>,
  gathered: BTreeMap<(&'static str, &'static str), Gathered>,
}

#[derive(Clone)]
struct Gathered {
  origin: Origin,
  hash: Context,
  tokens: usize,
}

impl Parts {
  /// Adds a part of its own.
  pub(super) fn add(&mut self, name: impl Into<String>, origin: Origin, text: &str) {
    self.add_counted(name, origin, sha256(text), estimate_tokens(text));
  }

  /// Adds a part whose hash and size are known.
  pub(super) fn add_counted(&mut self, name: impl Into<String>, origin: Origin, sha256: String, tokens: usize) {
    self.parts.push(PromptPart { name: name.into(), origin, sha256, tokens: i64::try_from(tokens).unwrap_or(i64::MAX) });
  }

  /// Adds a text to the one part of its kind and origin.
  pub(super) fn gather(&mut self, kind: &'static str, origin: Origin, text: &str) {
    let gathered = self.gathered.entry((kind, suffix(origin))).or_insert_with(|| Gathered { origin, hash: Context::new(&SHA256), tokens: 0 });
    // The length first, so that two texts are not one.
    gathered.hash.update(&(text.len() as u64).to_be_bytes());
    gathered.hash.update(text.as_bytes());
    gathered.tokens += estimate_tokens(text);
  }

  /// Adds the parts of something that was made before.
  pub(super) fn take_in(&mut self, others: Self) {
    self.parts.extend(others.parts);
    for (key, other) in others.gathered {
      let Gathered { origin, hash, tokens } = other;
      let gathered = self.gathered.entry(key).or_insert_with(|| Gathered { origin, hash: Context::new(&SHA256), tokens: 0 });
      gathered.hash.update(hash.finish().as_ref());
      gathered.tokens += tokens;
    }
  }

  /// All parts for the record.
  pub(in crate::agent) fn recorded(&self) -> Vec<PromptPart> {
    let gathered = self.gathered.iter().map(|((kind, suffix), gathered)| PromptPart {
      name: format!("{kind}:{suffix}"),
      origin: gathered.origin,
      sha256: hex::encode(gathered.hash.clone().finish()),
      tokens: i64::try_from(gathered.tokens).unwrap_or(i64::MAX),
    });
    self.parts.iter().cloned().chain(gathered).collect()
  }
}

fn suffix(origin: Origin) -> &'static str {
  match origin {
    Origin::Owner => "owner",
    Origin::Agent => "agent",
    Origin::Tool => "tool",
    Origin::ThirdParty => "third-party",
    Origin::Platform => "platform",
  }
}
