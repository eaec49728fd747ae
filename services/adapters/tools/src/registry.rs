//! The tools of a process, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Place, Tool};

/// Two tools have the same name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two tools called {name}")]
pub struct Ambiguous {
  pub name: &'static str,
}

/// All tools; cloning shares them.
#[derive(Clone, Default)]
pub struct Tools {
  by_name: Arc<BTreeMap<&'static str, Arc<dyn Tool>>>,
}

impl Tools {
  /// Puts tools together.
  ///
  /// # Errors
  /// [`Ambiguous`].
  pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, Ambiguous> {
    let mut by_name = BTreeMap::new();
    for tool in tools {
      let name = tool.name();
      if by_name.insert(name, tool).is_some() {
        return Err(Ambiguous { name });
      }
    }
    Ok(Self { by_name: Arc::new(by_name) })
  }

  /// The tool of a name.
  pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
    self.by_name.get(name)
  }

  /// The tools of a place, by name.
  pub fn at(&self, place: Place) -> impl Iterator<Item = &Arc<dyn Tool>> {
    self.by_name.values().filter(move |tool| tool.places().contains(&place))
  }
}
