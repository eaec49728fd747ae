//! Rows by primary key, in the order in which a batch first met them.

use std::collections::HashMap;
use std::hash::Hash;

use pa_domain::AgentId;

/// Operations on rows of one table, at most one a key.
#[derive(Clone, Debug)]
pub struct Merged<K, O> {
  index: HashMap<(AgentId, K), usize>,
  rows: Vec<(AgentId, K, O)>,
}

impl<K, O> Default for Merged<K, O> {
  fn default() -> Self {
    Self { index: HashMap::new(), rows: Vec::new() }
  }
}

impl<K: Copy + Eq + Hash, O> Merged<K, O> {
  /// Puts an operation in, merging it with the one that the key has already: `merge(earlier, later)`.
  pub fn put(&mut self, agent: AgentId, key: K, later: O, merge: impl FnOnce(&mut O, O)) {
    if let Some(&at) = self.index.get(&(agent, key)) {
      merge(&mut self.rows[at].2, later);
    } else {
      self.index.insert((agent, key), self.rows.len());
      self.rows.push((agent, key, later));
    }
  }

  /// Forgets an agent's operations.
  pub fn forget(&mut self, agent: AgentId) {
    self.rows.retain(|(of, _, _)| *of != agent);
    self.index = self.rows.iter().enumerate().map(|(at, (agent, key, _))| ((*agent, *key), at)).collect();
  }

  /// All operations in the order of their keys' first change.
  pub fn iter(&self) -> impl Iterator<Item = &(AgentId, K, O)> {
    self.rows.iter()
  }

  /// Says whether there is none.
  pub fn is_empty(&self) -> bool {
    self.rows.is_empty()
  }
}
