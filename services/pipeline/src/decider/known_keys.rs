//! Which keys the checkpoint may hold, agent by agent: a key that was never used is known to be new without asking.
//!
//! Invariants
//! - An agent's keys are read whole or not at all, and every checkpoint of this term adds what it writes. Only this term writes them, or its decisions are void: as with
//!   the agents' states, another writer ends the term.
//! - Eight bytes stand for a key, and a key that has expired stays here: either only leads to a look-up that finds nothing.

use std::collections::{HashMap, HashSet};

use pa_domain::AgentId;

use super::End;
use super::term::{Term, part};

/// Keys of one agent that are kept here: some ten thousand turns in the window. Whoever has more is looked up key by key.
const OF_AGENT_MAX: usize = 32_768;
/// Keys of all agents of a partition that are kept between checkpoints: a megabyte or two.
const KEPT_MAX: usize = 131_072;
/// Agents whose keys are read at once.
const AGENTS_AT_ONCE: usize = 16;

/// The first bytes of a key, which is a keyed hash.
type Short = [u8; 8];

#[derive(Default)]
pub(super) struct KnownKeys {
  /// `None`: too many to keep.
  agents: HashMap<AgentId, Option<HashSet<Short>>>,
}

fn short(key: &[u8; 32]) -> Short {
  *key.first_chunk().expect("a key has 32 bytes")
}

impl KnownKeys {
  /// Whether the checkpoint certainly does not hold an agent's key.
  pub(super) fn rule_out(&self, agent: AgentId, key: &[u8; 32]) -> bool {
    matches!(self.agents.get(&agent), Some(Some(keys)) if !keys.contains(&short(key)))
  }

  /// Adds keys that a checkpoint has written.
  pub(super) fn written<'a>(&mut self, keys: impl Iterator<Item = (AgentId, &'a [u8; 32])>) {
    for (agent, key) in keys {
      if let Some(Some(known)) = self.agents.get_mut(&agent) {
        known.insert(short(key));
      }
    }
    // What has grown too much is read anew: some of it has expired.
    self.agents.retain(|_, known| known.as_ref().is_none_or(|known| known.len() <= OF_AGENT_MAX));
    if self.agents.values().flatten().map(HashSet::len).sum::<usize>() > KEPT_MAX {
      self.agents.clear();
    }
  }

  fn learn(&mut self, agents: &[AgentId], keys: Vec<(AgentId, Short)>) {
    let mut of: HashMap<AgentId, HashSet<Short>> = agents.iter().map(|agent| (*agent, HashSet::new())).collect();
    for (agent, key) in keys {
      of.entry(agent).or_default().insert(key);
    }
    self.agents.extend(of.into_iter().map(|(agent, keys)| (agent, (keys.len() <= OF_AGENT_MAX).then_some(keys))));
  }
}

impl Term {
  /// Reads the keys of agents that have an input for the first time.
  pub(super) async fn learn_keys(&mut self, agents: impl Iterator<Item = AgentId>) -> Result<(), End> {
    let mut new: Vec<AgentId> = agents.filter(|agent| !self.repeats.stored.agents.contains_key(agent)).collect();
    new.sort_unstable();
    new.dedup();
    new.truncate(AGENTS_AT_ONCE);
    if !new.is_empty() {
      let keys = self.parts.store.keys_of(part(self.partition), &new, OF_AGENT_MAX as i64 + 1).await?;
      self.repeats.stored.learn(&new, keys);
    }
    Ok(())
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  fn agent(number: u128) -> AgentId {
    AgentId(uuid::Uuid::from_u128(number))
  }

  #[test]
  fn only_an_agent_whose_keys_are_all_known_has_new_ones() {
    let mut known = KnownKeys::default();
    assert!(!known.rule_out(agent(1), &[1; 32]), "nobody has looked");
    known.learn(&[agent(1)], vec![(agent(1), [1; 8])]);
    assert!(!known.rule_out(agent(1), &[1; 32]));
    assert!(known.rule_out(agent(1), &[2; 32]));
    assert!(!known.rule_out(agent(2), &[2; 32]));
    known.written([(agent(1), &[2; 32]), (agent(2), &[2; 32])].into_iter());
    assert!(!known.rule_out(agent(1), &[2; 32]), "it was written meanwhile");
    assert!(!known.rule_out(agent(2), &[3; 32]), "one written key is not all keys");
  }

  #[test]
  fn an_agent_with_too_many_keys_is_looked_up() {
    let mut known = KnownKeys::default();
    let many = (0..=OF_AGENT_MAX as u64).map(|number| (agent(1), number.to_be_bytes())).collect();
    known.learn(&[agent(1)], many);
    assert!(!known.rule_out(agent(1), &[255; 32]));
  }
}
