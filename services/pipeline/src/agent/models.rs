//! The models that this process may ask, by the names that settings use.

use std::collections::BTreeMap;
use std::sync::Arc;

use pa_domain::settings::Effort;
use pa_model::Model;

/// The configured models; cloning shares them.
#[derive(Clone)]
pub struct Models {
  default: Arc<dyn Model>,
  named: Arc<BTreeMap<String, Arc<dyn Model>>>,
}

impl Models {
  /// The default model, and others that settings may choose by the name in their configuration.
  pub fn new(default: Arc<dyn Model>, others: impl IntoIterator<Item = Arc<dyn Model>>) -> Self {
    let named = std::iter::once(Arc::clone(&default)).chain(others).map(|model| (model.config().name.clone(), model)).collect();
    Self { default, named: Arc::new(named) }
  }

  /// The model of a name; the default one for an empty name, and for one that is no longer configured.
  pub fn get(&self, name: &str) -> &Arc<dyn Model> {
    if let Some(model) = self.named.get(name) {
      return model;
    }
    if !name.is_empty() {
      tracing::warn!(model.name = name, "the model that the settings name is not configured; the default one answers");
    }
    &self.default
  }

  /// The largest window that one of them has.
  pub(super) fn context_tokens_max(&self) -> u32 {
    self.named.values().chain([&self.default]).map(|model| model.config().context_tokens).max().unwrap_or_default()
  }
}

/// The effort as the model port names it.
pub(super) fn wished(effort: Effort) -> pa_model::Effort {
  match effort {
    Effort::Fast => pa_model::Effort::Fast,
    Effort::Low => pa_model::Effort::Low,
    Effort::Medium => pa_model::Effort::Medium,
    Effort::High => pa_model::Effort::High,
  }
}

/// The effort as records name it.
pub(super) fn recorded(effort: pa_model::Effort) -> Effort {
  match effort {
    pa_model::Effort::Fast => Effort::Fast,
    pa_model::Effort::Low => Effort::Low,
    pa_model::Effort::Medium => Effort::Medium,
    pa_model::Effort::High => Effort::High,
  }
}
