//! Log lines to standard error, numbers for `/metrics`.

use std::sync::{Arc, OnceLock};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::Observe;

/// What a tool says beside its answer, unless it is asked for more.
const OF_A_TOOL: &str = "warn";

/// Starts log lines; a filter that can't be understood counts as `info`.
pub(crate) fn start(config: &Observe) {
  lines(config, filter(&config.log));
}

/// Starts the log lines of a tool, whose answer on standard output is what people came for: warnings and errors, more when it is asked for or by `RUST_LOG`.
pub(crate) fn start_tool(config: &Observe, verbose: bool) {
  let given = EnvFilter::try_from_default_env().ok();
  lines(config, given.unwrap_or_else(|| filter(if verbose { &config.log } else { OF_A_TOOL })));
}

fn filter(text: &str) -> EnvFilter {
  // Postgres's own notices ("already exists, skipping") say nothing to anybody.
  let quiet = |filter: &str| format!("{filter},sqlx::postgres::notice=warn");
  EnvFilter::try_new(quiet(text)).unwrap_or_else(|_| EnvFilter::new(quiet("info")))
}

fn lines(config: &Observe, filter: EnvFilter) {
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
