//! The agent's settings and the models to choose from.

use async_graphql::{Context, Enum, InputObject, Object, SimpleObject};
use pa_domain::settings as domain;
use pa_projections::settings as read;

use crate::graphql::env::Env;

/// The agent's settings.
#[derive(Clone, Debug)]
pub(crate) struct Settings(pub read::Settings);

/// How much thinking of its own the model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum Effort {
  /// No extra thinking.
  Fast,
  Low,
  Medium,
  High,
}

/// A model that the installation offers.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Model {
  pub name: String,
  /// The thinking efforts that it knows, lowest first.
  pub efforts: Vec<Effort>,
  /// It can look at pictures.
  pub sees_pictures: bool,
  /// It is the built-in rehearsal model: scripted answers, no intelligence.
  pub rehearsal: bool,
}

/// What is given is changed, the rest stays.
#[derive(Clone, Debug, InputObject)]
pub(crate) struct UpdateSettingsInput {
  /// Names this request; sending it again has no second effect.
  pub request_key: String,
  /// The version that the change was made on.
  pub version: i64,
  pub time_zone: Option<String>,
  pub language: Option<String>,
  pub concurrency: Option<i32>,
  /// A name from `availableModels`; empty for the installation's default.
  pub model: Option<String>,
  pub effort: Option<Effort>,
  pub name: Option<String>,
  /// Empty to remove it.
  pub avatar: Option<String>,
}

#[Object]
impl Settings {
  /// Rises with every change; a change names the version that it was made on.
  async fn version(&self) -> i64 {
    self.0.version
  }

  /// The owner's IANA time zone; empty until it is known.
  async fn time_zone(&self) -> &str {
    &self.0.time_zone
  }

  /// The language of the page: `en`, `zh-CN`, or empty for the browser's choice.
  async fn language(&self) -> &str {
    &self.0.language
  }

  /// How many tasks may run at once.
  async fn concurrency(&self) -> i32 {
    self.0.concurrency
  }

  /// The chosen model; empty for the installation's default.
  async fn model(&self) -> &str {
    &self.0.model
  }

  /// The thinking effort.
  async fn effort(&self) -> Effort {
    self.0.effort.into()
  }

  /// The agent's name; empty while it has none.
  async fn name(&self) -> &str {
    &self.0.name
  }

  /// The agent's picture: `builtin:<name>` or `file:<id>`; empty while it has none.
  async fn avatar(&self) -> &str {
    &self.0.avatar
  }

  /// The models to choose from, the installation's default first.
  async fn available_models(&self, context: &Context<'_>) -> Vec<Model> {
    Env::of(context).edge.models.iter().map(Model::from).collect()
  }
}

impl From<&crate::edge::OfferedModel> for Model {
  fn from(offered: &crate::edge::OfferedModel) -> Self {
    Self {
      name: offered.name.clone(),
      efforts: offered.efforts.iter().copied().map(Effort::from).collect(),
      sees_pictures: offered.sees_pictures,
      rehearsal: offered.rehearsal,
    }
  }
}

impl From<domain::Effort> for Effort {
  fn from(effort: domain::Effort) -> Self {
    match effort {
      domain::Effort::Fast => Self::Fast,
      domain::Effort::Low => Self::Low,
      domain::Effort::Medium => Self::Medium,
      domain::Effort::High => Self::High,
    }
  }
}

impl From<Effort> for domain::Effort {
  fn from(effort: Effort) -> Self {
    match effort {
      Effort::Fast => Self::Fast,
      Effort::Low => Self::Low,
      Effort::Medium => Self::Medium,
      Effort::High => Self::High,
    }
  }
}
