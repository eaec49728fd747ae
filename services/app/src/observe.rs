//! Log lines to standard error, numbers for `/metrics`.

use std::sync::{Arc, OnceLock};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::Observe;

/// Starts log lines; a filter that can't be understood counts as `info`.
pub(crate) fn start(config: &Observe) {
  // Postgres's own notices ("already exists, skipping") say nothing to anybody.
  let quiet = |filter: &str| format!("{filter},sqlx::postgres::notice=warn");
  let filter = EnvFilter::try_new(quiet(&config.log)).unwrap_or_else(|_| EnvFilter::new(quiet("info")));
  let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
  let started = if config.json { lines.json().try_init() } else { lines.try_init() };
  if let Err(error) = started {
    tracing::debug!(%error, "log lines were started before");
  }
}

/// The recorder is one for the process.
fn recorder() -> Option<&'static PrometheusHandle> {
  static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
  HANDLE.get_or_init(|| PrometheusBuilder::new().install_recorder().inspect_err(|error| tracing::warn!(%error, "no numbers are recorded")).ok()).as_ref()
}

/// What `/metrics` answers.
pub(crate) fn metrics() -> Arc<dyn Fn() -> String + Send + Sync> {
  let recorder = recorder();
  Arc::new(move || recorder.map(PrometheusHandle::render).unwrap_or_default())
}

/// To be called now and then: what was measured piles up in memory until it is summed up, by this or by an answer.
pub(crate) fn upkeep() {
  metrics::gauge!("pa_up").set(1.0);
  if let Some(recorder) = recorder() {
    recorder.run_upkeep();
  }
}
