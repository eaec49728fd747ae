//! The model that answers: the configured one, or the built-in rehearsal model that says that it is one.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use pa_domain::settings::Effort;
use pa_gateway::OfferedModel;
use pa_model::rehearsal::{self, Options};
use pa_model::{ChatCompletions, Model, Prices};
use secrecy::ExposeSecret;

use crate::config::{self, Config};

/// The model and, if there is no other, the rehearsal server that speaks for one.
pub(crate) struct Models {
  pub(crate) model: Arc<dyn Model>,
  pub(crate) offered: OfferedModel,
  /// Ends when dropped.
  pub(crate) _rehearsal: Option<rehearsal::Server>,
}

/// Makes the model port; nothing is sent yet.
pub(crate) async fn start(config: &Config) -> Result<Models> {
  if config.model.base_url.is_empty() {
    return rehearse(config).await;
  }
  let port = ChatCompletions::new(port_config(&config.model)?).context("set up the model")?;
  Ok(Models { offered: offered(port.config(), false), model: Arc::new(port), _rehearsal: None })
}

async fn rehearse(config: &Config) -> Result<Models> {
  let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.context("find a port for the rehearsal model")?;
  let options = Options { pause: Duration::from_millis(config.rehearsal.pause_millis), ..Options::default() };
  let server = rehearsal::serve(listener, options).context("start the rehearsal model")?;
  let port = ChatCompletions::new(server.config()).context("set up the rehearsal model")?;
  tracing::warn!("no model is configured (PA_MODEL_BASE_URL): the rehearsal model answers, and says so");
  Ok(Models { offered: offered(port.config(), true), model: Arc::new(port), _rehearsal: Some(server) })
}

fn offered(config: &pa_model::Config, rehearsal: bool) -> OfferedModel {
  OfferedModel { name: config.name.clone(), efforts: config.efforts().into_iter().map(domain_effort).collect(), sees_pictures: config.sees_pictures, rehearsal }
}

fn domain_effort(effort: pa_model::Effort) -> Effort {
  match effort {
    pa_model::Effort::Fast => Effort::Fast,
    pa_model::Effort::Low => Effort::Low,
    pa_model::Effort::Medium => Effort::Medium,
    pa_model::Effort::High => Effort::High,
  }
}

fn port_effort(effort: Effort) -> pa_model::Effort {
  match effort {
    Effort::Fast => pa_model::Effort::Fast,
    Effort::Low => pa_model::Effort::Low,
    Effort::Medium => pa_model::Effort::Medium,
    Effort::High => pa_model::Effort::High,
  }
}

fn port_config(model: &config::Model) -> Result<pa_model::Config> {
  let mut port = pa_model::Config::new(model.base_url.trim_end_matches('/'), &model.name);
  port.api_key = Some(model.api_key.clone()).filter(|key| !key.expose_secret().is_empty());
  port.context_tokens = model.context_tokens.try_into().context("model.context_tokens")?;
  port.max_output_tokens = Some(model.output_tokens_max.try_into().context("model.output_tokens_max")?);
  port.sees_pictures = model.sees_pictures;
  port.efforts = model.efforts.iter().copied().map(port_effort).collect();
  port.prices = match (model.price_input_micros, model.price_output_micros) {
    (Some(input_micros), Some(output_micros)) => {
      Some(Prices { currency: model.currency.clone(), input_micros, output_micros, cached_micros: model.price_cached_micros })
    }
    _ => None,
  };
  port.timeouts.first_byte_ms = model.first_byte_timeout_secs * 1000;
  port.timeouts.idle_ms = model.idle_timeout_secs * 1000;
  port.timeouts.total_ms = model.total_timeout_secs * 1000;
  Ok(port)
}
